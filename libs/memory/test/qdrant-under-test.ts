import type { TestQdrant } from '@etude/test-support/qdrant';
import { randomUUID } from 'node:crypto';
import { openQdrantStore } from '../src/qdrant/qdrant-store.js';
import type { RecordStore, StoreOptions } from '../src/record-store.js';
import type { OpenStore } from './record-store-conformance.js';
import { SAMPLE_MODEL } from './record-store-samples.js';

/** Empty stores on one server, each with collections of its own, which are dropped when it is closed. */
export function openOnQdrant(server: () => TestQdrant, first: StoreOptions['model'] = SAMPLE_MODEL): OpenStore {
  return async () => {
    const qdrant = server();
    const { url, apiKey, caPath } = qdrant;
    const collectionPrefix = `t${randomUUID().slice(0, 8)}`;
    const opened: RecordStore[] = [];
    const open = async (model: StoreOptions['model'] = first): Promise<RecordStore> => {
      const store = await openQdrantStore({ url, apiKey, caPath, collectionPrefix, timeoutMs: 30_000, model });
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
