import type { Embedder } from '@etude/domain/ports/model';
import type { Skill } from '@etude/contracts/memory';
import { batchesOf } from '@etude/contracts/wire/batches';
import type { NamedRecord } from '@etude/contracts/memory-upkeep';
import { neededSkills, refusalOf, versionKey } from '@etude/domain/skills/life/call-graph';
import { activatedAt, IN_USE, lastActivated, moveOf, replacedReason, VERIFIER } from '@etude/domain/skills/life/skill-life';
import type { ArchivePolicy, Progress, ReembedReport, StoreReport } from '../memory.js';
import { LAYERS, type Owners, RECORD_KINDS, type RecordStore, type StoredRecord } from '../record-store.js';
import { type EraseOptions, eraseOwned, findOwned, newFrom, planDeletion, removeRecord } from './erase-owned.js';
import { type CountsByPlace, type Erasable, walkOwned } from './owned-records.js';
import { archiveHarmful, archiveRecords, memoryStats, restoreRecords } from './archive-records.js';
import { type ExportOptions, exportRecords } from './export-lines.js';
import { type ImportOptions, importRecords } from './import-lines.js';
import type { SemanticOptions } from '../layers/semantic-layer.js';
import { embedTexts, indexedTextsOf, insertsOf, type LayerDeps } from '../layers/records.js';
import { mendDocuments } from '../layers/documents.js';
import { callGraph, type MoveDeps, moveSkills } from '../layers/skill-moves.js';
import { openedSkill, ownedSkills } from '../layers/skill-records.js';

/** `store`: a `guardedStore`, because imports are writes too. */
export type UpkeepDeps = Pick<LayerDeps, 'store' | 'embedder' | 'clock' | 'proofChecker'> & Pick<SemanticOptions, 'log'>;

export function recordUpkeep(deps: UpkeepDeps) {
  const { store, embedder, clock } = deps;
  return {
    stats: (tenant: string) => memoryStats(store, embedder, tenant),
    archive: (owners: Owners, policy: ArchivePolicy, options: { readonly dryRun: boolean }, signal?: AbortSignal) =>
      archiveRecords(deps, owners, policy, options, signal),
    archiveHarmful: (owners: Owners, signal?: AbortSignal) => archiveHarmful(deps, owners, signal),
    restore: (owners: Owners, ids?: readonly string[]) => restoreRecords(deps, owners, ids),
    exportLines: (owners: Owners, options?: ExportOptions) => exportRecords(store, owners, options),
    importLines: (tenant: string, lines: AsyncIterable<string>, options: ImportOptions) => importRecords(deps, tenant, lines, options),
    newFrom: (erased: Erasable) => newFrom(store, clock, erased),
    planDeletion: (tenant: string, record: NamedRecord) => planDeletion(store, clock, tenant, record),
    removeRecord: (tenant: string, record: NamedRecord, before: number) => removeRecord(deps, tenant, record, before),
    /**
     * Removes records with their vectors and words until none is found. Returns their number by place, such as "memory.semantic.fact". A
     * repeat with the same `before` removes nothing made since.
     */
    async erase(erased: Erasable, options: EraseOptions): Promise<CountsByPlace> {
      const removed = await eraseOwned(deps, erased, options);
      for (const note of await store.purge()) options.onNote?.(note);
      return removed;
    },
    findErased: (erased: Erasable, before?: number) => findOwned(store, clock, erased, before),
    reembed: (to: Embedder, options: ReembedOptions) => reembedRecords(store, to, options),
    dropModel: (name: string) => store.dropModel(name),
    reconcile: () => reconcileRecords(deps),
  };
}

interface ReembedOptions {
  /** Awaited after each batch of records. */
  readonly onProgress?: (progress: Progress) => Promise<void>;
  readonly signal?: AbortSignal;
}

/** A few records, since their texts are embedded at once. */
const BATCH = 128;
/** Maximum number of passes. A record that changes while it is embedded is left for the next pass. */
const PASSES_MAX = 1_000;

/**
 * Adds the vectors of a model to the records of all tenants. Records that have them are skipped, so a run continues where an earlier run stopped.
 * Once all records have them, the model is ready, and services can start with it. An abort is no failure: the state is then `running`.
 */
