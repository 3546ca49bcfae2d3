import { unlessUnreadable } from '../layers/records.js';
import { bringBack, callGraph, isMoved, leaveOneActive, type MoveDeps } from '../layers/skill-moves.js';
import { openedSkill } from '../layers/skill-records.js';
import type { RecordStore, StoreReport } from '../record-store.js';
import type { Skill } from '@etude/contracts/memory';
import { uncallableReason, versionKey } from '@etude/domain/skills/life/call-graph';
import { IN_USE, isVersionOf, keyOf, LIVING, VERIFIER } from '@etude/domain/skills/life/skill-life';

interface Found {
  readonly checked: number;
  /** Of these there are several in use. */
  readonly doubled: readonly Skill[];
  readonly uncallable: ReadonlyArray<{ skill: Skill; reason: string }>;
}

/**
 * What a move looks at once more behind its writes, for moves that were cut off before: without transactions they can leave two versions
 * in use, or one whose dependencies are gone. Such a version goes out of use, and the version that it replaced comes back. Where a
 * dependency is only being verified again, the version stays and is reported as a problem.
 */
export async function reconcileSkills(deps: MoveDeps, tenant: string): Promise<StoreReport> {
  const repaired: string[] = [];
  const problems: string[] = [];
  const { checked, doubled, uncallable } = await look(deps.store, tenant, problems);
  for (const skill of doubled)
    await unlessUnreadable(deps.store, problems, textOf(skill), async () => {
      await leaveOneActive(deps, [skill]);
      repaired.push(`of several versions of ${textOf(skill)} in use, the last that was taken into use is left`);
    });
  for (const { skill, reason } of uncallable)
    await unlessUnreadable(deps.store, problems, textOf(skill), async () => {
      const mended = (await waits(deps.store, skill)) ? [] : await takeOut(deps, skill, reason);
      if (mended.length === 0) problems.push(`${textOf(skill)} is ${skill.status} and can't run: ${reason}`);
      repaired.push(...mended);
    });
  return { checked: { skills: checked }, repaired, problems };
}

async function look(store: RecordStore, tenant: string, problems: string[]): Promise<Found> {
  const active = new Set<string>();
  const doubled = new Map<string, Skill>();
  const uncallable: Array<{ skill: Skill; reason: string }> = [];
  let checked = 0;
  for await (const page of store.each({ tenant }, 'procedural', { kinds: ['skill'], where: { status: [...IN_USE] } })) {
    checked += page.length;
    for (const record of page)
      await unlessUnreadable(store, problems, `skill ${JSON.stringify(record.key)} of ${tenant}`, async () => {
        const { skill } = openedSkill(record);
        const name = versionKey({ ...skill, version: 0 });
        if (skill.status === 'active' && active.has(name)) doubled.set(name, skill);
        if (skill.status === 'active') active.add(name);
        const reason = (skill.dependencies ?? []).length === 0 ? null : await uncallableReason(callGraph(store), skill);
        if (reason !== null) uncallable.push({ skill, reason });
      });
  }
  return { checked, doubled: [...doubled.values()], uncallable };
}

/** Whether all that it can't call may be called again without being stored again. */
async function waits(store: RecordStore, skill: Skill): Promise<boolean> {
  const { versions } = callGraph(store);
  const asSettled: typeof versions = async (...args) =>
    (await versions(...args)).map((one) => (LIVING.has(one.status) ? { ...one, status: 'active' } : one));
  return (await uncallableReason({ versions: asSettled }, skill)) === null;
}

/** What was done, one sentence each; nothing where somebody decided on it meanwhile. As verification settles it: nobody said no to it. */
async function takeOut(deps: MoveDeps, skill: Skill, reason: string): Promise<readonly string[]> {
  const decision = { by: VERIFIER, at: deps.clock.now(), reason };
  const to = skill.status === 'active' ? 'deprecated' : 'rejected';
  if (!(await isMoved(deps, { ...decision, key: keyOf(skill), to, from: [skill.status] }))) return [];
  const done = [`${textOf(skill)}, which was ${skill.status} and could not run, is ${to} now: ${reason}`];
  for (const one of await replacedBy(deps.store, skill)) {
    const back = { ...decision, reason: `version ${skill.version} of ${skill.name} could not take its place` };
    if (await bringBack(deps, one, back)) done.push(`${textOf(one)}, the place of which it took, is active again`);
  }
  return done;
}

/** What went out of use by the very decision that took this one into use, where that was the last one on either. */
async function replacedBy(store: RecordStore, skill: Skill): Promise<readonly Skill[]> {
  const entered = skill.history?.at(-1);
  if (skill.status !== 'active' || entered?.to !== 'active' || entered.from === 'active') return [];
  const found: Skill[] = [];
  const filter = { kinds: ['skill'], where: { status: 'deprecated' } } as const;
  for await (const page of store.each({ tenant: skill.scope.tenant }, 'procedural', filter))
    for (const record of page) {
      const one = openedSkill(record).skill;
      const left = one.history?.at(-1);
      const isSameDecision = left?.from === 'active' && left.by === entered.by && left.at === entered.at;
      if (isSameDecision && (isVersionOf(one, skill) || one.replacedBy === skill.name)) found.push(one);
    }
  return found;
}

const textOf = ({ name, version, scope }: Skill) => `skill ${name}@${version} of "${scope.agent}" in ${scope.tenant}`;
