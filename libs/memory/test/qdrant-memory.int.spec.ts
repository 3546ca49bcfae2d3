import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { openMemory } from '../src/open-memory.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { memoryConformance } from './memory-conformance.js';
import { emptyStore, qdrantPlace } from './qdrant-under-test.js';

describeOnQdrant({ name: 'memory' }, (server) => {
  memoryConformance(
    'qdrant',
    async (options) => {
      // Emptying collections is faster than making them.
      const memory = await openMemory({ store: qdrantPlace(server(), 'shared'), embedder: new LexicalEmbedder(), ...options });
      await emptyStore(memory.store);
      return { memory, close: () => memory.close() };
    },
    { isolationRuns: 2 },
  );
});
