import { idOf } from '../layers/memory-search.js';
import { bodyOf, parseBody, updateEach } from '../layers/records.js';
import type { MemoryRecord, Owners, RecordStore, StoredRecord } from '../record-store.js';
import { forbid, forbiddenAt } from './erasure-marks.js';
import { addCounts, countOwned, type CountsByPlace, removeOwned, totalOf, walkOwned } from './owned-records.js';
import { EtudeError } from '@etude/contracts/errors';
import type { Transition } from '@etude/contracts/memory';
import type { Clock } from '@etude/domain/ports/clock';

export interface EraseOptions {
  /** Records made at this time or later stay, in ms since 1970. Ask `newFrom` once, and pass its answer in every repeat. */
  readonly before: number;
  readonly signal?: AbortSignal;
  /** Gets one sentence for each thing done beyond removing records. */
  readonly onNote?: (note: string) => void;
}

/** Writes that began before the mark end soon. Each pass removes the records of those that ended since the last one. */
const PASSES_MAX = 1_000;
/** How far the clocks of two machines may differ. A record dated further ahead has a wrong date. */
const AHEAD_MS = 60_000;

/** Removes the records of these owners. The mark is written before anything is removed, so a repeat after a crash completes the work. */
export async function eraseOwned(
  store: RecordStore,
  clock: Clock,
  owners: Owners,
  { before, signal }: EraseOptions,
): Promise<CountsByPlace> {
  await forbid(store, owners, before);
  const recalled = await cutRecalled(store, owners, before, signal);
  const ahead = await removeOwned(store, owners, { createdSince: clock.now() + AHEAD_MS }, signal);
  const removed = addCounts(ahead, await removeUntilNothing(store, owners, before, signal));
  return addCounts(removed, recalled === 0 ? {} : { 'memory.episodic.recalled': recalled });
}

/** From this time on, these owners' records count as new (ms since 1970): now, or after records dated by a clock slightly ahead. */
export async function newFrom(store: RecordStore, clock: Clock, owners: Owners): Promise<number> {
  const now = clock.now();
  let newest = now;
  for await (const page of walkOwned(store, owners, { createdSince: now, createdBefore: now + AHEAD_MS }))
    for (const { kind, createdAt } of page) if (kind !== 'erasure') newest = Math.max(newest, createdAt);
  // Records made in this millisecond count as old.
  return newest + 1;
}

/** Counts the owners' records made before `before`, or else before their erasure mark. Without either, counts all. */
export async function findOwned(store: RecordStore, clock: Clock, owners: Owners, before?: number): Promise<CountsByPlace> {
  const at = before ?? (await forbiddenAt(store, owners));
  if (at === null) return countOwned(store, owners, {});
  const later = Math.max(at, clock.now() + AHEAD_MS);
  return addCounts(await countOwned(store, owners, { createdBefore: at }), await countOwned(store, owners, { createdSince: later }));
}

async function removeUntilNothing(store: RecordStore, owners: Owners, before: number, signal?: AbortSignal): Promise<CountsByPlace> {
  let removed: CountsByPlace = {};
  let quiet = 0;
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    const counts = await removeOwned(store, owners, { createdBefore: before }, signal);
    removed = addCounts(removed, counts);
    quiet = totalOf(counts) === 0 ? quiet + 1 : 0;
    if (quiet === 2) return removed;
  }
  throw new EtudeError('MEMORY_UNAVAILABLE', `records of an erased owner were still written after ${PASSES_MAX} passes; try again`);
}

/**
 * Removes these owners' memories from the `recalled` lists of other owners' transitions. In earlier versions a task without a user recalled
 * every user's memories. Call it before removing records, because it needs their ids.
 *
 * @param before ms since 1970; memories made later stay in the lists
 * @returns how many transitions were changed
 */
export async function cutRecalled(store: RecordStore, owners: Owners, before: number, signal?: AbortSignal): Promise<number> {
  if (owners.agent === undefined && owners.user === undefined) return 0;
  const erased = await namesOf(store, owners, before, signal);
  if (erased.size === 0) return 0;
  let changed = 0;
  const transitions = walkOwned(store, { tenant: owners.tenant }, { kinds: ['transition'] }, { layers: ['episodic'], signal });
  for await (const page of transitions) {
    const others = page.filter(({ scope }) => !isOwner(owners, scope));
    changed += await updateEach(store, others, (record) => withoutRecalled(record, erased));
  }
  return changed;
}

async function namesOf(store: RecordStore, owners: Owners, before: number, signal?: AbortSignal): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for await (const page of walkOwned(store, owners, { createdBefore: before }, { signal }))
    for (const record of page) names.add(nameOf(record.scope, record.layer, idOf(record)));
  return names;
}

function withoutRecalled(record: StoredRecord, erased: ReadonlySet<string>): MemoryRecord | null {
  const { value, taken } = parseBody<Transition>(record);
  const recalled = value.recalled.filter(({ layer, id }) => !erased.has(nameOf(value.scope, layer, id)));
  return recalled.length === value.recalled.length ? null : { ...record, body: bodyOf({ ...value, recalled }, taken) };
}

/** The name by which a task of the same agent recalls a record. Skills are numbered per user, so theirs includes the user. */
function nameOf({ agent, user }: StoredRecord['scope'], layer: string, id: string): string {
  return `${agent} ${layer} ${id}${layer === 'procedural' ? ` ${user ?? ''}` : ''}`;
}

function isOwner({ agent, user }: Owners, scope: StoredRecord['scope']): boolean {
  return (agent === undefined || agent === scope.agent) && (user === undefined || user === scope.user);
}
