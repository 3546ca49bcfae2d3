import type { Fact } from '@etude/contracts/memory';
import type { ReadScope } from '@etude/domain/ports/memory';
import { isCurrent } from '@etude/domain/facts/fact-changes';
import { factTime } from '@etude/domain/retrieval/reinforce';
import type { RecordStore, StoredRecord } from '../record-store.js';
import { factOfRecord, LAYER } from './semantic-records.js';

const CHAIN_MAX = 1_000;
const PAGE = 100;

/** Everything that took the place of the fact, or whose place it took, however often; newest first. */
export async function historyOf(store: RecordStore, scope: ReadScope, id: string): Promise<readonly Fact[]> {
  const found = new Map<string, StoredRecord>();
  const seen = new Set([id]);
  for (let asked = [id]; asked.length > 0 && found.size < CHAIN_MAX;) {
    const [named, before] = await Promise.all([
      store.load(scope, LAYER, 'fact', asked),
      store.find(scope, LAYER, { kinds: ['fact'], where: { name: asked } }, { order: 'newest', limit: PAGE }),
    ]);
    const records = [...named, ...before];
    for (const record of records) found.set(record.key, record);
    const linked = records.flatMap((record) => [record.key, factOfRecord(record).supersededBy ?? record.key]);
    asked = [...new Set(linked)].filter((key) => !seen.has(key));
    for (const key of asked) seen.add(key);
  }
  return found.has(id) ? [...found.values()].map(factOfRecord).toSorted(newestFirst) : [];
}

/** Of one time, what is still true comes first. */
function newestFirst(a: Fact, b: Fact): number {
  return factTime(b) - factTime(a) || Number(isCurrent(b)) - Number(isCurrent(a));
}
