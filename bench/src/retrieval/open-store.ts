import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EmbedderProfile } from '@etude/domain/ports/model';
import { openQdrantStore } from '@etude/memory/qdrant/qdrant-store';
import type { RecordStore } from '@etude/memory/record-store';
import { openSqliteStore } from '@etude/memory/sqlite/sqlite-store';
import { findQdrant, startQdrant } from '@etude/test-support/qdrant';

export const ADAPTERS = ['sqlite', 'qdrant'] as const;
export type Adapter = (typeof ADAPTERS)[number];

export interface FreshStore {
  readonly store: RecordStore;
  readonly drop: () => Promise<void>;
}

/** A new, empty store: a file, or collections in the Qdrant server that the tests use. */
export async function openFreshStore(adapter: Adapter, { model: name, dimension }: EmbedderProfile): Promise<FreshStore> {
  const model = { name, dimension };
  if (adapter === 'sqlite') {
    const dir = mkdtempSync(join(tmpdir(), 'etude-retrieval-'));
    const store = await openSqliteStore({ path: join(dir, 'memory.sqlite'), model });
    const drop = async () => {
      await store.close();
      rmSync(dir, { recursive: true, force: true });
    };
    return { store, drop };
  }
  const qdrant = await startQdrant(await findQdrant());
  const collectionPrefix = `r${randomUUID().slice(0, 8)}`;
  const { url, apiKey, caPath } = qdrant;
  const store = await openQdrantStore({ url, apiKey, caPath, collectionPrefix, timeoutMs: 60_000, model });
  const drop = async () => {
    await store.close();
    await qdrant.drop(collectionPrefix);
    await qdrant.stop();
  };
  return { store, drop };
}
