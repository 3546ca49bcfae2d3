import { describe, expect, it, onTestFinished } from 'vitest';
import type { Change, RecordStore, StoreOptions } from '../src/record-store.js';
import { recordStoreIsolation } from './record-store-isolation.js';
import { ACME, BETA, collect, insert, keysFound, keysOfAll, recordOf, SAMPLE_MODEL, searchable, vectorOf } from './record-store-samples.js';
import { recordStoreSearchConformance } from './record-store-search-conformance.js';
import { recordStoreUpkeepConformance } from './record-store-upkeep-conformance.js';

/** An empty store of the kind under test that reads and writes with `SAMPLE_MODEL`. */
export interface StoreUnderTest {
  readonly store: RecordStore;
  /** Closes the store and opens what it left, with `SAMPLE_MODEL` unless another is named. */
  readonly reopen: (model?: StoreOptions['model']) => Promise<RecordStore>;
  /** Another connection to the same data, as another process has it. */
  readonly second: (model?: StoreOptions['model']) => Promise<RecordStore>;
  /** Closes all that were opened, and removes the data. */
  readonly close: () => Promise<void>;
}

export type OpenStore = () => Promise<StoreUnderTest>;

/** What every adapter of `RecordStore` does alike. `open` is called once per test. */
export function recordStoreConformance(name: string, open: OpenStore): void {
  const opened = async (): Promise<StoreUnderTest> => {
    const made = await open();
    onTestFinished(() => made.close());
    return made;
  };
  describe(`${name} record store`, () => {
    describe('keeping', () => {
      keeping(opened);
    });
    describe('changing', () => {
      changing(opened);
    });
    describe('finding', () => {
      finding(opened);
    });
    recordStoreUpkeepConformance(opened);
    recordStoreSearchConformance(opened);
    recordStoreIsolation(opened);
  });
}

function keeping(opened: OpenStore): void {
  it('gives back a record as it was stored', async () => {
    const { store } = await opened();
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

  it('keeps a body of ten megabytes', async () => {
    const { store } = await opened();
    const body = JSON.stringify({ text: 'abcdefghi\n'.repeat(1_000_000) });
    await store.write('acme', [insert(recordOf({ body, text: 'y'.repeat(3_000_000) }))]);
    const [kept] = await store.load(ACME, 'semantic', 'fact', ['k1']);
    expect(kept?.body === body).toBe(true);
    expect(kept?.text).toHaveLength(3_000_000);
  });

  it('takes any key of up to 1,024 characters', async () => {
    const { store } = await opened();
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
    await store.write(
      'acme',
      keys.map((key) => insert(recordOf({ key }))),
    );
    const loaded = await store.load(ACME, 'semantic', 'fact', keys);
    expect(loaded.map(({ key }) => key)).toEqual(keys);
  });

  it('keeps the same key apart by kind, layer and tenant', async () => {
    const { store } = await opened();
    await store.write('acme', [
      insert(recordOf({ text: 'fact' })),
      insert(recordOf({ kind: 'summary', text: 'summary' })),
      insert(recordOf({ kind: 'applied', text: 'applied' })),
      insert(recordOf({ layer: 'procedural', kind: 'applied', text: 'applied skill' })),
    ]);
    await store.write('beta', [insert(recordOf({ scope: { tenant: 'beta', agent: 'coder', user: null }, text: 'of beta' }))]);
    const text = async (...at: Parameters<RecordStore['load']>) => (await store.load(...at)).map((record) => record.text);
    expect(await text(ACME, 'semantic', 'fact', ['k1'])).toEqual(['fact']);
    expect(await text(ACME, 'semantic', 'summary', ['k1'])).toEqual(['summary']);
    expect(await text(ACME, 'semantic', 'applied', ['k1'])).toEqual(['applied']);
    expect(await text(ACME, 'procedural', 'applied', ['k1'])).toEqual(['applied skill']);
    expect(await text(BETA, 'semantic', 'fact', ['k1'])).toEqual(['of beta']);
  });

  it('loads those that there are in the order of the keys', async () => {
    const { store } = await opened();
    await store.write(
      'acme',
      ['a', 'b', 'c'].map((key) => insert(recordOf({ key }))),
    );
    const loaded = await store.load(ACME, 'semantic', 'fact', ['c', 'none', 'a']);
    expect(loaded.map(({ key }) => key)).toEqual(['c', 'a']);
    expect(await store.load(ACME, 'semantic', 'fact', [])).toEqual([]);
  });

  it('keeps everything when it is closed and opened again', async () => {
    const { store, reopen } = await opened();
    await store.write('acme', [searchable({}, 'parse csv', 1)]);
    const again = await reopen();
    expect(await again.load(ACME, 'semantic', 'fact', ['k1'])).toEqual([{ ...recordOf(), revision: 1 }]);
    const { dense, words } = await again.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: 'csv', limit: 5 });
    expect([dense.length, words.length]).toEqual([1, 1]);
  });

  it('shows an answered write to every connection', async () => {
    const { store, second } = await opened();
    const other = await second();
    for (let i = 0; i < 10; i += 1) {
      await store.write('acme', [searchable({ key: `k${i}` }, `word${'x'.repeat(i)}`, 1)]);
      expect(await other.load(ACME, 'semantic', 'fact', [`k${i}`])).toHaveLength(1);
      expect((await other.search(ACME, 'semantic', { vector: null, text: `word${'x'.repeat(i)}`, limit: 5 })).words).toHaveLength(1);
      expect((await other.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: '', limit: 50 })).dense).toHaveLength(i + 1);
    }
  });
}

