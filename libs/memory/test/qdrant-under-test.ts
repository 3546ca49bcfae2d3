import type { TestQdrant } from '@etude/test-support/qdrant';
import { randomUUID } from 'node:crypto';
import { afterAll } from 'vitest';
import type { MemoryPlace } from '../src/open-memory.js';
import { openQdrantStore } from '../src/qdrant/qdrant-store.js';
import { LAYERS, type RecordStore, type Model } from '../src/record-store.js';
import type { OpenStore } from './record-store-conformance.js';
import { SAMPLE_MODEL } from './record-store-samples.js';
import { storeUnderTest } from './temporary-store.js';

/** The collections with this prefix, for a record store or a whole memory. */
export function qdrantPlace({ url, apiKey, caPath }: TestQdrant, collectionPrefix: string) {
  return { adapter: 'qdrant', url, apiKey, caPath, collectionPrefix, timeoutMs: 30_000 } as const satisfies MemoryPlace;
}

/** Opens empty stores on one server. Each store has its own collections, which are dropped when the store is closed. */
export function openOnQdrant(server: () => TestQdrant, first: Model = SAMPLE_MODEL): OpenStore {
  return async () => {
    const qdrant = server();
    const prefix = `t${randomUUID().slice(0, 8)}`;
    const open = (model: Model) => openQdrantStore({ ...qdrantPlace(qdrant, prefix), model });
    return storeUnderTest(open, first, () => qdrant.drop(prefix));
  };
}

/** Like `openOnQdrant`, but uses emptied collections again, which is several times as fast. Traces of old records stay in scores of words. */
export function reuseOnQdrant(server: () => TestQdrant, model: Model): OpenStore {
  const prefixes: string[] = [];
  afterAll(async () => {
    for (const prefix of prefixes) await server().drop(prefix);
  });
  return async () => {
    const prefix = prefixes.pop() ?? `t${randomUUID().slice(0, 8)}`;
    const open = () => openQdrantStore({ ...qdrantPlace(server(), prefix), model });
    return storeUnderTest(open, model, async () => {
      const store = await open();
      await emptyStore(store);
      await store.close();
      prefixes.push(prefix);
    });
  };
}

export async function emptyStore(store: RecordStore): Promise<void> {
  for (const tenant of await store.tenants()) for (const layer of LAYERS) await store.remove({ tenant }, layer, {});
}
