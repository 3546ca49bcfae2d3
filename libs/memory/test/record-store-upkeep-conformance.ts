import { SCOPES_WITHOUT_TENANT } from '@etude/domain/testing/memory-conformance-start';
import { expect } from 'vitest';
import type { Change } from '../src/record-store.js';
import type { ItOfStore } from './record-store-conformance.js';
import { ACME, collect, insert, keysOfAll, OTHER_MODEL, recordOf, SAMPLE_MODEL, searchable, vectorOf } from './record-store-samples.js';

/** Tests of removal, refusals, vector models and maintenance. */
export function recordStoreUpkeepConformance(it: ItOfStore): void {
  removing(it);
  guarding(it);
  models(it);
  upkeep(it);
}

function owned(key: string, agent: string, user: string | null): Change {
  return searchable({ key, scope: { tenant: 'acme', agent, user } }, `word ${key}`, 1);
}

function removing(it: ItOfStore): void {
  it('purges removed records and reports the steps', async ({ store }) => {
    await store.write('acme', [owned('a', 'coder', null), owned('b', 'coder', 'ann')]);
    await store.remove({ tenant: 'acme', user: 'ann' }, 'semantic', {});
    const done = await store.purge();
    expect(done.length).toBeGreaterThan(0);
    expect(await keysOfAll(store, { tenant: 'acme' })).toEqual(['a']);
    expect(await store.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: 'word', limit: 9 })).toHaveLength(1);
  });

  it('names the tenants that have records', async ({ store }) => {
    expect(await store.tenants()).toEqual([]);
    await store.write('beta', [insert(recordOf({ scope: { tenant: 'beta', agent: 'coder', user: null } }))]);
    await store.write('acme', [insert(recordOf({ layer: 'procedural', kind: 'skill' }))]);
    expect(await store.tenants()).toEqual(['acme', 'beta']);
    await store.remove({ tenant: 'beta' }, 'semantic', {});
    expect(await store.tenants()).toEqual(['acme']);
  });
}

function guarding(it: ItOfStore): void {
  it('fails closed without a tenant', async ({ store }) => {
    await store.write('acme', [searchable({}, 'secret', 1)]);
    for (const scope of SCOPES_WITHOUT_TENANT) {
      const refused = { code: 'TENANT_MISSING' };
      await expect(store.load(scope, 'semantic', 'fact', ['k1'])).rejects.toMatchObject(refused);
      await expect(store.find(scope, 'semantic', {}, { order: 'newest', limit: 5 })).rejects.toMatchObject(refused);
      await expect(store.search(scope, 'semantic', { vector: null, text: 'secret', limit: 5 })).rejects.toMatchObject(refused);
    }
    for (const tenant of ['', ' ', undefined as unknown as string, null as unknown as string]) {
      const refused = { code: 'TENANT_MISSING' };
      await expect(store.count({ tenant }, 'semantic', {})).rejects.toMatchObject(refused);
      await expect(store.remove({ tenant }, 'semantic', {})).rejects.toMatchObject(refused);
      await expect(collect(store.each({ tenant }, 'semantic', {}))).rejects.toMatchObject(refused);
      await expect(store.write(tenant, [insert(recordOf())])).rejects.toMatchObject(refused);
      await expect(store.setVectors(tenant, { ...recordOf(), revision: 1 }, SAMPLE_MODEL.name, [null])).rejects.toMatchObject(refused);
    }
    expect(await keysOfAll(store, { tenant: 'acme' })).toEqual(['k1']);
  });

  it('refuses a record of another tenant, with the whole list', async ({ store }) => {
    const strange = insert(recordOf({ key: 'b', scope: { tenant: 'beta', agent: 'coder', user: null } }));
    await expect(store.write('acme', [insert(recordOf({ key: 'a' })), strange])).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
    expect(await store.tenants()).toEqual([]);
  });

  it('refuses vectors of a wrong length and with NaN', async ({ store }) => {
    await store.write('acme', [searchable({}, 'kept', 1)]);
    for (const vector of [
      new Float32Array(3).fill(1),
      new Float32Array(9).fill(1),
      vectorOf({ 1: 1 }).with(2, Number.NaN),
      vectorOf({ 1: 1 }).with(2, Infinity),
    ]) {
      const refused = { code: 'EMBEDDING_LENGTH_WRONG' };
      await expect(store.write('acme', [insert(recordOf({ key: 'bad' }), { text: 'bad', vector })])).rejects.toMatchObject(refused);
      await expect(store.search(ACME, 'semantic', { vector, text: 'kept', limit: 5 })).rejects.toMatchObject(refused);
      await expect(store.setVectors('acme', { ...recordOf(), revision: 1 }, SAMPLE_MODEL.name, [vector])).rejects.toMatchObject(refused);
    }
    expect(await keysOfAll(store, { tenant: 'acme' })).toEqual(['k1']);
  });
}

