import { errorCode } from '@etude/contracts/errors';
import type { Fact, Skill } from '@etude/contracts/memory';
import { isSystemActor, type SkillChange } from '@etude/contracts/skill-proof';
import { factTime } from '@etude/domain/facts/fact-plan';
import type { KeptFromUndo, UndoneUnit } from '@etude/domain/ports/consolidation-units';
import { membersBack } from '@etude/domain/skills/life/merged-skills';
import { GONE, moveOf, replacedReason } from '@etude/domain/skills/life/skill-life';
import { isDeepStrictEqual } from 'node:util';
import type { Memory, ProceduralLayer } from '../memory.js';
import type { Change, RecordStore } from '../record-store.js';
import { changedRecord, FACTS, loadFacts, type StoredKnownFact } from './fact-records.js';
import { untilTaken } from './records.js';
import { type ChangedFact, loadParts, setHead, type UnitHead } from './unit-records.js';

type UndoDeps = Pick<Memory, 'store' | 'semantic' | 'procedural'>;

interface Undoing {
  readonly undone: string[];
  readonly kept: KeptFromUndo[];
  readonly changes: Change[];
}

/**
 * Takes back what a unit in state `undoing` changed: first decisions about its facts, then the facts in one write, then its skills. Later
 * changes by others stay. Each step can be repeated.
 */
export async function undoUnit(deps: UndoDeps, head: UnitHead): Promise<UndoneUnit> {
  const { store } = deps;
  const { tenant, agent } = head;
  const { by, at } = head.undo ?? { by: '', at: head.at };
  const parts = await loadParts(store, head);
  const changed = parts.flatMap((part) => part.changed);
  for (const one of changed) if (one.before === null) await undoDecisions(deps, one, { by, at });
  const plan = await untilTaken(`unit ${head.run} of ${agent}`, async () => {
    const next = await planFacts(store, tenant, changed, at);
    const done = next.changes.length === 0 ? [] : await store.write(tenant, next.changes);
    return done.includes(false) ? null : next;
  });
  for (const skill of parts.flatMap(({ skills }) => skills)) await undoSkill(deps.procedural, skill, head, plan);
  await setHead(store, head, { state: 'undone' });
  return { agent, undone: plan.undone, kept: plan.kept };
}

/** Undoes decisions by which a fact of the unit ended other facts, unless the fact of the unit stays. */
async function undoDecisions({ store, semantic }: UndoDeps, added: ChangedFact, { by, at }: { by: string; at: number }): Promise<void> {
  const { id, scope } = added.after;
  const [known] = await loadFacts(store, { tenant: scope.tenant, agent: null }, [id]);
  if (known === undefined || typeof withoutAdded(known, added, at) === 'string') return;
  for (const { other, verdict } of (known.fact.decisions ?? []).toReversed())
    if (verdict !== 'differs') await semantic.undoDecision({ tenant: scope.tenant, agent: null }, [id, other], by);
}

/** The changes that end the added facts and give the changed facts their earlier values back. */
async function planFacts(store: RecordStore, tenant: string, changed: readonly ChangedFact[], at: number) {
  const ids = changed.map(({ after }) => after.id);
  const known = new Map((await loadFacts(store, { tenant, agent: null }, ids)).map((one) => [one.fact.id, one]));
  const plan: Undoing = { undone: [], kept: [], changes: [] };
  const staying = new Set<string>();
  // Added facts come first, each before the added fact that it replaced.
  for (const one of changed.toReversed().toSorted((a, b) => Number(a.before !== null) - Number(b.before !== null))) {
    const { id, supersededBy = '' } = one.after;
    const [name, now] = [`${FACTS}${id}`, known.get(id)];
    if (now === undefined) continue;
    const next = staying.has(supersededBy)
      ? `${FACTS}${supersededBy}, which replaced it, stays`
      : one.before === null
        ? withoutAdded(now, one, at)
        : restored(now.fact, one);
    if (typeof next === 'string') {
      staying.add(id);
      plan.kept.push({ name, reason: next });
      continue;
    }
    plan.undone.push(name);
    if (next !== now.fact) plan.changes.push(changeTo(now, next, one.before === null));
  }
  return plan;
}

