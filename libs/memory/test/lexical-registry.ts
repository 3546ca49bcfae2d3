import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import type { LayerDeps } from '../src/layers/records.js';
import { proceduralLayer } from '../src/layers/procedural-layer.js';
import type { RecordStore } from '../src/record-store.js';

const embedder = new LexicalEmbedder();

/** The vector model of the stores under a registry. */
export const LEXICAL_MODEL = { name: embedder.profile.model, dimension: embedder.profile.dimension };

/** The procedural layer over one store. Its time is 0 unless a clock is given. */
export function registryOver(store: RecordStore, more: Partial<LayerDeps> = {}) {
  return proceduralLayer({ store, embedder, clock: { now: () => 0 }, ...more });
}
