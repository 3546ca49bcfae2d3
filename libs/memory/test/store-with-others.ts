import type { RecordStore } from '../src/record-store.js';
import { modelStore } from './model-store.js';

/** A store without transactions, and somebody else: `meanwhile` is done once, behind what the next act read and before what it writes. */
export function storeWithOthers() {
  const store = modelStore();
  let other: (() => Promise<unknown>) | null = null;
  const write: RecordStore['write'] = async (...args) => {
    const first = other;
    other = null;
    await first?.();
    return store.write(...args);
  };
  return { store: { ...store, write }, meanwhile: (act: () => Promise<unknown>) => (other = act) };
}
