import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { episodicMemoryConformance } from '@etude/domain/testing/episodic-memory-conformance';
import { proceduralMemoryConformance } from '@etude/domain/testing/procedural-memory-conformance';
import { describe } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { RecordEpisodicLayer } from './episodic-layer.js';
import { RecordProceduralLayer } from './procedural-layer.js';

const deps = () => ({ store: modelStore(), embedder: new LexicalEmbedder(), clock: { now: Date.now } });

describe('RecordEpisodicLayer', () => {
  episodicMemoryConformance(async () => ({ memory: new RecordEpisodicLayer(deps()) }));
});
describe('RecordProceduralLayer', () => {
  proceduralMemoryConformance(async () => ({ memory: new RecordProceduralLayer(deps()) }));
});
