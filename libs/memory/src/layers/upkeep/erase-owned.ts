import { EtudeError } from '@etude/contracts/errors';
import type { Clock } from '@etude/domain/ports/clock';
import type { Owners, RecordStore } from '../../record-store.js';
import { forbid, forbiddenAt } from './erasure-marks.js';
import { addCounts, countOwned, removeOwned, totalOf } from './owned-records.js';
import type { CountsByPlace } from './owned-records.js';
import { cutRecalled } from './recalled-copies.js';

/** Writes that began before the mark land within moments; each pass takes what has landed since the last. */
const PASSES_MAX = 1_000;

/**
 * Removes every record of these owners, whenever it was made, also what is written while it runs. Of what they write after its last
 * mark nothing is touched: that is a new beginning.
 *
 * Killed anywhere, it is run again and goes on: the mark is written before anything is removed.
 */
export async function eraseOwned(store: RecordStore, clock: Clock, owners: Owners, signal?: AbortSignal): Promise<CountsByPlace> {
  await forbid(store, owners, endOfNow(clock));
  const recalled = await cutRecalled(store, owners, signal);
  const all = await removeOwned(store, owners, {}, signal);
  const since = await removeUntilNothing(store, clock, owners, signal);
  return addCounts(addCounts(all, since), recalled === 0 ? {} : { 'memory.episodic.recalled': recalled });
}

/** What is left of what was made before the owners' mark; without a mark, all that they have. */
export async function findOwned(store: RecordStore, owners: Owners): Promise<CountsByPlace> {
  const at = await forbiddenAt(store, owners);
  return countOwned(store, owners, at === null ? {} : { createdBefore: at });
}

async function removeUntilNothing(store: RecordStore, clock: Clock, owners: Owners, signal?: AbortSignal): Promise<CountsByPlace> {
  const filter = { createdBefore: endOfNow(clock) };
  await forbid(store, owners, filter.createdBefore);
  let removed: CountsByPlace = {};
  let quiet = 0;
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    const counts = await removeOwned(store, owners, filter, signal);
    removed = addCounts(removed, counts);
    quiet = totalOf(counts) === 0 ? quiet + 1 : 0;
    if (quiet === 2) return removed;
  }
  throw new EtudeError('MEMORY_UNAVAILABLE', `records of an erased owner were still written after ${PASSES_MAX} passes; try again`);
}

/** What is made in this very millisecond is before it. */
function endOfNow(clock: Clock): number {
  return clock.now() + 1;
}
