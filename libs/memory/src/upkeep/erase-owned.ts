import { idOf } from '../layers/memory-search.js';
import { bodyOf, parseBody, updateEach } from '../layers/records.js';
import type { MemoryRecord, Owners, RecordStore, StoredRecord } from '../record-store.js';
import { forbid, forbiddenAt } from './erasure-marks.js';
import { addCounts, countOwned, type CountsByPlace, removeOwned, totalOf, walkOwned } from './owned-records.js';
import { EtudeError } from '@etude/contracts/errors';
import type { Transition } from '@etude/contracts/memory';
import type { Clock } from '@etude/domain/ports/clock';

export interface EraseOptions {
  /** Records made from then on (ms since 1970) stay. Ask `newFrom` once, and pass its answer in every repeat. */
  readonly before: number;
  readonly signal?: AbortSignal;
  /** What was done beyond removing, a sentence each. */
  readonly onNote?: (note: string) => void;
}

/** Writes that began before the mark end within moments. Each pass removes those that ended since the last one. */
const PASSES_MAX = 1_000;
/** Clocks of two machines may be so far apart. A record that is dated later has a wrong date. */
const AHEAD_MS = 60_000;

/**
 * Removes the records of these owners. Killed anywhere, it is run again and goes on: the mark is written before anything is removed.
 */
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

/** From when on what these owners make is new: from now, or behind what they have by a clock that is a little ahead. */
export async function newFrom(store: RecordStore, clock: Clock, owners: Owners): Promise<number> {
  const now = clock.now();
  let newest = now;
  for await (const page of walkOwned(store, owners, { createdSince: now, createdBefore: now + AHEAD_MS }))
    for (const { kind, createdAt } of page) if (kind !== 'erasure') newest = Math.max(newest, createdAt);
  // What is made in this very millisecond is before it.
  return newest + 1;
}

/** Counts the owners' records made before `before`, or before their mark; without either, all of them. */
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
 * Cuts what the transitions of others have recalled of these owners: a task of nobody in particular sees what is every user's, and keeps
 * it with its attempt. Goes before the removal, since what was recalled is known by its id.
 *
 * @param before ms since 1970; of what they have made since, nothing is cut
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

/** A task recalls what is its agent's; and of skills, which are numbered for each user, no other user's. */
function nameOf({ agent, user }: StoredRecord['scope'], layer: string, id: string): string {
  return `${agent} ${layer} ${id}${layer === 'procedural' ? ` ${user ?? ''}` : ''}`;
}

function isOwner({ agent, user }: Owners, scope: StoredRecord['scope']): boolean {
  return (agent === undefined || agent === scope.agent) && (user === undefined || user === scope.user);
}
