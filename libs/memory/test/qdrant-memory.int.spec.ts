import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { randomUUID } from 'node:crypto';
import { openMemory } from '../src/open-memory.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { memoryConformance } from './memory-conformance.js';
import { qdrantPlace } from './qdrant-under-test.js';

describeOnQdrant({ name: 'memory' }, (server) => {
  memoryConformance(
    'qdrant',
    async (options) => {
      const collectionPrefix = `m${randomUUID().slice(0, 8)}`;
      const memory = await openMemory({ store: qdrantPlace(server(), collectionPrefix), embedder: new LexicalEmbedder(), ...options });
      const close = async () => {
        await memory.close();
        await server().drop(collectionPrefix);
      };
      return { memory, close };
    },
    { isolationRuns: 4 },
  );
});
