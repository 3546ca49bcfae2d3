import { until } from '@etude/test-support/until';
import { QdrantClient } from '@qdrant/js-client-rest';
import { randomUUID } from 'node:crypto';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { describeOnQdrant } from '../../test/describe-on-qdrant.js';
import { qdrantPlace } from '../../test/qdrant-under-test.js';
import { collect, recordOf, SAMPLE_MODEL, searchable, vectorOf } from '../../test/record-store-samples.js';
import type { RecordStore } from '../record-store.js';
import { openQdrantStore } from './qdrant-store.js';

const ACME = { tenant: 'acme', agent: null };
const RECORDS = 300;
const OTHER = { name: 'other-4', dimension: 4 };

/** Qdrant treats points in a rewritten segment differently from points written since. */
describeOnQdrant({ name: 'records in a rewritten segment' }, (server) => {
  let store: RecordStore;
  let collection: string;

  beforeEach(async () => {
    const collectionPrefix = `t${randomUUID().slice(0, 8)}`;
    collection = `${collectionPrefix}_semantic`;
    store = await openQdrantStore({ ...qdrantPlace(server(), collectionPrefix), model: SAMPLE_MODEL });
    onTestFinished(async () => {
      await store.close();
      await server().drop(collectionPrefix);
    });
    const many = Array.from({ length: RECORDS }, (_, i) => searchable({ key: `k${i}` }, i === 7 ? 'quince' : 'pear', 1 + (i % 7)));
    await store.write('acme', many);
  });

  const settle = async () => {
    const { url, apiKey } = server();
    const client = new QdrantClient({ url, checkCompatibility: false, ...(apiKey ? { apiKey } : {}) });
    await client.updateCollection(collection, {
      optimizers_config: { indexing_threshold: 1, deleted_threshold: 0.01, vacuum_min_vector_number: 100 },
    });
    const done = async () => (await client.getCollection(collection)).status === 'green';
    await until(done, { everyMs: 50, what: 'Qdrant at rest' });
  };
  const words = async (text: string) => (await store.search(ACME, 'semantic', { vector: null, text, limit: 5 })).map(({ key }) => key);

  it('are replaced with all their vectors', async () => {
    await store.addModel(OTHER);
    const moved = Float32Array.of(1, 0, 0, 0);
    expect(await store.setVectors('acme', { layer: 'semantic', kind: 'fact', key: 'k7', revision: 1 }, OTHER.name, [moved])).toBe(true);
    await settle();
    const replaced = [{ text: 'plum', vector: vectorOf({ 2: 1 }) }];
    expect(await store.write('acme', [{ do: 'replace', record: recordOf({ key: 'k7' }), indexed: replaced, revision: 1 }])).toEqual([true]);
    expect([await words('quince'), await words('plum')]).toEqual([[], ['k7']]);
    const without = await collect(store.each({ tenant: 'acme' }, 'semantic', { withoutVectorsOf: OTHER.name }));
    expect(without.map(({ key }) => key)).toContain('k7');
  });

  it('are replaced by one without words or a direction', async () => {
    await settle();
    const blank = [{ text: '', vector: null }];
    expect(await store.write('acme', [{ do: 'replace', record: recordOf({ key: 'k7' }), indexed: blank, revision: 1 }])).toEqual([true]);
    expect(await words('quince')).toEqual([]);
    const found = await store.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: '', limit: RECORDS });
    expect(['k0', 'k7'].map((name) => found.some(({ key }) => key === name))).toEqual([true, false]);
  });

  it('are updated without a loss of words and vectors', async () => {
    await settle();
    expect(await store.write('acme', [{ do: 'update', record: recordOf({ key: 'k7', worth: 0.3 }), revision: 1 }])).toEqual([true]);
    expect(await words('quince')).toEqual(['k7']);
    const found = await store.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: '', limit: RECORDS });
    expect(found.find(({ key }) => key === 'k7')).toMatchObject({ worth: 0.3, cosine: expect.closeTo(1, 4) });
  });

  it('get a higher weight for a rare word, also if most records are deleted', async () => {
    await store.remove({ tenant: 'acme' }, 'semantic', {});
    await store.write('acme', [
      searchable({ key: 'both' }, 'pear quince', 1),
      ...['a', 'b', 'c'].map((key) => searchable({ key }, 'pear', 1)),
    ]);
    const found = await store.search(ACME, 'semantic', { vector: null, text: 'pear quince', limit: 5 });
    expect(found.map(({ key }) => key)[0]).toBe('both');
    expect(found).toHaveLength(4);
    expect(Math.min(...found.map(({ bm25 }) => bm25))).toBeGreaterThan(0.000_1);
  });
});
