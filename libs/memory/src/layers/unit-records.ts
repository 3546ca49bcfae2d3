import type { Fact, Skill } from '@etude/contracts/memory';
import type { NamedRecord } from '@etude/contracts/memory-upkeep';
import { factId } from '@etude/domain/facts/fact-plan';
import type { ConsolidationUnit, UnitName, UnitPage } from '@etude/domain/ports/consolidation-units';
import { type Change, compareKeys, type MemoryRecord, type RecordStore, type StoredRecord } from '../record-store.js';
import { knownFact } from './fact-records.js';
import { bodyOf, everyValue, parseBody, putRecord, putting, untilTaken, updateEach, UNSEARCHED } from './records.js';
import type { ShadowRecord } from './shadow-store.js';

const LAYER = 'episodic';
const KIND = 'unit';

/** The state of a unit. It has no texts, so that it can stay when a user is erased. */
export interface UnitHead extends UnitName {
  /** The next call for the agent completes a unit in state `committing` or `undoing`. */
  readonly state: 'committing' | 'applied' | 'undoing' | 'undone';
  readonly at: number;
  readonly parts: number;
  /** Who undid the unit, and when, in ms since 1970. */
  readonly undo?: { readonly by: string; readonly at: number };
}

/** A fact that a unit changed; `before` is null if it added the fact. */
export interface ChangedFact {
  readonly before: Fact | null;
  readonly after: Fact;
  /** Ids of all writes that had told the fact when the unit ended. */
  readonly taken: readonly string[];
}

/** The changes of a unit to records of one owner. Erasing the owner removes them. */
export interface UnitPart {
  readonly pages: readonly UnitPage[];
  readonly skills: readonly Skill[];
  readonly changed: readonly ChangedFact[];
}

const keyOf = ({ run, agent }: Pick<UnitName, 'run' | 'agent'>) => `${run}/${agent}`;
const everywhere = (tenant: string) => ({ tenant, agent: null });

/** The changes that begin a unit: its parts, then its head. Parts that an earlier attempt left are replaced. */
export async function openingOf(store: RecordStore, unit: ConsolidationUnit, shadows: readonly ShadowRecord[]): Promise<readonly Change[]> {
  const { tenant, agent, run, at } = unit;
  const parts = partsOf(unit, shadows).map(([user, part], place): MemoryRecord => {
    return { ...recordOf(unit, `${keyOf(unit)} ${place}`, part), scope: { tenant, agent, user } };
  });
  const keys = parts.map(({ key }) => key);
  const left = new Map((await store.load(everywhere(tenant), LAYER, KIND, keys)).map((record) => [record.key, record]));
  const head: UnitHead = { tenant, agent, run, at, state: 'committing', parts: parts.length };
  return [...parts.map((record) => putting(record, left.get(record.key))), putting(headRecord(head), null)];
}

const byName = (a: string | null, b: string | null) => compareKeys(a ?? '', b ?? '');
const userOf = ({ facts, read }: UnitPage) => (facts[0] ?? read[0])?.scope.user ?? null;

/** The unit's parts by user, in a fixed order. */
function partsOf({ agent, pages, skills }: ConsolidationUnit, shadows: readonly ShadowRecord[]): ReadonlyArray<[string | null, UnitPart]> {
  const changed = shadows.filter(({ record }) => record.kind === 'fact' && record.scope.agent === agent);
  const scopes = [...skills, ...changed.map(({ record }) => record)].map(({ scope }) => scope);
  const users = new Set([...pages.map(userOf), ...scopes.map(({ user }) => user)]);
  return [...users].toSorted(byName).map((user) => [
    user,
    {
      pages: pages.filter((page) => userOf(page) === user),
      skills: skills.filter(({ scope }) => scope.user === user),
      changed: changed.filter(({ record }) => record.scope.user === user).map(changedFact),
    },
  ]);
}

