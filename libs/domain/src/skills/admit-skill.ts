import { EtudeError, errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { ApprovalMode, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';
import type { Clock } from '../ports/clock.js';
import type { ProceduralMemory } from '../ports/memory.js';
import type { Sandboxes } from '../ports/sandboxes.js';
import { activeVersion, recordVerification, settleVerified } from './approve.js';
import { verifySkill } from './verify-skill.js';

export interface SkillKey {
  readonly tenant: string;
  readonly agent: string;
  readonly name: string;
  readonly version: number;
  readonly digest: string;
}

export interface AdmissionDeps {
  readonly procedural: ProceduralMemory;
  readonly sandboxes: Sandboxes;
  readonly clock: Clock;
  readonly approval: ApprovalMode;
  /** See `VerificationDeps`. */
  readonly attempt?: number;
}

/**
 * A candidate's way to being used: verified in a sandbox, then approved as the setting says, or rejected with the reason.
 * Repeating it goes on where it was left, and changes nothing once it is through.
 *
 * @throws EtudeError NOT_FOUND, ABORTED (the version holds other code now), SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY,
 *   MEMORY_UNAVAILABLE, MEMORY_FULL; an AbortError when `signal` aborts
 */
export async function admitSkill(key: SkillKey, deps: AdmissionDeps, signal: AbortSignal): Promise<Skill> {
  const { procedural, clock } = deps;
  const approval = { approvalMode: deps.approval, skillRegistrationConfidenceThreshold: 1 };
  const skill = await loadSkill(key, procedural);
  if (skill.status !== 'candidate') return settleVerified(procedural, skill, approval, clock.now());
  const replaced = await activeVersion(procedural, skill);
  const verification = await verifySkill(skill, { ...deps, replaced }, signal);
  signal.throwIfAborted();
  const proof = unsignedProof(skill, clock.now());
  const recorded = await recordVerification(procedural, skill, { ...verification, proof }, clock.now()).catch((error: unknown) =>
    movedOn(key, procedural, error),
  );
  return settleVerified(procedural, recorded, approval, clock.now());
}

function unsignedProof({ digest, tests }: Skill, verifiedAt: number): SkillProof {
  const nothing = { findings: [], kept: [], alike: [], mutantsSurvived: [] };
  const counts = { testsPassed: tests.length, heldOutPassed: 0, mutantsMade: 0, mutantsNoticed: 0, confidence: 0 };
  return { v: 1, digest, verifiedAt, ...counts, ...nothing, keyId: '', signature: '' };
}

async function loadSkill({ tenant, agent, name, version, digest }: SkillKey, procedural: ProceduralMemory): Promise<Skill> {
  const skill = await procedural.get({ tenant, agent }, name, version);
  if (skill === null) throw new EtudeError('NOT_FOUND', `Skill "${name}" has no version ${version}; it can't be verified.`);
  if (skill.digest !== digest)
    throw new EtudeError(
      'ABORTED',
      `Version ${version} of skill "${name}" has digest ${skill.digest}, not ${digest}, which was to be verified.`,
    );
  return skill;
}

/** Somebody else with the same job was faster: what they found stands. */
async function movedOn(key: SkillKey, procedural: ProceduralMemory, error: unknown): Promise<Skill> {
  if (errorCode(error) !== 'ABORTED') throw error;
  const skill = await loadSkill(key, procedural);
  if (skill.status === 'candidate') throw error;
  return skill;
}

/** Verification and approval are over; only people change these. */
const SETTLED: ReadonlySet<SkillStatus> = new Set(['active', 'pending_review', 'rejected', 'deprecated', 'archived']);

/** The status of the stored skill with this name and digest once nothing more happens by itself; null until then. */
export async function settledStatus(
  procedural: ProceduralMemory,
  { scope, name, digest }: Pick<Skill, 'scope' | 'name' | 'digest'>,
): Promise<SkillStatus | null> {
  const owner = { tenant: scope.tenant, agent: scope.agent };
  const newest = await procedural.get(owner, name);
  for (let version = newest?.version ?? 0; version >= 1; version -= 1) {
    const skill = version === newest?.version ? newest : await procedural.get(owner, name, version);
    if (skill?.digest === digest && skill.scope.user === scope.user) return SETTLED.has(skill.status) ? skill.status : null;
  }
  return null;
}
