import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { describeQdrant, findQdrant, startQdrant, type TestQdrant } from '@etude/test-support/qdrant';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe } from 'vitest';
import { openMemory } from '../src/open-memory.js';
import { memoryConformance } from './memory-conformance.js';

const source = await findQdrant();
const START_TIMEOUT_MS = 90_000;

describe.skipIf(source.kind === 'none')('memory', () => {
  let qdrant: TestQdrant;
  beforeAll(async () => {
    console.log(describeQdrant(source));
    qdrant = await startQdrant(source);
  }, START_TIMEOUT_MS);
  afterAll(() => qdrant?.stop());

  memoryConformance(
    'qdrant',
    async (options) => {
      const { url, apiKey, caPath } = qdrant;
      const collectionPrefix = `m${randomUUID().slice(0, 8)}`;
      const store = { adapter: 'qdrant', url, apiKey, caPath, collectionPrefix, timeoutMs: 30_000 } as const;
      const memory = await openMemory({ store, embedder: new LexicalEmbedder(), ...options });
      const close = async () => {
        await memory.close();
        await qdrant.drop(collectionPrefix);
      };
      return { memory, close };
    },
    { isolationRuns: 4 },
  );
});
