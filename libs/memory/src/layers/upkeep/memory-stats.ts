import type { Embedder } from '@etude/domain/ports/embedder';
import type { RecordStore } from '../../record-store.js';
import type { MemoryStats } from '../memory-upkeep.js';
import { isArchived } from './archive-records.js';
import { OWNED_KINDS } from './owned-records.js';

export async function memoryStats(store: RecordStore, { profile }: Embedder, tenant: string): Promise<MemoryStats> {
  const counts = OWNED_KINDS.map(async ({ layer, kind }) => ({
    layer,
    kind,
    records: await store.count({ tenant }, layer, { kinds: [kind] }),
    archived: await countArchived(store, tenant, layer, kind),
  }));
  const [layers, size] = await Promise.all([Promise.all(counts), store.size()]);
  return { adapter: store.name, model: { name: profile.model, dimension: profile.dimension }, layers, ...size };
}

async function countArchived(...[store, tenant, layer, kind]: [RecordStore, string, ...KindArgs]): Promise<number> {
  const filter = { kinds: [kind], shown: false, where: { status: 'archived' } };
  if (kind !== 'skill') return store.count({ tenant }, layer, filter);
  let archived = 0;
  for await (const page of store.each({ tenant }, layer, filter)) archived += page.filter(isArchived).length;
  return archived;
}

type KindArgs = [(typeof OWNED_KINDS)[number]['layer'], (typeof OWNED_KINDS)[number]['kind']];
