import type { Skill } from '@etude/contracts/memory';
import type { SkillDependency } from '@etude/contracts/skill-proof';
import type { Clock } from '../../ports/clock.js';
import type { ProceduralMemory } from '../../ports/memory.js';
import { approveSkill, rollbackSkill } from '../life/decisions.js';
import { canonicalJson, skillDigest } from '../content-digest.js';
import { dependencyOn } from './bundle-code.js';
import { activeDependents } from './keep-what-worked.js';

export interface ReverificationDeps {
  readonly procedural: ProceduralMemory;
  readonly clock: Clock;
  /** Resolves once the request is durable. A repeated request for the same skill changes nothing. */
  readonly requestVerification: (skill: Skill) => Promise<void>;
}

/**
 * Stores a new version of each active caller, pinned to this newly active skill and to the present versions of its other callees. That
 * version is verified like any other. An earlier version with these pins is activated again. A repeated call changes nothing.
 *
 * The recursion ends, because no skill calls itself at any depth, and equal pins never give a second version.
 * @throws EtudeError MEMORY_UNAVAILABLE, QUEUE_UNAVAILABLE
 */
export async function reverifyDependents(skill: Skill, deps: ReverificationDeps): Promise<readonly Skill[]> {
  if (skill.status !== 'active') return [];
  const made: Skill[] = [];
  for (const dependent of await activeDependents(skill, deps.procedural)) {
    const version = await repinned(dependent, deps);
    if (version === null) continue;
    made.push(version);
    if (version.status === 'candidate') await deps.requestVerification(version);
    if (version.status === 'deprecated') await useAgain(version, dependent, deps);
  }
  return made;
}

/** After the rollback of a callee, activates the caller's version that was verified with it. */
async function useAgain(version: Skill, dependent: Skill, deps: ReverificationDeps): Promise<void> {
  if (!onlyPinsDiffer(version, dependent) || version.proof === undefined) return;
  const called = (version.dependencies ?? []).map((pin) => `${pin.name}@${pin.version}`).join(', ');
  const decision = { by: 'verification', reason: `calls ${called} again`, at: deps.clock.now() };
  await reverifyDependents(await rollbackSkill(deps.procedural, dependent, { ...decision, toVersion: version.version }), deps);
}

async function repinned(dependent: Skill, { procedural, clock }: ReverificationDeps): Promise<Skill | null> {
  const dependencies = await Promise.all((dependent.dependencies ?? []).map((pin) => presentPin(pin, procedural)));
  const at = clock.now();
  // A new version starts with its own counts.
  const counts = { executionCount: 0, successRate: 1 };
  const next: Skill = { ...dependent, ...counts, dependencies, status: 'candidate', evidence: [], createdAt: at, updatedAt: at };
  if (skillDigest(next) === dependent.digest) return null;
  const changed = dependencies.filter((pin, index) => pin.version !== dependent.dependencies?.[index]?.version);
  const statusReason = `calls ${changed.map(({ name, version }) => `${name}@${version}`).join(', ')}`;
  return procedural.store({ ...next, statusReason, digest: skillDigest(next) }, { by: 'verification', isReviewed: true, words: 'kept' });
}

/** The pin of the owner's active version; the given pin where none is active. */
async function presentPin(pin: SkillDependency, procedural: ProceduralMemory): Promise<SkillDependency> {
  const { tenant, agent, user, name } = pin;
  const [active] = await procedural.versions({ tenant, agent, user }, name, 'active');
  return active === undefined ? pin : dependencyOn(active);
}

/**
 * Approves a version that waits for review, where only its pins differ from the version in use: its code and its callees were approved
 * before. Any other version is returned unchanged.
 */
export async function carryApprovalOver(skill: Skill, replaced: Skill | null, deps: ReverificationDeps): Promise<Skill> {
  const { procedural, clock } = deps;
  if (skill.status !== 'pending_review' || replaced === null || replaced.status !== 'active') return skill;
  if (!onlyPinsDiffer(skill, replaced) || findingsOf(skill) !== findingsOf(replaced)) return skill;
  const pins = await Promise.all((skill.dependencies ?? []).map((pin) => presentPin(pin, procedural)));
  if (canonicalJson(pins) !== canonicalJson(skill.dependencies)) return skill;
  const reason = `approval of version ${replaced.version} carries over: only what it calls is another version`;
  return approveSkill(procedural, skill, { by: 'verification', reason, at: clock.now(), digest: skill.digest });
}

function onlyPinsDiffer(skill: Skill, other: Skill): boolean {
  return skill.digest !== other.digest && withoutPins(skill) === withoutPins(other);
}

function withoutPins({ dependencies = [], ...content }: Skill): string {
  const { code, entryPoint, kind, description, parameters, tests, heldOut, packages, files, untrusted } = content;
  const called = dependencies.map(({ tenant, agent, name }) => ({ tenant, agent, name }));
  return canonicalJson({ code, entryPoint, kind, description, parameters, tests, heldOut, packages, files, untrusted, called });
}

const findingsOf = ({ proof }: Skill) => canonicalJson(proof?.findings ?? []);
