import { unlinkFact } from '../layers/fact-settling.js';
import { idOf } from '../layers/memory-search.js';
import { bodyOf, type LayerDeps, parseBody, updateEach } from '../layers/records.js';
import { cutFromUnits } from '../layers/unit-records.js';
import type { MemoryRecord, RecordStore, StoredRecord } from '../record-store.js';
import { forbid, forbiddenAt } from './erasure-marks.js';
import { addCounts, countOwned, type CountsByPlace, removeOwned, totalOf, walkErasable, walkOwned } from './owned-records.js';
import type { Erasable } from './record-parts.js';
import { EtudeError } from '@etude/contracts/errors';
import type { RecalledItem, Scope, Transition } from '@etude/contracts/memory';
import type { Clock } from '@etude/domain/ports/clock';
import { isRecalledFrom } from '@etude/domain/recall/deleted-record';

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

/** Removes what is erased. The mark is written before anything is removed, so a repeat after a crash completes the work. */
export async function eraseOwned(
  deps: Pick<LayerDeps, 'store' | 'embedder' | 'clock'>,
  erased: Erasable,
  { before, signal }: EraseOptions,
): Promise<CountsByPlace> {
  const { store, clock } = deps;
  await forbid(store, erased, before);
  const recalled = await cutRecalled(store, erased, before, signal);
  if (erased.record !== undefined) {
    await unlinkFact(deps, erased.tenant, erased.record);
    await cutFromUnits(store, erased.tenant, erased.record);
  }
  const ahead = await removeOwned(store, erased, { createdSince: clock.now() + AHEAD_MS }, signal);
  const removed = addCounts(ahead, await removeUntilNothing(store, erased, before, signal));
  return addCounts(removed, recalled === 0 ? {} : { 'memory.episodic.recalled': recalled });
}

/** From this time on, these owners' records count as new (ms since 1970): now, or after records dated by a clock slightly ahead. */
export async function newFrom(store: RecordStore, clock: Clock, erased: Erasable): Promise<number> {
  const now = clock.now();
  let newest = now;
  for await (const page of walkErasable(store, erased, { createdSince: now, createdBefore: now + AHEAD_MS }))
    for (const { createdAt } of page) newest = Math.max(newest, createdAt);
  // Records made in this millisecond count as old.
  return newest + 1;
}

/** Counts the owners' records made before `before`, or else before their erasure mark. Without either, counts all. */
export async function findOwned(store: RecordStore, clock: Clock, erased: Erasable, before?: number): Promise<CountsByPlace> {
  const at = before ?? (await forbiddenAt(store, erased));
  if (at === null) return countOwned(store, erased, {});
  const later = Math.max(at, clock.now() + AHEAD_MS);
  return addCounts(await countOwned(store, erased, { createdBefore: at }), await countOwned(store, erased, { createdSince: later }));
}

async function removeUntilNothing(store: RecordStore, erased: Erasable, before: number, signal?: AbortSignal): Promise<CountsByPlace> {
  let removed: CountsByPlace = {};
  let quiet = 0;
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    const counts = await removeOwned(store, erased, { createdBefore: before }, signal);
    removed = addCounts(removed, counts);
    quiet = totalOf(counts) === 0 ? quiet + 1 : 0;
    if (quiet === 2) return removed;
  }
  throw new EtudeError('MEMORY_UNAVAILABLE', `records of an erased owner were still written after ${PASSES_MAX} passes; try again`);
}

/**
 * Removes what is erased from the `recalled` lists of other transitions. In earlier versions a task without a user recalled every user's
 * memories. Call it before removing the records of owners, because it needs their ids.
 *
 * @param before ms since 1970; memories made later stay in the lists
 * @returns how many transitions were changed
 */
export async function cutRecalled(store: RecordStore, erased: Erasable, before: number, signal?: AbortSignal): Promise<number> {
  const isErased = await recalledFrom(store, erased, before, signal);
  if (isErased === null) return 0;
  let changed = 0;
  const transitions = walkOwned(store, { tenant: erased.tenant }, { kinds: ['transition'] }, { layers: ['episodic'], signal });
  for await (const page of transitions) changed += await updateEach(store, page, (record) => withoutRecalled(record, isErased));
  return changed;
}

type IsErased = (scope: Scope, item: RecalledItem) => boolean;

/** Whether a memory that a task of this scope recalled is erased; null if no task recalled any. */
async function recalledFrom(store: RecordStore, erased: Erasable, before: number, signal?: AbortSignal): Promise<IsErased | null> {
  const { record, agent, user } = erased;
  if (record !== undefined) return (scope, item) => isRecalledFrom({ tenant: erased.tenant, ...record }, scope, item);
  if (agent === undefined && user === undefined) return null;
  const names = new Set<string>();
  for await (const page of walkErasable(store, erased, { createdBefore: before }, signal))
    for (const found of page) names.add(nameOf(found.scope, found.layer, idOf(found)));
  if (names.size === 0) return null;
  const isOwn = (scope: Scope) => (agent === undefined || agent === scope.agent) && (user === undefined || user === scope.user);
  return (scope, { layer, id }) => !isOwn(scope) && names.has(nameOf(scope, layer, id));
}

function withoutRecalled(record: StoredRecord, isErased: IsErased): MemoryRecord | null {
  const { value, taken } = parseBody<Transition>(record);
  const recalled = value.recalled.filter((item) => !isErased(value.scope, item));
  return recalled.length === value.recalled.length ? null : { ...record, body: bodyOf({ ...value, recalled }, taken) };
}

/** The name by which a task of the same agent recalls a record. Skills are numbered per user, so theirs includes the user. */
function nameOf({ agent, user }: Scope, layer: string, id: string): string {
  return `${agent} ${layer} ${id}${layer === 'procedural' ? ` ${user ?? ''}` : ''}`;
}