function models(it: ItOfStore): void {
  it('refuses another model or dimension, and names the way out', async ({ second }) => {
    for (const model of [OTHER_MODEL, { ...SAMPLE_MODEL, dimension: 9 }]) {
      await expect(second(model)).rejects.toMatchObject({
        code: 'MEMORY_VERSION',
        message: expect.stringMatching(/sample-8.*ETUDE_EMBEDDING_MODEL=sample-8 ETUDE_EMBEDDING_DIMENSION=8 .*etude memory reembed/s),
      });
    }
    await expect(second(OTHER_MODEL)).rejects.toMatchObject({ message: expect.stringContaining('other-4') });
  });

  it('adds another model beside the old one', async ({ store, second }) => {
    await store.write('acme', [searchable({ key: 'a' }, 'apple', 1), searchable({ key: 'b' }, 'pear'), insert(recordOf({ key: 'c' }))]);
    await store.addModel(OTHER_MODEL);
    await store.addModel(OTHER_MODEL);
    expect(await store.models()).toEqual(
      expect.arrayContaining([
        { ...SAMPLE_MODEL, state: 'ready' },
        { ...OTHER_MODEL, state: 'building' },
      ]),
    );
    await expect(second(OTHER_MODEL)).rejects.toMatchObject({ code: 'MEMORY_VERSION' });
    const missing = async () =>
      (await collect(store.each({ tenant: 'acme' }, 'semantic', { withoutVectorsOf: OTHER_MODEL.name }))).map(({ key }) => key).toSorted();
    expect(await missing()).toEqual(['a', 'b']);
    expect(await store.setVectors('acme', { ...recordOf({ key: 'a' }), revision: 1 }, OTHER_MODEL.name, [vectorOf({ 2: 1 }, 4)])).toBe(
      true,
    );
    expect(await missing()).toEqual(['b']);
    expect(await store.setVectors('acme', { ...recordOf({ key: 'b' }), revision: 1 }, OTHER_MODEL.name, [null])).toBe(true);
    expect(await missing()).toEqual([]);
    expect(await store.setVectors('acme', { ...recordOf({ key: 'a' }), revision: 2 }, OTHER_MODEL.name, [null])).toBe(false);
    await store.setModelReady(OTHER_MODEL.name);
    const other = await second(OTHER_MODEL);
    const found = await other.search(ACME, 'semantic', { vector: vectorOf({ 2: 1 }, 4), text: 'pear', limit: 5 });
    expect(found).toMatchObject([
      { key: 'b', cosine: 0 },
      { key: 'a', cosine: expect.closeTo(1, 4), bm25: 0 },
    ]);
  });

  it('drops vectors of other models on a replacement, not on an update', async ({ store }) => {
    await store.write('acme', [searchable({ key: 'a' }, 'apple', 1), searchable({ key: 'b' }, 'pear', 2)]);
    await store.addModel(OTHER_MODEL);
    for (const key of ['a', 'b'])
      await store.setVectors('acme', { ...recordOf({ key }), revision: 1 }, OTHER_MODEL.name, [vectorOf({ 1: 1 }, 4)]);
    await store.write('acme', [
      { do: 'update', record: recordOf({ key: 'a', worth: 1 }), revision: 1 },
      { do: 'replace', record: recordOf({ key: 'b' }), indexed: [{ text: 'plum', vector: vectorOf({ 3: 1 }) }], revision: 1 },
    ]);
    const missing = await collect(store.each({ tenant: 'acme' }, 'semantic', { withoutVectorsOf: OTHER_MODEL.name }));
    expect(missing.map(({ key }) => key)).toEqual(['b']);
    expect(await collect(store.each({ tenant: 'acme' }, 'semantic', { withoutVectorsOf: SAMPLE_MODEL.name }))).toEqual([]);
  });

  it('drops a model with its vectors', async ({ store, reopen }) => {
    await store.write('acme', [searchable({}, 'apple', 1)]);
    await store.addModel(OTHER_MODEL);
    await store.setVectors('acme', { ...recordOf(), revision: 1 }, OTHER_MODEL.name, [vectorOf({ 1: 1 }, 4)]);
    await store.setModelReady(OTHER_MODEL.name);
    const other = await reopen(OTHER_MODEL);
    await other.dropModel(SAMPLE_MODEL.name);
    expect(await other.models()).toEqual([{ ...OTHER_MODEL, state: 'ready' }]);
    expect(await other.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }, 4), text: '', limit: 5 })).toHaveLength(1);
    expect(await other.damage()).toEqual([]);
  });
}

function upkeep(it: ItOfStore): void {
  it('is ready, has a size, and closes twice', async ({ store }) => {
    await store.check();
    const diskBytes = store.diskBytes();
    expect(diskBytes === null || diskBytes > 0).toBe(true);
    await store.close();
    await store.close();
    await expect(store.load(ACME, 'semantic', 'fact', ['k1'])).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE' });
  });
}
