import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { ISOLATION_CLOCK, layersIsolation } from '../../test/layers-isolation.js';
import { modelStore } from '../../test/model-store.js';
import { memoryOver } from '../open-memory.js';

layersIsolation(
  'a plain array',
  async () => {
    const memory = memoryOver(modelStore(), { embedder: new LexicalEmbedder(), clock: ISOLATION_CLOCK });
    return { memory, close: () => memory.close() };
  },
  { runs: 15 },
);
