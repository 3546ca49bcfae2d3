import type { TestQdrant } from '@etude/test-support/qdrant';
import { randomUUID } from 'node:crypto';
import type { MemoryPlace } from '../src/open-memory.js';
import { openQdrantStore } from '../src/qdrant/qdrant-store.js';
import type { RecordStore, StoreOptions } from '../src/record-store.js';
import type { OpenStore } from './record-store-conformance.js';
import { SAMPLE_MODEL } from './record-store-samples.js';

/** Collections of that prefix, for a store of records or a whole memory. */
export function qdrantPlace({ url, apiKey, caPath }: TestQdrant, collectionPrefix: string) {
  return { adapter: 'qdrant', url, apiKey, caPath, collectionPrefix, timeoutMs: 30_000 } as const satisfies MemoryPlace;
}

/** Empty stores on one server, each with collections of its own, which are dropped when it is closed. */
export function openOnQdrant(server: () => TestQdrant, first: StoreOptions['model'] = SAMPLE_MODEL): OpenStore {
  return async () => {
    const qdrant = server();
    const collectionPrefix = `t${randomUUID().slice(0, 8)}`;
    const opened: RecordStore[] = [];
    const open = async (model: StoreOptions['model'] = first): Promise<RecordStore> => {
      const store = await openQdrantStore({ ...qdrantPlace(qdrant, collectionPrefix), model });
      opened.push(store);
      return store;
    };
    const close = async (): Promise<void> => {
      for (const each of opened) await each.close();
      await qdrant.drop(collectionPrefix);
    };
    const store = await open();
    const reopen = async (model?: StoreOptions['model']): Promise<RecordStore> => {
      await opened.at(-1)?.close();
      return open(model);
    };
    return { store, reopen, second: open, close };
  };
}
