import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { join } from 'node:path';
import { openMemory } from '../src/open-memory.js';
import { memoryConformance } from './memory-conformance.js';
import { temporaryDirectory } from './temporary-memory.js';

memoryConformance(
  'sqlite',
  async (options) => {
    const { path, remove } = temporaryDirectory();
    const store = { adapter: 'sqlite', path: join(path, 'memory.sqlite') } as const;
    const memory = await openMemory({ store, embedder: new LexicalEmbedder(), ...options });
    const close = async () => {
      await memory.close();
      remove();
    };
    return { memory, close };
  },
  { isolationRuns: 25 },
);
