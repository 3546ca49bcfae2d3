import type { AppliedWrite, Memory } from '../memory.js';
import type { Change, MemoryRecord, RecordStore } from '../record-store.js';
import { bodyOf, insertsOf, type LayerDeps, loadOne, putRecord, UNSEARCHED } from './records.js';
import { EtudeError } from '@etude/contracts/errors';
import type { MemoryWrite, Scope } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { requireOwn, requireScope, type StoreSkillOptions, wholeTenant, writtenIn } from '@etude/domain/ports/memory';
import { isInWords } from '@etude/domain/skills/content-digest';
import { setImmediate } from 'node:timers/promises';

/**
 * The insert that notes a write as applied. Put it last in the list of changes. After a crash before the note, the repeat finds the write
 * id in the changed record (`StoredBody.taken`) and only adds the note.
 *
 * @param sources what a repeat has to know about the first try
 */
export function markApplied(
  layer: MemoryLayer,
  scope: Scope,
  writeId: string,
  createdAt: number,
  sources: readonly string[] = [],
): Extract<Change, { do: 'insert' }> {
  const record = { ...UNSEARCHED, layer, kind: 'applied', key: writeId, scope, createdAt, fields: {}, sources, body: bodyOf({}) } as const;
  return { do: 'insert', record, indexed: [] };
}

/** Whether the write was noted as applied. Write ids are unique within a tenant, across its agents. @throws EtudeError TENANT_MISSING */
export async function wasApplied(...asked: Parameters<typeof loadNote>): Promise<boolean> {
  return (await loadNote(...asked)) !== null;
}

/** The note of an applied write; `sources` are what the caller gave `markApplied`. */
export const loadNote = (store: RecordStore, tenant: string, layer: MemoryLayer, writeId: string) =>
  loadOne(store, { tenant, agent: null }, layer, 'applied', writeId);

export interface RequestClaim {
  readonly layer: MemoryLayer;
  /** The owner of the record that the request creates. Erasing the owner erases the claim. */
  readonly scope: Scope;
  /** Unique within the tenant, across its agents and users. */
  readonly requestId: string;
  /** Digest of the whole request, including its owner. */
  readonly digest: string;
  /** ms since 1970 */
  readonly at: number;
  /** What a repeat must know about the first try, such as the used version. */
  readonly note?: string;
  /** See `RecordStore.write`. Allowed only if the request has no effect outside of the store. */
  readonly unsynced?: boolean;
}

/**
 * Reserves a request id for one request of one owner. Call it before anything is written: if two different requests have the same id, only
 * the first may continue, and the second sees none of its data. A repeat of the first may continue.
 *
 * @returns `isRepeat`: the same request was claimed before. `note`: the note of the first claim. `result`: null until the request has finished
 * @throws EtudeError ALREADY_EXISTS if another request or owner used the id
 */
export async function claimRequest(
  store: RecordStore,
  claim: RequestClaim,
): Promise<{ isRepeat: boolean; note: string; result: string | null }> {
  const { layer, scope, requestId, digest, at, note = '', unsynced = false } = claim;
  const [done] = await store.write(scope.tenant, [markApplied(layer, scope, claimKey(requestId), at, [digest, note])], { unsynced });
  if (done) return { isRepeat: false, note, result: null };
  const [known, firstNote = '', result = null] = (await loadClaim(store, claim))?.sources ?? [];
  if (known === digest) return { isRepeat: true, note: firstNote, result };
  const message = `request_id "${requestId}" was used for another request in this tenant; use a new request_id for a new request`;
  throw new EtudeError('ALREADY_EXISTS', message, { field: 'request_id' });
}

/** Stores the result of a claimed request; call it after everything is written. The first result is kept. */
export async function noteResult(store: RecordStore, claim: RequestClaim, result: string): Promise<void> {
  const known = await loadClaim(store, claim);
  if (known?.sources.length === 2) await putRecord(store, { ...known, sources: [...known.sources, result] }, known);
}

const claimKey = (requestId: string) => `request.${requestId}`;