async function reembedRecords(store: RecordStore, to: Embedder, { onProgress, signal }: ReembedOptions): Promise<ReembedReport> {
  const { model: name, dimension } = to.profile;
  const wasReady = (await store.models()).some((model) => model.name === name && model.state === 'ready');
  await store.addModel({ name, dimension });
  const total = await countLeft(store, name);
  let embedded = 0;
  let left = total;
  try {
    for (let pass = 0; pass < PASSES_MAX && left > 0; pass += 1) {
      for (const tenant of await store.tenants())
        for await (const page of walkOwned(store, { tenant }, { withoutVectorsOf: name }, { signal }))
          for await (const batch of batchesOf(page, { itemsMax: BATCH })) {
            embedded += await fillVectors(store, to, batch, signal);
            await onProgress?.({ done: Math.min(embedded, total), total });
          }
      left = await countLeft(store, name);
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
    left = await countLeft(store, name);
  }
  if (left > 0) return { embedded, left, state: 'running' };
  await store.setModelReady(name);
  await onProgress?.({ done: total, total });
  return { embedded, left: 0, state: wasReady && embedded === 0 ? 'finished' : 'ready' };
}

async function fillVectors(store: RecordStore, to: Embedder, records: readonly StoredRecord[], signal?: AbortSignal): Promise<number> {
  const texts = records.map(indexedTextsOf);
  const vectors = (await embedTexts(to, texts.flat(), signal)).map(({ vector }) => vector);
  let filled = 0;
  for (const [at, record] of records.entries())
    if (await store.setVectors(record.scope.tenant, record, to.profile.model, vectors.splice(0, texts[at]!.length))) filled += 1;
  return filled;
}

async function countLeft(store: RecordStore, model: string): Promise<number> {
  let left = 0;
  for (const tenant of await store.tenants())
    for (const layer of LAYERS) left += await store.count({ tenant }, layer, { withoutVectorsOf: model });
  return left;
}

const SENTENCES_MAX = 100;
const DAY_MS = 86_400_000;
/** Notes of applied writes are kept for this time. Writes and requests aren't repeated later. */
const APPLIED_KEPT_MS = 30 * DAY_MS;

/** Reports damage and records without vectors. Then repairs what interrupted writes left, and drops old notes of applied writes. */
async function reconcileRecords(deps: UpkeepDeps): Promise<StoreReport> {
  const { store, clock, embedder } = deps;
  const checked = { records: 0, skills: 0 };
  const repaired: string[] = [];
  const problems = [...(await store.damage())];
  for (const tenant of await store.tenants()) {
    const { model } = embedder.profile;
    for (const layer of LAYERS) {
      checked.records += await store.count({ tenant }, layer, {});
      const without = await store.count({ tenant }, layer, { withoutVectorsOf: model });
      if (without > 0)
        problems.push(`${without} ${layer} records of ${tenant} have no vectors of ${model}; run "etude memory reembed" to make them`);
    }
    repaired.push(...(await mendDocuments(store, tenant)));
    checked.skills += await reconcileSkills(deps, tenant, { repaired, problems });
    const old = { kinds: ['applied'], createdBefore: clock.now() - APPLIED_KEPT_MS } as const;
    for (const layer of LAYERS) await store.remove({ tenant }, layer, old);
  }
  return { checked, repaired: repaired.slice(0, SENTENCES_MAX), problems: problems.slice(0, SENTENCES_MAX) };
}

const REASON_CHARS_MAX = 300;

/**
 * If a skill has several active versions, only the last activated one stays active. An interrupted move can leave two active versions in a
 * store without transactions. An active skill that can't call what it needs would fail when used, so it is reported as a problem.
 *
 * @returns the number of checked skills
 */
async function reconcileSkills(
  deps: MoveDeps,
  tenant: string,
  { repaired, problems }: { readonly repaired: string[]; readonly problems: string[] },
): Promise<number> {
  const active = new Map<string, number>();
  let checked = 0;
  for await (const page of deps.store.each({ tenant }, 'procedural', { kinds: ['skill'], where: { status: [...IN_USE] } })) {
    checked += page.length;
    for (const record of page)
      try {
        const { skill } = openedSkill(record);
        const name = versionKey({ ...skill, version: 0 });
        if (skill.status === 'active') active.set(name, (active.get(name) ?? 0) + 1);
        if (active.get(name) === 2) repaired.push(await leaveOneActive(deps, skill));
        const reason = await neededSkills(callGraph(deps.store), skill).catch(refusalOf);
        if (typeof reason === 'string') problems.push(`${textOf(skill)} is ${skill.status} and can't run: ${reason}`);
      } catch (error) {
        // If the whole store doesn't answer, this throws.
        await deps.store.check();
        problems.push(`skill ${JSON.stringify(record.key)} of ${tenant} can't be read: ${String(error).slice(0, REASON_CHARS_MAX)}`);
      }
  }
  return checked;
}

async function leaveOneActive(deps: MoveDeps, { scope, name }: Skill): Promise<string> {
  const active = (await ownedSkills(deps.store, scope, { where: { name, status: 'active' } })).map(({ skill }) => skill);
  const stays = lastActivated(active)!;
  const decision = { by: VERIFIER, reason: replacedReason(stays.version), at: activatedAt(stays) };
  const others = active.filter(({ version }) => version !== stays.version);
  await moveSkills(
    deps,
    others.map((skill) => moveOf(skill, 'deprecated', decision)),
  );
  return `several versions of ${textOf(stays)} were active; only the last activated one stays active`;
}

const textOf = ({ name, version, scope }: Skill) => `skill ${name}@${version} of "${scope.agent}" in ${scope.tenant}`;

/**
 * Copies every record of every tenant, with notes of applied writes and marks of erasures, into a store that no service uses. Texts are embedded
 * anew, so both stores may have different models. A repeat adds what is missing.
 *
 * Notes of applied writes come first. The record of a copied note was stored before the note, so it is copied too, even while services write.
 */
export async function copyRecords(
  from: RecordStore,
  to: RecordStore,
  embedder: Embedder,
  onCopied: (records: number) => void,
): Promise<number> {
  let copied = 0;
  for (const notesOnly of [true, false])
    for (const tenant of await from.tenants())
      for (const layer of LAYERS) {
        const kinds = RECORD_KINDS[layer].filter((kind) => (kind === 'applied') === notesOnly);
        for await (const page of from.each({ tenant }, layer, { kinds }))
          for await (const batch of batchesOf(page, { itemsMax: BATCH })) {
            const records = batch.map(({ revision: _revision, ...record }) => record);
            await to.write(tenant, await insertsOf(embedder, records));
            copied += records.length;
            onCopied(copied);
          }
      }
  return copied;
}
