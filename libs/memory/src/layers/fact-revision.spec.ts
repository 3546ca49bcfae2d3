import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { episodeOf, factOf, SCOPE } from '@etude/domain/testing/memory-records';
import { beforeEach, expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import type { RecordStore } from '../record-store.js';
import { episodeRecord } from './episodic-layer.js';
import { factOfRecord, factRecord, learnedRecords } from './fact-records.js';
import { insertsOf } from './indexed-texts.js';
import { semanticLayer } from './semantic-layer.js';

const embedder = new LexicalEmbedder();
const other = { ...SCOPE, tenant: 'globex' };

let store: RecordStore;
beforeEach(async () => {
  store = modelStore();
  const records = [
    episodeRecord(episodeOf({ id: 'e1' })),
    factRecord(factOf({ id: 'f1', text: 'Zebras eat grass.' }), ['w1']),
    factRecord(factOf({ id: 'f2', text: 'Walruses eat clams.', validTo: 1 }), []),
  ];
  await store.write('acme', await insertsOf(embedder, records));
  await store.write('globex', await insertsOf(embedder, [factRecord(factOf({ id: 'f3', scope: other }), [])]));
});

const facts = async (tenant: string) => {
  const found = await store.find({ tenant, agent: null }, 'semantic', { kinds: ['fact'] }, { order: 'key', limit: 9 });
  return found.map(factOfRecord);
};

it('revises each fact that still holds, of one tenant', async () => {
  await learnedRecords(store).reviseFacts('acme', (fact) => ({ ...fact, validTo: 9 }));
  expect((await facts('acme')).map(({ id, validTo }) => [id, validTo])).toEqual([
    ['f1', 9],
    ['f2', 1],
  ]);
  expect((await facts('globex'))[0]?.validTo).toBeUndefined();
});

it('finds no fact by search that was withdrawn', async () => {
  const semantic = semanticLayer({ store, embedder, clock: { now: () => 9 } });
  const search = () => semantic.search({ tenant: 'acme', agent: null }, { text: 'Zebras eat grass.', limit: 5 });
  expect(await search()).toHaveLength(1);
  await learnedRecords(store).reviseFacts('acme', (fact) => ({ ...fact, validTo: 9 }));
  expect(await search()).toEqual([]);
  await semantic.close();
});