const loadClaim = (store: RecordStore, { layer, scope, requestId }: RequestClaim) =>
  loadNote(store, scope.tenant, layer, claimKey(requestId));

/** Records per write. Few, because a write of SQLite keeps other calls waiting. */
const BATCH = 16;

/**
 * Inserts the records that are missing, all of one owner, layer and kind. Known records aren't embedded again. While a batch is written,
 * the next one is embedded. Returns how many it inserted.
 *
 * @throws an AbortError, between batches, when `signal` aborts
 */
export async function insertMissing(
  { store, embedder }: Pick<LayerDeps, 'store' | 'embedder'>,
  records: readonly MemoryRecord[],
  signal?: AbortSignal,
): Promise<number> {
  let inserted = 0;
  let inserts: readonly Change[] = [];
  const write = async (changes: readonly Change[], tenant: string) => {
    // A write may block this thread, so the texts of the next batch are sent to the embedder first.
    await setImmediate();
    const done = changes.length === 0 ? [] : await store.write(tenant, changes);
    inserted += done.filter(Boolean).length;
  };
  for (let start = 0; start < records.length; start += BATCH) {
    signal?.throwIfAborted();
    const batch = records.slice(start, start + BATCH);
    const { scope, layer, kind } = batch[0]!;
    const keys = batch.map(({ key }) => key);
    const known = new Set((await store.load(wholeTenant(scope), layer, kind, keys)).map(({ key }) => key));
    const missing = batch.filter(({ key }) => !known.has(key));
    [inserts] = await Promise.all([insertsOf(embedder, missing), write(inserts, scope.tenant)]);
  }
  await write(inserts, records[0]?.scope.tenant ?? '');
  return inserted;
}

/** Writes a change and the note that it was applied in one list, the note last; see `docs/decisions/0022`. */
export function appliedWrites(memory: Pick<Memory, 'store' | 'episodic' | 'semantic' | 'procedural' | 'shows'>) {
  const { store, episodic, semantic, procedural, shows } = memory;
  return {
    /**
     * A repeat returns a skill again, because the job that verifies it may have been lost. Storing a skill twice has no further effect.
     *
     * @throws EtudeError PERMISSION_DENIED for a record of another tenant; NOT_FOUND for a use of an unknown skill; FAILED_PRECONDITION for
     *   a skill of a new name beyond `namesMax`
     */
    async apply(
      tenant: string,
      writeId: string,
      write: MemoryWrite,
      options: Pick<StoreSkillOptions, 'namesMax'> = {},
    ): Promise<AppliedWrite> {
      const { scope, createdAt } = writtenIn(write);
      requireScope({ tenant, agent: null });
      requireOwn(tenant, scope);
      const applied = async (layer: MemoryLayer, changes: readonly Change[] = []) =>
        (await store.write(tenant, [...changes, markApplied(layer, scope, writeId, createdAt)])).at(-1) === true;
      if (write.kind === 'skill_use') return { applied: await procedural.applyUse(writeId, write), skill: null };
      if (write.kind === 'fact') return { applied: (await semantic.store(writeId, write.fact)).outcome !== 'unchanged', skill: null };
      if (write.kind === 'skill' && write.skill.origin === 'consolidation' && isInWords(write.skill)) {
        const { name, description } = write.skill;
        const isRepeat = await wasApplied(store, tenant, 'procedural', writeId);
        const how = { ...options, by: 'consolidation', learned: write.skill };
        return { applied: !isRepeat, skill: await procedural.storeProcedure(writeId, scope, name, description, how) };
      }
      if (write.kind === 'skill') {
        const skill = await procedural.store(write.skill, options);
        return { applied: await applied('procedural'), skill };
      }
      if (await wasApplied(store, tenant, 'episodic', writeId)) return { applied: false, skill: null };
      let inserts: readonly Change[] = [];
      if (write.kind === 'shows') await shows.count(writeId, write);
      else if (write.kind === 'transition') inserts = await episodic.transitionChanges(write.transition);
      else inserts = await episodic.episodeChanges(write.episode);
      return { applied: await applied('episodic', inserts), skill: null };
    },
  };
}
