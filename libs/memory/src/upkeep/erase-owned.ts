import { unlinkFact } from '../layers/fact-settling.js';
import { bodyOf, type LayerDeps, parseBody, updateEach } from '../layers/records.js';
import { cutFromUnits } from '../layers/unit-records.js';
import { sourceIndex } from '../layers/source-index.js';
import type { RecordStore, StoredRecord } from '../record-store.js';
import { forbid } from './erasure-marks.js';
import {
  addCounts,
  countOwned,
  type CountsByPlace,
  type Erasable,
  nameOfRecord,
  removeOwned,
  splitName,
  walkErasable,
  walkOwned,
} from './owned-records.js';
import { EtudeError } from '@etude/contracts/errors';
import type { Episode, Skill, Transition } from '@etude/contracts/memory';
import type { Clock } from '@etude/domain/ports/clock';
import { isRecalledFrom, mayRead, namesOfRecord, type RecordOfTenant } from '@etude/domain/recall/deleted-record';
import { factOfRecord, namedFact } from '../layers/fact-records.js';
import type { NamedRecord } from '@etude/contracts/memory-upkeep';
import { recordOfSource, sourcesOfMarks } from '@etude/domain/trust/sources';

export interface EraseOptions {
  /** Records made at this time or later stay, in ms since 1970. Ask `newFrom` once, and pass its answer in every repeat. */
  readonly before: number;
  readonly signal?: AbortSignal;
  /** Gets one sentence for each thing done beyond removing records. */
  readonly onNote?: (note: string) => void;
}

/** Writes that began before the erasure mark may end later. Each pass removes the records of writes that ended since the last pass. */
const PASSES_MAX = 1_000;
/** How far the clocks of two machines may differ. A record dated further ahead has a wrong date. */
const AHEAD_MS = 60_000;

/** Removes the erased records. The erasure mark is written before anything is removed, so a repeat after a crash completes the work. */
export async function eraseOwned(
  deps: Pick<LayerDeps, 'store' | 'embedder' | 'clock'>,
  erased: Erasable,
  { before, signal }: EraseOptions,
): Promise<CountsByPlace> {
  const { store, clock } = deps;
  const { tenant, record } = erased;
  await forbid(store, erased, before);
  let recalled = 0;
  if (record !== undefined) {
    recalled = await cutRecalled(store, { tenant, ...record }, signal);
    await unlinkFact(deps, tenant, record);
    await cutFromUnits(store, tenant, record);
  }
  const ahead = await removeOwned(store, erased, { createdSince: clock.now() + AHEAD_MS }, signal);
  const removed = addCounts(ahead, await removeUntilNothing(store, erased, before, signal));
  return addCounts(removed, recalled === 0 ? {} : { 'memory.episodic.recalled': recalled });
}

/**
 * The time (ms since 1970) from which these owners' records count as new: 1 ms after now, or after their newest record if the clock of
 * another machine, up to `AHEAD_MS` ahead, dated it later.
 */
export async function newFrom(store: RecordStore, clock: Clock, erased: Erasable): Promise<number> {
  const now = clock.now();
  let newest = now;
  for await (const page of walkErasable(store, erased, { createdSince: now, createdBefore: now + AHEAD_MS }))
    for (const { createdAt } of page) newest = Math.max(newest, createdAt);
  // Records made in this millisecond count as old.
  return newest + 1;
}

/** Counts the owners' records made before `before`, and records dated too far ahead. Without `before`, counts all. */
export async function findOwned(
  store: RecordStore,
  clock: Clock,
  erased: Erasable,
  before = Number.MAX_SAFE_INTEGER,
): Promise<CountsByPlace> {
  const later = Math.max(before, clock.now() + AHEAD_MS);
  return addCounts(await countOwned(store, erased, { createdBefore: before }), await countOwned(store, erased, { createdSince: later }));
}

async function removeUntilNothing(store: RecordStore, erased: Erasable, before: number, signal?: AbortSignal): Promise<CountsByPlace> {
  let removed: CountsByPlace = {};
  let quiet = 0;
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    const counts = await removeOwned(store, erased, { createdBefore: before }, signal);
    removed = addCounts(removed, counts);
    quiet = Object.keys(counts).length === 0 ? quiet + 1 : 0;
    if (quiet === 2) return removed;
  }
  throw new EtudeError('MEMORY_UNAVAILABLE', `records of an erased owner were still written after ${PASSES_MAX} passes; try again`);
}

