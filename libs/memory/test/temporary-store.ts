import { join } from 'node:path';
import type { RecordStore, Model } from '../src/record-store.js';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';
import type { SqliteStoreOptions } from '../src/sqlite/store-file.js';
import type { StoreUnderTest } from './record-store-conformance.js';
import { SAMPLE_MODEL } from './record-store-samples.js';
import { temporaryDirectory } from './temporary-memory.js';

/** An empty store in its own file. */
export async function temporaryStore(options: Partial<SqliteStoreOptions> = {}): Promise<StoreUnderTest & { path: string }> {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'memory.db');
  const { model = SAMPLE_MODEL } = options;
  return { path, ...(await storeUnderTest((other) => openSqliteStore({ path, ...options, model: other }), model, directory.remove)) };
}

/** A store and further connections to its data. `remove` removes the data after all of them were closed. */
export async function storeUnderTest(
  open: (model: Model) => Promise<RecordStore>,
  first: Model,
  remove: () => void | Promise<void>,
): Promise<StoreUnderTest> {
  const opened: RecordStore[] = [];
  const second = async (model = first) => {
    const store = await open(model);
    opened.push(store);
    return store;
  };
  const store = await second();
  const reopen = async (model?: Model) => {
    await store.close();
    return second(model);
  };
  const close = async () => {
    for (const each of opened) await each.close();
    await remove();
  };
  return { store, second, reopen, close };
}
