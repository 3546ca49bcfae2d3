import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { LAYERS } from '../src/record-store.js';
import { openMemory } from '../src/open-memory.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { memoryConformance } from './memory-conformance.js';
import { qdrantPlace } from './qdrant-under-test.js';

describeOnQdrant({ name: 'memory' }, (server) => {
  memoryConformance(
    'qdrant',
    async (options) => {
      // Emptying collections is faster than creating them.
      const memory = await openMemory({ store: qdrantPlace(server(), 'shared'), embedder: new LexicalEmbedder(), ...options });
      for (const tenant of await memory.store.tenants()) for (const layer of LAYERS) await memory.store.remove({ tenant }, layer, {});
      return { memory, close: () => memory.close() };
    },
    { isolationRuns: 4 },
  );
});
