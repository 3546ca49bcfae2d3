import { describe, expect } from 'vitest';
import type { StoreQuery } from '../src/record-store.js';
import { modelStore } from './model-store.js';
import type { ItOfStore } from './record-store-conformance.js';
import { ACME, insert, recordOf, searchable, vectorOf } from './record-store-samples.js';

const query = (part: Partial<StoreQuery>): StoreQuery => ({ vector: null, text: '', limit: 10, ...part });

/** Tests of what `search` finds. */
export function recordStoreSearchConformance(it: ItOfStore): void {
  describe('searching', () => {
    places(it);
    wording(it);
  });
}

function places(it: ItOfStore): void {
  it('fills its places with records, however many vectors one has', async ({ store }) => {
    const cues = Array.from({ length: 66 }, (_, i) => ({ text: `cue ${i}`, vector: vectorOf({ 1: 1, 2: i / 1_000 }) }));
    await store.write('acme', [
      ...Array.from({ length: 4 }, (_, i) => insert(recordOf({ key: `many${i}` }), ...cues)),
      ...Array.from({ length: 8 }, (_, i) => insert(recordOf({ key: `one${i}` }), { text: 'text', vector: vectorOf({ 1: 1, 2: 9 }) })),
    ]);
    const found = await store.search(ACME, 'semantic', query({ vector: vectorOf({ 1: 1 }), limit: 10 }));
    expect(found.slice(0, 4).map(({ key }) => key)).toEqual(['many3', 'many2', 'many1', 'many0']);
    expect(found).toHaveLength(10);
  });

  it('filters before it counts places, by vectors and by words', async ({ store }) => {
    const better = Array.from({ length: 300 }, (_, i) =>
      searchable({ key: `better${i}`, worth: 0.1, createdAt: 10, fields: { category: 'other' } }, 'csv', 1),
    );
    const wanted = insert(recordOf({ key: 'wanted', worth: 0.9, createdAt: 20, kind: 'summary', fields: { category: 'mine' } }), {
      text: 'csv and many other words beside',
      vector: vectorOf({ 1: 0.1, 2: 1 }),
    });
    await store.write('acme', [...better, wanted]);
    const ask = { vector: vectorOf({ 1: 1 }), text: 'csv', limit: 3 };
    for (const filter of [{ kinds: ['summary'] }, { worthMin: 0.9 }, { createdSince: 20 }, { where: { category: 'mine' } }] as const) {
      for (const part of [{}, { text: '' }, { vector: null }])
        expect(await store.search(ACME, 'semantic', query({ ...ask, ...filter, ...part }))).toMatchObject([{ key: 'wanted' }]);
    }
    expect(await store.search(ACME, 'semantic', query({ ...ask, createdBefore: 20, limit: 400 }))).toHaveLength(300);
    expect(await store.search(ACME, 'semantic', query({ ...ask, where: { category: 'nobody' } }))).toEqual([]);
  });
}

function wording(it: ItOfStore): void {
  it('finds code, identifiers and languages without spaces', async ({ store }) => {
    const texts = {
      snake: 'def parse_csv(path)',
      camel: 'parseCsv reads',
      plain: 'how to parse a csv file',
      kanji: '東京都の天気',
      other: 'sort numbers',
    };
    const changes = Object.entries(texts).map(([key, text]) => searchable({ key }, text));
    await store.write('acme', changes);
    const found = async (text: string) => (await store.search(ACME, 'semantic', query({ text }))).map(({ key }) => key).toSorted();
    expect(await found('parse csv')).toEqual(['camel', 'plain', 'snake']);
    expect(await found('PARSE_CSV')).toEqual(['camel', 'plain', 'snake']);
    expect(await found('天気')).toEqual(['kanji']);
    expect(await found('numbers parsing')).toEqual(['camel', 'other', 'plain', 'snake']);
  });

  it('treats no character of a query as syntax', async ({ store }) => {
    await store.write('acme', [searchable({}, 'plain words', 1)]);
    for (const text of [
      '"',
      '*',
      'NEAR(a b)',
      'words:plain',
      '^plain',
      "'; DROP TABLE x; --",
      'a AND',
      '\u0000',
      '((((',
      '{"$ne":1}',
      'x'.repeat(100_000),
    ]) {
      expect(await store.search(ACME, 'semantic', query({ text }))).toHaveLength(text.includes('plain') ? 1 : 0);
    }
  });

  it('weighs words by BM25 with the statistics of the tenant’s own layer', async ({ store }) => {
    const model = modelStore();
    const changes = ['csv csv csv file', 'csv', `csv ${'filler '.repeat(100)}`, 'json file', 'yaml', '…'].map((text, i) =>
      searchable({ key: `k${i}` }, text),
    );
    for (const each of [store, model]) await each.write('acme', changes);
    for (let i = 0; i < 5; i += 1) {
      const scope = { tenant: 'beta', agent: 'coder', user: null };
      await store.write('beta', [insert(recordOf({ key: `k${i}`, scope }), { text: 'csv file', vector: null })]);
      await store.write('acme', [searchable({ key: `e${i}`, layer: 'episodic', kind: 'episode' }, 'csv file')]);
    }
    for (const text of ['csv', 'csv file', 'the json yaml file']) {
      const found = await store.search(ACME, 'semantic', query({ text }));
      const expected = await model.search(ACME, 'semantic', query({ text }));
      expect(found.map(({ key }) => key)).toEqual(expected.map(({ key }) => key));
      expect(found.map(({ bm25 }) => bm25)).toEqual(expected.map(({ bm25 }) => expect.closeTo(bm25, 3)));
    }
  });
}