/** The added fact with its validity ended, or the reason why it stays valid. */
function withoutAdded({ fact, taken }: StoredKnownFact, { after, taken: ours }: ChangedFact, at: number): Fact | string {
  if (fact.validTo !== undefined && fact.supersededBy === undefined) return fact;
  if (fact.supersededBy !== after.supersededBy) return `${FACTS}${fact.supersededBy} replaced it since`;
  if (fact.text !== after.text) return 'it was reworded since';
  if (taken.length !== ours.length) return 'it was told again since';
  if (!fact.decisions && fact.confidence !== after.confidence) return 'its confidence was changed since';
  const { supersededBy: _by, ...rest } = fact;
  return { ...rest, validTo: Math.max(at, factTime(fact)) };
}

/** The fact as it was before the unit, or the reason why it stays. */
function restored(fact: Fact, { before, after }: ChangedFact): Fact | string {
  if (before === null || isDeepStrictEqual(contentOf(fact), contentOf(before))) return fact;
  if (!isDeepStrictEqual(contentOf(fact), contentOf(after))) return 'it was changed since';
  const { accessCount, unsettled, decisions } = fact;
  return { ...before, accessCount, ...(unsettled && { unsettled }), ...(decisions && { decisions }) };
}

/** The fact without the fields that searching and comparing change. */
function contentOf({ accessCount: _count, unsettled: _unsettled, decisions: _decisions, ...content }: Fact) {
  return content;
}

/** A fact that the unit added loses its searchable texts, so that its words no longer count in searches. */
function changeTo(known: StoredKnownFact, next: Fact, leaves: boolean): Change {
  const record = changedRecord(known, next);
  const { revision } = known.record;
  return leaves ? { do: 'replace', record, indexed: [], revision } : { do: 'update', record, revision };
}

const UNDID = 'undid the consolidation ';

/** Whether a person made this change, other than by undoing a consolidation. */
const isDecision = ({ by, reason }: SkillChange) => !isSystemActor(by) && !reason.startsWith(UNDID);

/** Archives a proposed skill unless a person decided on it, and brings back the version that it replaced and the skills merged into it. */
async function undoSkill(procedural: ProceduralLayer, skill: Skill, { run, at, undo }: UnitHead, told: Undoing): Promise<void> {
  const decision = { by: undo?.by ?? 'consolidation', reason: `${UNDID}${run}`, at: undo?.at ?? at };
  const versions = await procedural.versions(skill.scope, skill.name);
  const found = versions.find(({ digest }) => digest === skill.digest);
  const name = `skills/${skill.name}@${found?.version ?? skill.version}`;
  const person = found?.history?.find(isDecision);
  const edited = versions.find(({ version, history = [] }) => version > (found?.version ?? version) && history.some(isDecision));
  if (person !== undefined || edited !== undefined) {
    const reason = person === undefined ? `version ${edited?.version} follows it` : `${person.by} decided on it`;
    told.kept.push({ name, reason });
    return;
  }
  try {
    // A skill that is still in the outbox must not come into use later.
    if (found === undefined) await procedural.store(skill, { setAside: decision.reason, by: decision.by });
    else if (!GONE.has(found.status))
      await procedural.move([...movesOf(found, versions, decision), ...(await membersBack(procedural, found, decision))]);
    told.undone.push(name);
  } catch (error) {
    if (errorCode(error) !== 'ABORTED' && errorCode(error) !== 'FAILED_PRECONDITION') throw error;
    told.kept.push({ name, reason: (error as Error).message });
  }
}

function movesOf(found: Skill, versions: readonly Skill[], decision: Parameters<typeof moveOf>[2]) {
  const back = found.status === 'active' ? versionBefore(found, versions) : undefined;
  return [moveOf(found, 'archived', decision), ...(back === undefined ? [] : [moveOf(back, 'active', decision)])];
}

/** The version that this version replaced last, unless somebody moved it since. If it was undone, the version before it. */
function versionBefore({ version, history: own = [] }: Skill, versions: readonly Skill[]): Skill | undefined {
  const since = own.find(({ to }) => to === 'active')?.at ?? 0;
  // Version 0.1.0 gave told procedures the second reason.
  const reasons = [replacedReason(version), `told in other words: version ${version}`];
  const whenOf = ({ history = [] }: Skill) =>
    history.findLast(({ at, by, to, reason }) => to === 'deprecated' && at >= since && isSystemActor(by) && reasons.includes(reason));
  const [last] = versions.filter((one) => whenOf(one) !== undefined).toSorted((a, b) => whenOf(b)!.at - whenOf(a)!.at);
  if (last?.status === 'archived' && last.statusReason.startsWith(UNDID)) return versionBefore(last, versions);
  return last?.status === 'deprecated' && last.history?.at(-1) === whenOf(last) ? last : undefined;
}