function changing(opened: OpenStore): void {
  it('inserts nothing where the key is taken and goes on', async () => {
    const { store } = await opened();
    expect(await store.write('acme', [insert(recordOf({ text: 'first' }))])).toEqual([true]);
    const changes = [insert(recordOf({ text: 'second' })), insert(recordOf({ key: 'k2' })), insert(recordOf({ key: 'k2', text: 'third' }))];
    expect(await store.write('acme', changes)).toEqual([false, true, false]);
    const loaded = await store.load(ACME, 'semantic', 'fact', ['k1', 'k2']);
    expect(loaded.map(({ text }) => text)).toEqual(['first', 'text of k2']);
  });

  it('leaves one record when many insert the same key at once', async () => {
    const { store, second } = await opened();
    const stores = [store, await second(), await second()];
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, i) => stores[i % 3]?.write('acme', [searchable({ text: `from ${i}` }, `writer${i}`, 1)])),
    );
    const winner = answers.findIndex((answer) => answer?.[0]);
    expect(answers.filter((answer) => answer?.[0])).toHaveLength(1);
    expect((await store.load(ACME, 'semantic', 'fact', ['k1']))[0]?.text).toBe(`from ${winner}`);
    const { dense, words } = await store.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: `writer${winner}`, limit: 50 });
    expect([dense.length, words.length]).toEqual([1, 1]);
  });

  it('counts revisions and refuses a stale one', async () => {
    const { store } = await opened();
    await store.write('acme', [searchable({}, 'old words', 1)]);
    expect(await store.write('acme', [{ do: 'update', record: recordOf({ worth: 0.9 }), revision: 1 }])).toEqual([true]);
    expect(await store.write('acme', [{ do: 'update', record: recordOf({ worth: 0.1 }), revision: 1 }])).toEqual([false]);
    expect(await store.write('acme', [{ do: 'replace', record: recordOf({ worth: 0.1 }), indexed: [], revision: 3 }])).toEqual([false]);
    expect(await store.load(ACME, 'semantic', 'fact', ['k1'])).toEqual([{ ...recordOf({ worth: 0.9 }), revision: 2 }]);
  });

  it('loses no update of many at once', async () => {
    const { store, second } = await opened();
    const stores = [store, await second()];
    await store.write('acme', [insert(recordOf({ body: '0' }))]);
    await Promise.all(Array.from({ length: 20 }, (_, i) => addOne(stores[i % 2] ?? store)));
    expect((await store.load(ACME, 'semantic', 'fact', ['k1']))[0]).toMatchObject({ body: '20', revision: 21 });
  });

  it('replaces texts and vectors, and updates without them', async () => {
    const { store } = await opened();
    await store.write('acme', [
      insert(recordOf(), { text: 'apple', vector: vectorOf({ 1: 1 }) }, { text: 'pear', vector: vectorOf({ 2: 1 }) }),
    ]);
    await store.write('acme', [{ do: 'update', record: recordOf({ worth: 1, createdAt: 5_000, text: 'changed' }), revision: 1 }]);
    const search = (text: string, axis: number) => store.search(ACME, 'semantic', { vector: vectorOf({ [axis]: 1 }), text, limit: 5 });
    expect((await search('pear', 2)).dense[0]).toMatchObject({ cosine: expect.closeTo(1, 4), worth: 1, createdAt: 5_000 });
    expect((await search('pear', 2)).words).toHaveLength(1);
    const indexed = [{ text: 'plum', vector: vectorOf({ 3: 1 }) }];
    await store.write('acme', [{ do: 'replace', record: recordOf({ text: 'plum' }), indexed, revision: 2 }]);
    expect((await search('pear', 2)).words).toEqual([]);
    expect((await search('pear', 2)).dense[0]?.cosine).toBeCloseTo(0, 4);
    expect((await search('plum', 3)).dense[0]?.cosine).toBeCloseTo(1, 4);
    expect((await search('plum', 3)).words).toHaveLength(1);
  });

  it('never brings back a record that was removed', async () => {
    const { store } = await opened();
    await store.write('acme', [searchable({}, 'gone', 1)]);
    await store.remove({ tenant: 'acme' }, 'semantic', {});
    expect(await store.write('acme', [{ do: 'update', record: recordOf(), revision: 1 }])).toEqual([false]);
    const change: Change = { do: 'replace', record: recordOf(), indexed: [{ text: 'gone', vector: vectorOf({ 1: 1 }) }], revision: 1 };
    expect(await store.write('acme', [change])).toEqual([false]);
    expect(await store.setVectors('acme', { ...recordOf(), revision: 1 }, SAMPLE_MODEL.name, [vectorOf({ 1: 1 })])).toBe(false);
    expect(await store.load(ACME, 'semantic', 'fact', ['k1'])).toEqual([]);
    expect(await store.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: 'gone', limit: 5 })).toEqual({ dense: [], words: [] });
    expect(await store.write('acme', [searchable({}, 'new', 1)])).toEqual([true]);
    expect((await store.load(ACME, 'semantic', 'fact', ['k1']))[0]?.revision).toBe(1);
  });

  it('applies changes in their order and stops at a stale one', async () => {
    const { store } = await opened();
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

  it('takes a change of what the same list inserted', async () => {
    const { store } = await opened();
    const answers = await store.write('acme', [
      searchable({ key: 'a' }, 'first', 1),
      { do: 'update', record: recordOf({ key: 'a', text: 'second' }), revision: 1 },
      { do: 'replace', record: recordOf({ key: 'a', text: 'third' }), indexed: [{ text: 'third', vector: null }], revision: 2 },
    ]);
    expect(answers).toEqual([true, true, true]);
    expect(await store.load(ACME, 'semantic', 'fact', ['a'])).toMatchObject([{ text: 'third', revision: 3 }]);
    expect((await store.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: 'third', limit: 5 })).dense).toEqual([]);
  });

  it('takes a list of a thousand changes, and an empty one', async () => {
    const { store } = await opened();
    expect(await store.write('acme', [])).toEqual([]);
    const many = Array.from({ length: 1_000 }, (_, i) => searchable({ key: `k${i}` }, `number ${i}`, i % 8));
    expect(await store.write('acme', many)).toEqual(many.map(() => true));
    expect(await store.count({ tenant: 'acme' }, 'semantic', {})).toBe(1_000);
  });
}