/** Removes the record from the `recalled` lists of transitions. Returns how many were changed. An owner's records are recalled by the owner only. */
async function cutRecalled(store: RecordStore, erased: RecordOfTenant, signal?: AbortSignal): Promise<number> {
  let changed = 0;
  const transitions = walkOwned(store, { tenant: erased.tenant }, { kinds: ['transition'] }, { layers: ['episodic'], signal });
  for await (const page of transitions)
    changed += await updateEach(store, page, (record) => {
      const { value, taken } = parseBody<Transition>(record);
      const recalled = value.recalled.filter((item) => !isRecalledFrom(erased, value.scope, item));
      return recalled.length === value.recalled.length ? null : { ...record, body: bodyOf({ ...value, recalled }, taken) };
    });
  return changed;
}

/**
 * Counts in `found` what deleting a record removes. `supported` names records that stay, although they were made from it or are other
 * versions of it. Records made from `newFrom` on (ms since 1970) stay too.
 */
export async function planDeletion(store: RecordStore, clock: Clock, tenant: string, record: NamedRecord) {
  const erased = { tenant, record };
  const supported = await supportedBy(store, { tenant, ...record });
  return { found: await countOwned(store, erased, {}), supported, newFrom: await newFrom(store, clock, erased) };
}

/** Removes the record, so that no read finds it. Copies in lists of recalled memories and in the database's files are left to `erase`. */
export async function removeRecord(
  deps: Pick<LayerDeps, 'store' | 'embedder'>,
  tenant: string,
  record: NamedRecord,
  before: number,
): Promise<void> {
  const { store } = deps;
  await forbid(store, { tenant, record }, before);
  await unlinkFact(deps, tenant, record);
  await removeOwned(store, { tenant, record }, { createdBefore: before });
}

async function supportedBy(store: RecordStore, record: RecordOfTenant): Promise<readonly NamedRecord[]> {
  const { tenant, name } = record;
  const names = namesOfRecord(record);
  const found = new Map<string, NamedRecord>();
  const next = (await namedFact(store, tenant, name))?.supersededBy;
  for await (const page of candidates(store, record, names, next))
    for (const one of page) {
      const rests = mayRead(record, one.scope) && sourcesIn(one).some((source) => names.has(recordOfSource(source)));
      const other = rests || isVersionOf(one, record) || (next !== undefined && one.key === next) ? nameOfRecord(one) : null;
      if (other !== null && !isSame(other, record)) found.set(JSON.stringify(other), other);
    }
  return [...found.values()];
}

/** All records that may rest on this record, or are linked to it by another field. */
async function* candidates(store: RecordStore, { tenant, name }: RecordOfTenant, names: ReadonlySet<string>, next: string | undefined) {
  const [kind, id] = splitName(name);
  yield* sourceIndex(store)(tenant, [...names]);
  if (next !== undefined) yield* store.each({ tenant }, 'semantic', { kinds: ['fact'], keys: [next] });
  if (kind === 'facts') yield* store.each({ tenant }, 'semantic', { kinds: ['fact'], where: { name: id } });
  if (kind !== 'skills') return;
  yield* store.each({ tenant }, 'episodic', { kinds: ['episode'], where: { skill: id } });
  yield* store.each({ tenant }, 'procedural', { kinds: ['skill'], where: { name: id.replace(/@\d+$/, '') } });
}

const isSame = (a: NamedRecord, b: NamedRecord) => a.name === b.name && a.agent === b.agent && a.user === b.user;

/** The names of the records from which this record was made, or that replaced it. */
function sourcesIn(record: StoredRecord): readonly string[] {
  if (record.kind === 'fact') {
    const { episodes, touched = [], supersededBy } = factOfRecord(record);
    return [...episodes, ...touched, ...(supersededBy === undefined ? [] : [`facts/${supersededBy}`])];
  }
  if (record.kind === 'episode') {
    const { touched = [], skillsUsed } = parseBody<Episode>(record).value;
    return [...touched, ...skillsUsed.map((skill) => `skills/${skill}`)];
  }
  const { sources, untrusted = [] } = parseBody<Skill>(record).value;
  return [...sources, ...sourcesOfMarks(untrusted)];
}

function isVersionOf({ kind, fields, scope }: StoredRecord, { name, agent, user }: RecordOfTenant): boolean {
  const isOwner = scope.agent === agent && scope.user === user;
  return kind === 'skill' && isOwner && splitName(name)[1].startsWith(`${String(fields.name)}@`);
}
