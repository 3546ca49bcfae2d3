import { describe, expect, test, type TestContext } from 'vitest';
import type { Change, RecordStore, Model } from '../src/record-store.js';
import { recordStoreFindingConformance } from './record-store-finding-conformance.js';
import { recordStoreIsolation } from './record-store-isolation.js';
import { ACME, insert, keysOfAll, recordOf, SAMPLE_MODEL, searchable, vectorOf } from './record-store-samples.js';
import { recordStoreSearchConformance } from './record-store-search-conformance.js';
import { recordStoreUpkeepConformance } from './record-store-upkeep-conformance.js';

/** An empty store of the kind under test that reads and writes with `SAMPLE_MODEL`. */
export interface StoreUnderTest {
  readonly store: RecordStore;
  /** Closes the store and opens its data again, with the first model unless another is given. */
  readonly reopen: (model?: Model) => Promise<RecordStore>;
  /** Opens another connection to the same data, like another process. */
  readonly second: (model?: Model) => Promise<RecordStore>;
  /** Closes all connections and removes the data. */
  readonly close: () => Promise<void>;
}

export type OpenStore = () => Promise<StoreUnderTest>;

/** `it` for tests that get an empty store of their own, which is closed with the test. */
export type ItOfStore = ReturnType<typeof withStore>;

const withStore = (open: OpenStore) =>
  test
    .extend<{ made: StoreUnderTest }>({
      made: async ({ task: _task }: TestContext, use: (made: StoreUnderTest) => Promise<void>) => {
        const made = await open();
        await use(made);
        await made.close();
      },
    })
    .extend<Pick<StoreUnderTest, 'store' | 'second' | 'reopen'>>({
      store: ({ made }, use) => use(made.store),
      second: ({ made }, use) => use(made.second),
      reopen: ({ made }, use) => use(made.reopen),
    });

/** The behaviour of every `RecordStore` adapter. `open` is called once per test. */
export function recordStoreConformance(name: string, open: OpenStore, isolationRuns = 25): void {
  const it = withStore(open);
  describe(`${name} record store`, () => {
    keeping(it);
    changing(it);
    recordStoreFindingConformance(it);
    recordStoreUpkeepConformance(it);
    recordStoreSearchConformance(it);
    recordStoreIsolation(it, isolationRuns);
  });
}

function keeping(it: ItOfStore): void {
  it('returns a record as it was stored', async ({ store }) => {
    const record = recordOf({
      scope: { tenant: 'acme', agent: 'coder', user: 'ann' },
      createdAt: 1_790_000_000_123,
      worth: 0.123456789012345,
      shown: false,
      fields: { id: 'x', fingerprint: ['f1', 'f2', 'f1'], name: '' },
      sources: ['e2', 'e1'],
      title: 'A "title" with \'quotes\', \u0001 and \u{1F600}',
      text: '日本語 :tenant $ne {"$gt":""} %_* \n\r\t',
      body: '{"b":1,"a":[1.0,1e3,"\\u0000\\ud800"],  "z":null}',
    });
    expect(await store.write('acme', [insert(record, { text: 'x', vector: null })])).toEqual([true]);
    expect(await store.load(ACME, 'semantic', 'fact', ['k1'])).toEqual([{ ...record, revision: 1 }]);
  });

  it('keeps a body of ten megabytes', async ({ store }) => {
    const body = JSON.stringify({ text: 'abcdefghi\n'.repeat(1_000_000) });
    await store.write('acme', [insert(recordOf({ body, text: 'y'.repeat(3_000_000) }))]);
    const [kept] = await store.load(ACME, 'semantic', 'fact', ['k1']);
    expect(kept?.body === body).toBe(true);
    expect(kept?.text).toHaveLength(3_000_000);
  });

  it('takes any key of up to 1,024 characters', async ({ store }) => {
    const keys = [
      ' ',
      'a\nb',
      "'; DROP TABLE record; --",
      '{"$ne":null}',
      '*',
      '../..',
      'ä',
      'a\u0308',
      'x'.repeat(1_024),
      '\u{1F600}',
      '\u0001',
    ];
    const changes = keys.map((key) => insert(recordOf({ key })));
    await store.write('acme', changes);
    const loaded = await store.load(ACME, 'semantic', 'fact', keys);
    expect(loaded.map(({ key }) => key)).toEqual(keys);
  });

  it('keeps everything when it is closed and opened again', async ({ store, reopen }) => {
    await store.write('acme', [searchable({}, 'parse csv', 1)]);
    const again = await reopen();
    expect(await again.load(ACME, 'semantic', 'fact', ['k1'])).toEqual([{ ...recordOf(), revision: 1 }]);
    const [found] = await again.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: 'csv', limit: 5 });
    expect([found?.cosine, found?.bm25]).toEqual([expect.closeTo(1, 4), expect.any(Number)]);
  });

  it('shows an answered write to every connection', async ({ store, second }) => {
    const other = await second();
    for (let i = 0; i < 10; i += 1) {
      await store.write('acme', [searchable({ key: `k${i}` }, `word${'x'.repeat(i)}`, 1)]);
      expect(await other.load(ACME, 'semantic', 'fact', [`k${i}`])).toHaveLength(1);
      expect(await other.search(ACME, 'semantic', { vector: null, text: `word${'x'.repeat(i)}`, limit: 5 })).toHaveLength(1);
      expect(await other.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: '', limit: 50 })).toHaveLength(i + 1);
    }
  });
}

