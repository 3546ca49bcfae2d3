import type { Episode, Skill } from '@etude/contracts/memory';
import type { LearnedRecords } from '@etude/domain/skills/life/revoke-source';
import type { RecordStore } from '../record-store.js';
import { isCurrent } from '@etude/domain/facts/fact-plan';
import { changedRecord, knownFact } from './fact-records.js';
import { INDEXED, parseBody, sourceField, updateEach } from './records.js';

const LAYERS = { skill: 'procedural', episode: 'episodic', fact: 'semantic' } as const;
const KINDS = ['skill', 'episode', 'fact'] as const;
const NAMES_PER_LOOKUP = 200;

/** Finds skills, episodes and facts by the names of the records that they rest on. */
export function sourceIndex(store: RecordStore) {
  const complete = new Set<string>();
  return async function* restingOn(tenant: string, names: readonly string[], kinds: ReadonlyArray<keyof typeof LAYERS> = KINDS) {
    if (!complete.has(tenant)) await completeIndex(store, tenant);
    complete.add(tenant);
    for (const kind of kinds)
      for (let from = 0; from < names.length; from += NAMES_PER_LOOKUP)
        yield* store.each({ tenant }, LAYERS[kind], { kinds: [kind], where: { source: names.slice(from, from + NAMES_PER_LOOKUP) } });
  };
}

/** The skills, episodes and facts that revoking a source reads and changes. Archived facts are changed too, because they can be restored. */
export function learnedRecords(store: RecordStore): LearnedRecords {
  const restingOn = sourceIndex(store);
  return {
    async *restingOn(tenant, names) {
      for await (const page of restingOn(tenant, names, ['skill', 'episode']))
        for (const record of page) yield parseBody<Skill | Episode>(record).value;
    },
    async reviseFacts(tenant, names, change) {
      for await (const page of restingOn(tenant, names, ['fact']))
        await updateEach(store, page, (record) => {
          const known = knownFact(record);
          const changed = isCurrent(known.fact) ? change(known.fact) : null;
          return changed === null ? null : changedRecord(known, changed);
        });
    },
  };
}

/** Indexes records that earlier versions of Etude stored or changed. They have no source in their fields. */
async function completeIndex(store: RecordStore, tenant: string): Promise<void> {
  for (const kind of KINDS) {
    const [layer, kinds] = [LAYERS[kind], [kind]];
    const indexed = await store.count({ tenant }, layer, { kinds, where: { source: INDEXED } });
    if (indexed === (await store.count({ tenant }, layer, { kinds }))) continue;
    for await (const page of store.each({ tenant }, layer, { kinds }))
      await updateEach(store, page, (record) =>
        record.fields.source?.includes(INDEXED)
          ? null
          : { ...record, fields: { ...record.fields, ...sourceField(kind, parseBody<never>(record).value) } },
      );
  }
}
