import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { semanticLayerConformance } from '@etude/domain/testing/semantic-layer-conformance';
import { semanticMemoryConformance } from '@etude/domain/testing/semantic-memory-conformance';
import { describe } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { RecordSemanticLayer } from './semantic-layer.js';

const make = async () => {
  const memory = new RecordSemanticLayer({ store: modelStore(), embedder: new LexicalEmbedder(), clock: { now: Date.now } });
  return { memory, close: () => memory.close() };
};

describe('RecordSemanticLayer', () => {
  semanticMemoryConformance(make);
  semanticLayerConformance(make);
});
