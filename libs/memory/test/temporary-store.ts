import { join } from 'node:path';
import type { RecordStore, StoreOptions } from '../src/record-store.js';
import type { SqliteStoreOptions } from '../src/sqlite/sqlite-store.js';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';
import type { StoreUnderTest } from './record-store-conformance.js';
import { SAMPLE_MODEL } from './record-store-samples.js';
import { temporaryDirectory } from './temporary-memory.js';

/** An empty store in a file of its own. */
export async function temporaryStore(options: Partial<SqliteStoreOptions> = {}): Promise<StoreUnderTest & { path: string }> {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'memory.db');
  const opened: RecordStore[] = [];
  const second = async (model: StoreOptions['model'] = SAMPLE_MODEL) => {
    const store = await openSqliteStore({ path, ...options, model });
    opened.push(store);
    return store;
  };
  const store = await second(options.model);
  const reopen = async (model?: StoreOptions['model']) => {
    await store.close();
    return second(model);
  };
  const close = async () => {
    for (const one of opened) await one.close();
    directory.remove();
  };
  return { store, path, second, reopen, close };
}
