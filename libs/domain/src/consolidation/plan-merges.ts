import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillRegistry } from '../ports/memory.js';
import { mergeMoves, wasBroughtBack } from '../skills/life/merged-skills.js';
import { activatedAt, type Decision, isProofOf, isSameOwner } from '../skills/life/skill-life.js';
import { marksOf } from '../trust/sources.js';

interface PlannedMerge {
  readonly into: Skill;
  readonly from: Skill;
}

/** Maximum number of merges per agent and run. The most similar pairs come first. */
const MERGES_MAX = 10;

/**
 * Pairs of active functions that have the same code under two names, or passed each other's tests in verification. Skills from untrusted sources
 * (marked skills) are left to reviewers, because a merge would make other callers run them.
 */
export function planMerges(skills: readonly Skill[]): readonly PlannedMerge[] {
  const active = skills.filter((skill) => isMergeable(skill));
  const byCode = [...Map.groupBy(active, whatItRuns).values()];
  const sameCode = byCode.flatMap(([first, ...copies]) => copies.map((copy) => ({ skill: first!, other: copy, similarity: 1 })));
  const alike = active.flatMap((skill) =>
    (skill.proof?.alike ?? []).flatMap(({ name, version, similarity, passesTheirs, theyPass }) => {
      const others = active.filter((one) => passesTheirs && theyPass && one.name === name && one.version === version);
      return others.map((other) => ({ skill, other, similarity }));
    }),
  );
  const pairs = [...sameCode, ...alike]
    .filter(({ skill, other }) => mayReplace(skill, other))
    .toSorted((a, b) => b.similarity - a.similarity);
  const [kept, gone] = [new Set<Skill>(), new Set<Skill>()];
  const merges = pairs
    .map(({ skill, other }) => inOrder(skill, other))
    .filter(({ into, from }) => !gone.has(into) && !gone.has(from) && !kept.has(from) && kept.add(into) && gone.add(from));
  return merges.slice(0, MERGES_MAX);
}

/** Maximum number of skills per agent and run that are verified again for a comparison. */
const COMPARED_MAX = 5;

/** Skills to verify again. When two skills were verified at the same time, neither ran on the other's tests. One of the two is enough. */
export function skillsToCompare(skills: readonly Skill[]): readonly Skill[] {
  const active = skills.filter((skill) => isMergeable(skill));
  const byTask = Map.groupBy(
    active.flatMap((skill) => [...new Set([...skill.cues, ...skill.fingerprints])].map((task) => ({ skill, task }))),
    ({ task }) => task,
  );
  const later = [...byTask.values()].flatMap((all) =>
    all.flatMap(({ skill }, at) => all.slice(0, at).flatMap(({ skill: other }) => (areUncompared(skill, other) ? [skill] : []))),
  );
  return [...new Set(later)].slice(0, COMPARED_MAX);
}

function areUncompared(a: Skill, b: Skill): boolean {
  const since = Math.max(activatedAt(a), activatedAt(b));
  return mayReplace(a, b) && [a, b].every(({ proof }) => (proof?.verifiedAt ?? 0) < since);
}

function isMergeable(skill: Skill): boolean {
  const isProven = skill.status === 'active' && skill.kind === 'function' && isProofOf(skill, skill.proof);
  return isProven && marksOf(skill).length === 0 && !wasBroughtBack(skill);
}

function whatItRuns({ scope: { tenant, agent, user }, code, entryPoint, dependencies = [] }: Skill): string {
  return JSON.stringify([tenant, agent, user, namelessCode(code, entryPoint ?? ''), ...dependencies.map(({ digest }) => digest)]);
}

export const namelessCode = (code: string, entryPoint: string): string => code.trimEnd().replace(`def ${entryPoint}(`, 'def (');

function mayReplace(a: Skill, b: Skill): boolean {
  return isSameOwner(a.scope, b.scope) && a.name !== b.name && contractOf(a) === contractOf(b);
}

const contractOf = ({ contract }: Skill) =>
  JSON.stringify(contract?.parameters.map(({ name, required, passed }) => [name, required, passed]));

const worthOf = ({ proof, successRate }: Skill) => (proof?.confidence ?? 0) * successRate;

function inOrder(a: Skill, b: Skill): PlannedMerge {
  const order = worthOf(a) - worthOf(b) || a.executionCount - b.executionCount || activatedAt(b) - activatedAt(a);
  return order >= 0 ? { into: a, from: b } : { into: b, from: a };
}

/** Merges each pair in one step. A pair that somebody changed after the plan is left to the next run. @throws EtudeError MEMORY_UNAVAILABLE */
export async function mergeAll(
  merges: readonly PlannedMerge[],
  who: Pick<Decision, 'by' | 'at'>,
  procedural: Pick<SkillRegistry, 'move'>,
): Promise<void> {
  for (const { into, from } of merges)
    await procedural.move(mergeMoves(into, from, who)).catch((error: unknown) => {
      if (errorCode(error) !== 'ABORTED' && errorCode(error) !== 'FAILED_PRECONDITION') throw error;
    });
}
