import type { Episode, Fact } from '@etude/contracts/memory';
import { isCurrent } from '@etude/domain/facts/fact-changes';
import type { LearnedRecords } from '@etude/domain/skills/life/revoke-source';
import type { RecordStore } from '../record-store.js';
import { factRecord, LAYER } from './semantic-records.js';
import { parseBody } from './stored-body.js';
import { updateEach } from './upkeep/update-each.js';

/** Episodes and facts of a store, as revoking a source reads and changes them. Archived facts are changed too: they may come back. */
export function learnedRecords(store: RecordStore): LearnedRecords {
  return {
    episodes: (tenant) => episodesOf(store, tenant),
    facts: (tenant) => factsOf(store, tenant),
    reviseFacts: (tenant, change) => reviseFacts(store, tenant, change),
  };
}

async function* episodesOf(store: RecordStore, tenant: string): AsyncGenerator<Episode> {
  for await (const page of store.each({ tenant }, 'episodic', { kinds: ['episode'] }))
    for (const record of page) yield parseBody<Episode>(record).value;
}

async function* factsOf(store: RecordStore, tenant: string): AsyncGenerator<Fact> {
  for await (const page of store.each({ tenant }, LAYER, { kinds: ['fact'] }))
    for (const record of page) yield parseBody<Fact>(record).value;
}

async function reviseFacts(store: RecordStore, tenant: string, change: (fact: Fact) => Fact | null): Promise<void> {
  for await (const page of store.each({ tenant }, LAYER, { kinds: ['fact'] }))
    await updateEach(store, page, (record) => {
      const { value: fact, taken } = parseBody<Fact>(record);
      const changed = isCurrent(fact) ? change(fact) : null;
      if (changed === null) return null;
      const next = factRecord(changed, taken);
      // What was archived stays so.
      return record.shown ? next : { ...next, shown: false, fields: record.fields };
    });
}
