import { factOfRecord, namedFact } from '../layers/fact-records.js';
import { unlinkFact } from '../layers/fact-settling.js';
import { type LayerDeps, parseBody } from '../layers/records.js';
import type { RecordStore, StoredRecord } from '../record-store.js';
import { newFrom } from './erase-owned.js';
import { forbid } from './erasure-marks.js';
import { countOwned, type CountsByPlace, removeOwned, walkOwned } from './owned-records.js';
import { nameOfRecord, splitName } from './record-parts.js';
import type { Episode, Skill } from '@etude/contracts/memory';
import type { NamedRecord } from '@etude/contracts/memory-upkeep';
import type { Clock } from '@etude/domain/ports/clock';
import { mayRead, namesOfRecord, type RecordOfTenant } from '@etude/domain/recall/deleted-record';
import { recordOfSource, sourcesOfMarks } from '@etude/domain/trust/sources';

/** What deleting a record removes, and what rested on it. */
export interface DeletionPlan {
  readonly found: CountsByPlace;
  /** The records that rest on it, and its other versions. They stay. */
  readonly supported: readonly NamedRecord[];
  /** Records made from this time on stay, in ms since 1970. */
  readonly newFrom: number;
}

/** Changes nothing. Reads every fact, episode and skill of the tenant. */
export async function planDeletion(store: RecordStore, clock: Clock, tenant: string, record: NamedRecord): Promise<DeletionPlan> {
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
  for await (const page of walkOwned(store, { tenant }, { kinds: ['fact', 'episode', 'skill'] }))
    for (const one of page) {
      const rests = mayRead(record, one.scope) && sourcesIn(one).some((source) => names.has(recordOfSource(source)));
      const other = rests || isVersionOf(one, record) || (next !== undefined && one.key === next) ? nameOfRecord(one) : null;
      if (other !== null && !isSame(other, record)) found.set(JSON.stringify(other), other);
    }
  return [...found.values()];
}

const isSame = (a: NamedRecord, b: NamedRecord) => a.name === b.name && a.agent === b.agent && a.user === b.user;

/** The names of the records that this one rests on, or that replaced it. */
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