/** Adds one to the number that is the body of k1, however often it takes. */
async function addOne(store: RecordStore): Promise<void> {
  for (;;) {
    const [known] = await store.load(ACME, 'semantic', 'fact', ['k1']);
    const record = recordOf({ body: String(Number(known?.body) + 1) });
    const [taken] = await store.write('acme', [{ do: 'update', record, revision: known?.revision ?? 0 }]);
    if (taken) return;
  }
}

function finding(opened: OpenStore): void {
  it('finds the newest first, then by key descending', async () => {
    const { store } = await opened();
    const ages = { a: 1, b: 3, c: 2, d: 3 };
    await store.write(
      'acme',
      Object.entries(ages).map(([key, createdAt]) => insert(recordOf({ key, createdAt }))),
    );
    const newest = async (limit: number) => store.find(ACME, 'semantic', {}, { order: 'newest', limit });
    expect((await newest(10)).map(({ key }) => key)).toEqual(['d', 'b', 'c', 'a']);
    expect((await newest(2)).map(({ key }) => key)).toEqual(['d', 'b']);
    expect(await newest(0)).toEqual([]);
  });

  it('pages by key in the order of code points', async () => {
    const { store } = await opened();
    const keys = ['B', 'a', 'a b', 'b', 'ä', '\uFF5E', '\u{1F600}'];
    await store.write(
      'acme',
      keys.toReversed().map((key) => insert(recordOf({ key }))),
    );
    const seen: string[] = [];
    for (;;) {
      const afterKey = seen.at(-1);
      const page = await store.find(
        ACME,
        'semantic',
        { kinds: ['fact'] },
        { order: 'key', limit: 2, ...(afterKey === undefined ? {} : { afterKey }) },
      );
      if (page.length === 0) break;
      seen.push(...page.map(({ key }) => key));
    }
    expect(seen).toEqual(keys);
  });

  it('looks up by fields exactly, all of them, any value of each', async () => {
    const { store } = await opened();
    const fields = {
      one: { name: 'sum', status: 'active' },
      two: { name: 'sum', status: 'archived' },
      three: { name: 'Sum', fingerprint: ['f1', 'f2'] },
    };
    await store.write(
      'acme',
      Object.entries(fields).map(([key, values]) => insert(recordOf({ key, fields: values }))),
    );
    expect(await keysFound(store, { where: { name: 'sum' } })).toEqual(['one', 'two']);
    expect(await keysFound(store, { where: { name: 'sum', status: 'active' } })).toEqual(['one']);
    expect(await keysFound(store, { where: { status: ['active', 'archived'] } })).toEqual(['one', 'two']);
    expect(await keysFound(store, { where: { fingerprint: 'f2' } })).toEqual(['three']);
    expect(await keysFound(store, { where: { fingerprint: ['f1', 'f2'] } })).toEqual(['three']);
    expect(await keysFound(store, { where: { status: [] } })).toEqual([]);
    expect(await keysFound(store, { where: {} })).toHaveLength(3);
    for (const value of ['su%', '*', 'sum*', '{"$ne":""}', "' OR 1=1 --", '', 'sum ', 'SUM']) {
      expect(await keysFound(store, { where: { name: value } })).toEqual([]);
    }
  });

  it('follows fields that an update changed', async () => {
    const { store } = await opened();
    await store.write('acme', [insert(recordOf({ fields: { status: 'candidate', fingerprint: ['f1', 'f2'] } }))]);
    await store.write('acme', [
      { do: 'update', record: recordOf({ fields: { status: 'active', fingerprint: ['f2', 'f3'] } }), revision: 1 },
    ]);
    const found = async (where: object) => (await keysFound(store, { where })).length;
    expect([await found({ status: 'candidate' }), await found({ fingerprint: 'f1' })]).toEqual([0, 0]);
    expect([await found({ status: 'active' }), await found({ fingerprint: 'f2' }), await found({ fingerprint: 'f3' })]).toEqual([1, 1, 1]);
  });

  it('filters by kind, age, worth and whether it is shown', async () => {
    const { store } = await opened();
    await store.write('acme', [
      insert(recordOf({ key: 'a', createdAt: 10, worth: 0.2 })),
      insert(recordOf({ key: 'b', createdAt: 20, worth: 0.7, shown: false })),
      insert(recordOf({ key: 'c', createdAt: 30, worth: 0.7, kind: 'summary' })),
    ]);
    expect(await keysFound(store, { kinds: ['fact'] })).toEqual(['a', 'b']);
    expect(await keysFound(store, { kinds: ['summary', 'fact'] })).toEqual(['a', 'b', 'c']);
    expect(await keysFound(store, { kinds: [] })).toEqual([]);
    expect(await keysFound(store, { shown: false })).toEqual(['b']);
    expect(await keysFound(store, { createdSince: 20 })).toEqual(['b', 'c']);
    expect(await keysFound(store, { createdBefore: 20 })).toEqual(['a']);
    expect(await keysFound(store, { worthMin: 0.7 })).toEqual(['b', 'c']);
  });

  it('comes by every record once, beyond any page', async () => {
    const { store } = await opened();
    const many = Array.from({ length: 2_500 }, (_, i) => insert(recordOf({ key: `k${i}`, createdAt: i % 3, shown: i % 2 === 0 })));
    await store.write('acme', many);
    const all = await collect(store.each({ tenant: 'acme' }, 'semantic', {}));
    expect(new Set(all.map(({ key }) => key)).size).toBe(2_500);
    expect(all).toHaveLength(2_500);
    expect(await store.count({ tenant: 'acme' }, 'semantic', { shown: true })).toBe(1_250);
    expect(await store.find(ACME, 'semantic', {}, { order: 'newest', limit: 5_000 })).toHaveLength(2_500);
    expect(
      await store.load(
        ACME,
        'semantic',
        'fact',
        all.map(({ key }) => key),
      ),
    ).toHaveLength(2_500);
  });

  it('lets records be changed and removed while it comes by', async () => {
    const { store } = await opened();
    await store.write(
      'acme',
      Array.from({ length: 1_500 }, (_, i) => insert(recordOf({ key: `k${i}` }))),
    );
    const seen = new Set<string>();
    for await (const page of store.each({ tenant: 'acme' }, 'semantic', {})) {
      for (const { key } of page) seen.add(key);
      const [first] = page;
      if (first) await store.write('acme', [{ do: 'update', record: recordOf({ key: first.key }), revision: first.revision }]);
    }
    expect(seen.size).toBe(1_500);
  });
}
