import type { Change, RecordStore } from '../src/record-store.js';
import { modelStore } from './model-store.js';

class Crash extends Error {}

/** Whether the work was done before the store crashed. */
export async function isSurvived(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof Crash) return false;
    throw error;
  }
}

/** A store without transactions. After `dieAfter(n)` it makes n more changes or removals, then one more, and throws `Crash`. */
export function dyingStore(): { store: RecordStore; dieAfter: (changes: number) => void } {
  const store = modelStore();
  let left = Number.POSITIVE_INFINITY;
  const spend = () => {
    left -= 1;
    if (left < 0) throw new Crash('killed after a change');
  };
  const write = async (tenant: string, changes: readonly Change[]) => {
    const done: boolean[] = [];
    for (const change of changes) {
      if (done.length > 0 && done.at(-1) === false && changes[done.length - 1]?.do !== 'insert') done.push(false);
      else {
        done.push(...(await store.write(tenant, [change])));
        spend();
      }
    }
    return done;
  };
  const remove: RecordStore['remove'] = async (...args) => {
    const removed = await store.remove(...args);
    spend();
    return removed;
  };
  return { store: { ...store, write, remove }, dieAfter: (changes) => (left = changes) };
}
