import { consolidationUnits } from './layers/consolidation-units.js';
import { conversationLayer } from './layers/conversations.js';
import { episodicLayer } from './layers/episodic-layer.js';
import { itemShows } from './layers/item-shows.js';
import { type LayerDeps, sharedEmbedding } from './layers/records.js';
import { getRecord, listRecords, recallMemory } from './layers/memory-reads.js';
import { proceduralLayer } from './layers/procedural-layer.js';
import { appliedWrites } from './layers/repeats.js';
import { semanticLayer, type SemanticOptions } from './layers/semantic-layer.js';
import type { MemoryConfig } from './memory-config.js';
import type { Memory } from './memory.js';
import type { QdrantStoreOptions } from './qdrant/qdrant-store.js';
import type { RecordStore, Model } from './record-store.js';
import { openSqliteStore } from './sqlite/sqlite-store.js';
import type { SqliteStoreOptions } from './sqlite/store-file.js';
import { guardedStore } from './upkeep/erasure-marks.js';
import { recordUpkeep } from './upkeep/record-upkeep.js';
import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/model';

export type MemoryPlace =
  | ({ readonly adapter: 'sqlite' } & Omit<SqliteStoreOptions, 'model'>)
  | ({ readonly adapter: 'qdrant' } & Omit<QdrantStoreOptions, 'model'>);

/**
 * Opens the memory in a store. Several processes may open it at once. Creates missing tables or collections.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE (missing rights, damage, a lock held too long, no server), MEMORY_VERSION (another layout or
 *   embedder), MEMORY_FULL
 */
export async function openMemory({ store: place, ...deps }: MemoryDeps & { readonly store: MemoryPlace }): Promise<Memory> {
  return memoryOver(await openStore(place, modelOf(deps.embedder)), deps);
}

export async function memoryFrom(config: MemoryConfig, deps: MemoryDeps): Promise<Memory> {
  return openMemory({ store: placeOf(config), ...deps });
}

export function modelOf({ profile: { model: name, dimension } }: Embedder): Model {
  return { name, dimension };
}

/** Qdrant's client is slow to load, so it is loaded only if it is used. @throws EtudeError as `openMemory` */
export async function openStore(place: MemoryPlace, model: Model): Promise<RecordStore> {
  if (place.adapter === 'qdrant') {
    const { openQdrantStore } = await import('./qdrant/qdrant-store.js');
    return openQdrantStore({ ...place, model });
  }
  return openSqliteStore({ ...place, model });
}

/** `requireMemory` has made sure that the chosen adapter has an address. */
export function placeOf(config: MemoryConfig): MemoryPlace {
  if (config.ETUDE_MEMORY_ADAPTER === 'sqlite') return { adapter: 'sqlite', path: config.ETUDE_MEMORY_PATH! };
  return {
    adapter: 'qdrant',
    url: config.ETUDE_QDRANT_URL!,
    apiKey: config.ETUDE_QDRANT_API_KEY ?? null,
    caPath: config.ETUDE_QDRANT_CA_PATH ?? null,
    collectionPrefix: config.ETUDE_QDRANT_COLLECTION_PREFIX,
    timeoutMs: config.ETUDE_QDRANT_TIMEOUT_MS,
    replicas: config.ETUDE_QDRANT_REPLICAS,
  };
}

export interface MemoryDeps extends SemanticOptions, Pick<LayerDeps, 'reranker' | 'chatModel' | 'proofChecker'> {
  /** The model's name and dimension are stored with the vectors. Opening the store later with another embedder is refused. */
  readonly embedder: Embedder;
  readonly clock?: Clock;
}

export function memoryOver(bare: RecordStore, given: MemoryDeps): Memory {
  const store = guardedStore(bare);
  const deps = { clock: { now: Date.now }, ...given, store, embedder: sharedEmbedding(given.embedder) };
  const episodic = episodicLayer(deps);
  const semantic = semanticLayer(deps, given);
  const procedural = proceduralLayer(deps);
  const shows = itemShows(store);
  return {
    store,
    episodic,
    semantic,
    procedural,
    shows,
    conversations: conversationLayer(deps, semantic, given),
    appliedWrites: appliedWrites({ store, episodic, semantic, procedural, shows }),
    units: consolidationUnits({ ...deps, semantic, procedural }),
    upkeep: recordUpkeep(deps),
    get: (scope, layer, id) => getRecord(store, scope, layer, id),
    list: (scope, query) => listRecords(store, scope, query),
    recall: (scope, request, how) => recallMemory({ episodic, semantic, procedural, shows }, scope, request, how),
    check: () => store.check(),
    async close() {
      await semantic.close();
      await store.close();
    },
  };
}