function changing(it: ItOfStore): void {
  it('inserts nothing where the key is taken and goes on', async ({ store }) => {
    expect(await store.write('acme', [insert(recordOf({ text: 'first' }))])).toEqual([true]);
    const changes = [insert(recordOf({ text: 'second' })), insert(recordOf({ key: 'k2' })), insert(recordOf({ key: 'k2', text: 'third' }))];
    expect(await store.write('acme', changes)).toEqual([false, true, false]);
    const loaded = await store.load(ACME, 'semantic', 'fact', ['k1', 'k2']);
    expect(loaded.map(({ text }) => text)).toEqual(['first', 'text of k2']);
  });

  it('leaves one record when many insert the same key at once', async ({ store, second }) => {
    const stores = [store, await second(), await second()];
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => stores[i % 3]?.write('acme', [searchable({ text: `from ${i}` }, `writer${i}`, 1)])),
    );
    const winner = answers.findIndex((answer) => answer?.[0]);
    expect(answers.filter((answer) => answer?.[0])).toHaveLength(1);
    expect((await store.load(ACME, 'semantic', 'fact', ['k1']))[0]?.text).toBe(`from ${winner}`);
    const found = await store.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: `writer${winner}`, limit: 50 });
    expect(found).toMatchObject([{ key: 'k1', cosine: expect.closeTo(1, 4) }]);
  });

  it('loses no update of many at once', async ({ store, second }) => {
    const stores = [store, await second()];
    await store.write('acme', [insert(recordOf({ body: '0' }))]);
    await Promise.all(Array.from({ length: 20 }, (_, i) => addOne(stores[i % 2] ?? store)));
    expect((await store.load(ACME, 'semantic', 'fact', ['k1']))[0]).toMatchObject({ body: '20', revision: 21 });
  });

  it('never brings back a record that was removed', async ({ store }) => {
    await store.write('acme', [searchable({}, 'gone', 1)]);
    await store.remove({ tenant: 'acme' }, 'semantic', {});
    expect(await store.write('acme', [{ do: 'update', record: recordOf(), revision: 1 }])).toEqual([false]);
    const change: Change = { do: 'replace', record: recordOf(), indexed: [{ text: 'gone', vector: vectorOf({ 1: 1 }) }], revision: 1 };
    expect(await store.write('acme', [change])).toEqual([false]);
    expect(await store.setVectors('acme', { ...recordOf(), revision: 1 }, SAMPLE_MODEL.name, [vectorOf({ 1: 1 })])).toBe(false);
    expect(await store.load(ACME, 'semantic', 'fact', ['k1'])).toEqual([]);
    expect(await store.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: 'gone', limit: 5 })).toEqual([]);
    expect(await store.write('acme', [searchable({}, 'new', 1)])).toEqual([true]);
    expect((await store.load(ACME, 'semantic', 'fact', ['k1']))[0]?.revision).toBe(1);
  });

  it('applies changes in their order and stops at a stale one', async ({ store }) => {
    await store.write('acme', [insert(recordOf())]);
    const answers = await store.write('acme', [
      insert(recordOf({ key: 'before' })),
      { do: 'update', record: recordOf({ text: 'stale' }), revision: 7 },
      insert(recordOf({ key: 'behind' })),
    ]);
    expect(answers.slice(1)).toEqual([false, false]);
    const keys = await keysOfAll(store, { tenant: 'acme' });
    expect(keys).toEqual(answers[0] ? ['before', 'k1'] : ['k1']);
    expect((await store.load(ACME, 'semantic', 'fact', ['k1']))[0]).toMatchObject({ text: 'text of k1', revision: 1 });
  });

  it('applies a change of a record that the same list inserted', async ({ store }) => {
    const answers = await store.write('acme', [
      searchable({ key: 'a' }, 'first', 1),
      { do: 'update', record: recordOf({ key: 'a', text: 'second' }), revision: 1 },
      { do: 'replace', record: recordOf({ key: 'a', text: 'third' }), indexed: [{ text: 'third', vector: null }], revision: 2 },
    ]);
    expect(answers).toEqual([true, true, true]);
    expect(await store.load(ACME, 'semantic', 'fact', ['a'])).toMatchObject([{ text: 'third', revision: 3 }]);
    expect(await store.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: 'third', limit: 5 })).toMatchObject([{ cosine: 0 }]);
  });
}

/** Adds one to the number in the body of k1. Retries after a conflict. */
async function addOne(store: RecordStore): Promise<void> {
  for (;;) {
    const [known] = await store.load(ACME, 'semantic', 'fact', ['k1']);
    const record = recordOf({ body: String(Number(known?.body) + 1) });
    const [taken] = await store.write('acme', [{ do: 'update', record, revision: known?.revision ?? 0 }]);
    if (taken) return;
  }
}