function changedFact({ record, before }: ShadowRecord): ChangedFact {
  const { fact: after, taken } = knownFact(record);
  return { before: before && knownFact(before).fact, after, taken };
}

function recordOf({ tenant, agent, at }: Pick<UnitHead, 'tenant' | 'agent' | 'at'>, key: string, value: object): MemoryRecord {
  const named = { layer: LAYER, kind: KIND, key, scope: { tenant, agent, user: null } } as const;
  return { ...named, createdAt: at, ...UNSEARCHED, fields: {}, body: bodyOf(value) };
}

function headRecord(head: UnitHead): MemoryRecord {
  return { ...recordOf(head, keyOf(head), head), fields: { name: head.run, status: head.state } };
}

export async function loadHead(store: RecordStore, { tenant, ...name }: UnitName): Promise<UnitHead | null> {
  const [record] = await store.load(everywhere(tenant), LAYER, KIND, [keyOf(name)]);
  return record === undefined ? null : headOf(record);
}

const headOf = (record: StoredRecord) => parseBody<UnitHead>(record).value;

/** Parts of erased users are missing. */
export async function loadParts(store: RecordStore, { tenant, parts, ...name }: UnitHead): Promise<readonly UnitPart[]> {
  const keys = Array.from({ length: parts }, (_, place) => `${keyOf(name)} ${place}`);
  return (await store.load(everywhere(tenant), LAYER, KIND, keys)).map((record) => parseBody<UnitPart>(record).value);
}

/** Stores the next state, unless the stored one differs from `head.state`. Returns the stored head; null if the unit was erased. */
export async function setHead(store: RecordStore, head: UnitHead, next: Partial<UnitHead>): Promise<UnitHead | null> {
  const { tenant } = head;
  const stored = await untilTaken<UnitHead | 'gone'>(`unit ${keyOf(head)}`, async () => {
    const [record] = await store.load(everywhere(tenant), LAYER, KIND, [keyOf(head)]);
    if (record === undefined) return 'gone';
    if (headOf(record).state !== head.state) return headOf(record);
    const changed = { ...head, ...next };
    return (await putRecord(store, headRecord(changed), record)) ? changed : null;
  });
  return stored === 'gone' ? null : stored;
}

/** The units of a run or in these states, for one agent or for all agents (null). */
export async function findHeads(
  store: RecordStore,
  { tenant, agent }: { readonly tenant: string; readonly agent: string | null },
  where: { readonly name: string } | { readonly status: readonly UnitHead['state'][] },
): Promise<readonly UnitHead[]> {
  return Array.fromAsync(everyValue<UnitHead>(store, { tenant, agent }, LAYER, { kinds: [KIND], where }));
}

/** Cuts a deleted fact or skill out of its owner's units. Undoing then skips facts whose earlier values contain its id. */
export async function cutFromUnits(store: RecordStore, tenant: string, { name, agent, user }: NamedRecord): Promise<void> {
  const [, kind = '', id = ''] = /^(\w+)\/(.*?)(?:@\d+)?$/.exec(name) ?? [];
  const isOther = (fact: Fact) => kind !== 'facts' || factId(fact.scope, fact.text) !== baseOf(id);
  for await (const page of store.each({ tenant, agent, user }, LAYER, { kinds: [KIND] }))
    await updateEach(store, page, (record) => {
      const { pages, skills, changed } = parseBody<UnitPart>(record).value;
      // A head has no parts.
      if (pages === undefined) return null;
      const cut: UnitPart = {
        pages: pages.map((one) => ({ ...one, facts: one.facts.filter(isOther) })),
        skills: skills.filter((skill) => kind !== 'skills' || skill.name !== id),
        changed: changed.filter((one) => kind !== 'facts' || !JSON.stringify(one).includes(baseOf(id))),
      };
      const body = bodyOf(cut);
      return body === record.body ? null : { ...record, body };
    });
}

/** The part of a fact's id that follows from its text. */
const baseOf = (id: string) => id.split('.', 1)[0]!;
