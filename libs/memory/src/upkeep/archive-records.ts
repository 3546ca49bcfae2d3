import { idOf } from '../layers/memory-search.js';
import { ARCHIVED, asArchived, isArchived, parseBody, updateEach } from '../layers/records.js';
import type { ArchivePolicy, ArchiveReport } from '../memory.js';
import { LAYERS, type MemoryRecord, type Owners, type RecordKind, type RecordStore, type StoredRecord } from '../record-store.js';
import { OWNED_KINDS, walkOwned } from './owned-records.js';
import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/model';
import { forgettingScore } from '@etude/domain/retrieval/fuse';
import { showsRecord } from '../layers/item-shows.js';
import type { UpkeepDeps } from './record-upkeep.js';
import type { ItemShows } from '@etude/contracts/memory';
import { reasonToArchive } from '@etude/domain/lift/effects';

/** Kinds that forgetting may archive. Documents aren't among them: people add and remove documents. */
const FORGETTABLE: readonly RecordKind[] = ['transition', 'episode', 'fact', 'summary', 'reflection', 'skill'];
const EXAMPLES_MAX = 100;
const OLDER_THAN_DAYS = 30;
const DAY_MS = 86_400_000;

type ArchiveDeps = Pick<UpkeepDeps, 'store' | 'clock' | 'log'>;

/** Hides records that score below `scoreMax` from search. Never removes them. */
export async function archiveRecords(
  { store, clock, log }: ArchiveDeps,
  owners: Owners,
  policy: ArchivePolicy,
  { dryRun }: { readonly dryRun: boolean },
  signal?: AbortSignal,
): Promise<ArchiveReport> {
  const createdBefore = clock.now() - (policy.olderThanDays ?? OLDER_THAN_DAYS) * DAY_MS;
  const filter = { shown: true, createdBefore, kinds: FORGETTABLE };
  let [looked, archived, examples]: [number, number, ArchiveReport['examples']] = [0, 0, []];
  for await (const page of walkOwned(store, owners, filter, { layers: policy.layers ?? LAYERS, signal })) {
    looked += page.length;
    const low = readable(page, log).filter((record) => scoreOf(record, clock) < policy.scoreMax);
    archived += dryRun ? low.length : await updateEach(store, low, (record) => (record.shown ? asArchived(record) : null));
    const more = low.map((record) => {
      const { layer, scope, title } = record;
      return { layer, scope, id: idOf(record), title, score: scoreOf(record, clock) };
    });
    examples = [...examples, ...more].toSorted((a, b) => a.score - b.score).slice(0, EXAMPLES_MAX);
  }
  return { looked, archived, examples };
}

/** Shows archived records again, all or those with these ids, except superseded and deactivated records. Returns the number shown. */
export async function restoreRecords({ store, log }: ArchiveDeps, owners: Owners, ids?: readonly string[]): Promise<number> {
  const isWanted = (record: StoredRecord) => ids === undefined || ids.includes(idOf(record)) || ids.includes(record.key);
  let restored = 0;
  for await (const page of walkOwned(store, owners, { shown: false, where: ARCHIVED }))
    restored += await updateEach(store, readable(page.filter(isWanted), log), (record) => (isArchived(record) ? asRestored(record) : null));
  return restored;
}

function readable(page: readonly StoredRecord[], log: UpkeepDeps['log']): readonly StoredRecord[] {
  return page.filter((record) => {
    const { layer, kind, key, scope } = record;
    try {
      parseBody(record);
      return true;
    } catch {
      log?.('a memory record is damaged and is left out', { tenant: scope.tenant, layer, kind, key });
      return false;
    }
  });
}

function asRestored(record: StoredRecord): MemoryRecord {
  const { archived: _archived, ...fields } = record.fields;
  return { ...record, fields, shown: mayBeShown(record) };
}

function mayBeShown(record: StoredRecord): boolean {
  const { value } = parseBody<{ validTo?: number; supersededBy?: string; status?: string }>(record);
  if (record.kind === 'skill') return value.status === 'active';
  return record.kind !== 'fact' || (value.validTo === undefined && value.supersededBy === undefined);
}

function scoreOf(record: StoredRecord, clock: Clock): number {
  const { value } = parseBody<{ updatedAt?: number; accessCount?: number; support?: number; executionCount?: number }>(record);
  const touchedAt = Math.max(record.createdAt, value.updatedAt ?? 0);
  const uses = (value.accessCount ?? 0) + Math.max(0, (value.support ?? 1) - 1) + (value.executionCount ?? 0);
  return forgettingScore({ worth: record.worth, ageMs: clock.now() - touchedAt, uses });
}

/** Counts the tenant's records by layer and kind, in total and archived. The size is that of the whole store, with all tenants. */
export async function memoryStats(store: RecordStore, { profile }: Embedder, tenant: string) {
  const counts = OWNED_KINDS.map(async ({ layer, kind }) => ({
    layer,
    kind,
    records: await store.count({ tenant }, layer, { kinds: [kind] }),
    archived: await store.count({ tenant }, layer, { kinds: [kind], where: ARCHIVED }),
  }));
  const layers = await Promise.all(counts);
  return { adapter: store.name, model: { name: profile.model, dimension: profile.dimension }, layers, diskBytes: store.diskBytes() };
}

/**
 * Archives items that make first attempts worse, and notes the reason in their counters. An item that was archived for this reason before
 * stays as it is, because somebody may have restored it. Returns how many were archived.
 */
export async function archiveHarmful({ store, clock, log }: ArchiveDeps, owners: Owners, signal?: AbortSignal): Promise<number> {
  let archived = 0;
  for await (const page of walkOwned(store, owners, { kinds: ['shows'] }, { signal }))
    for (const counters of readable(page, log)) {
      const { value } = parseBody<ItemShows>(counters);
      const reason = value.archived === undefined ? reasonToArchive(value) : null;
      if (reason === null) continue;
      archived += await updateEach(store, await itemsOf(store, counters, value), (item) => (item.shown ? asArchived(item) : null));
      const note = { at: clock.now(), reason };
      await updateEach(store, [counters], (record) => {
        const { value: current, taken } = parseBody<ItemShows>(record);
        return showsRecord(record.layer, { ...current, archived: note }, taken);
      });
    }
  return archived;
}

/** The searchable records of an item. Empty for turns and for chunks of documents, because people add and remove those. */
async function itemsOf(store: RecordStore, { layer, scope }: StoredRecord, { kind, id }: ItemShows): Promise<readonly StoredRecord[]> {
  const recordKind = FORGETTABLE.find((one: RecordKind) => one === kind);
  if (recordKind === undefined) return [];
  const byId = { kinds: [recordKind], where: { id }, shown: true };
  const found = await store.find(scope, layer, byId, { order: 'newest', limit: 10 });
  const items = found.length > 0 ? found : await store.load(scope, layer, recordKind, [id]);
  return items.filter((item) => item.scope.agent === scope.agent && item.scope.user === scope.user);
}
