import type { Skill } from '@etude/contracts/memory';
import { SkillVerify, verificationOf } from '@etude/contracts/queues';
import { type AdmissionDeps, admitSkill } from '@etude/domain/skills/proof/admit-skill';
import type { JobHandler } from '@etude/queue/jobs/consumer';
import type { Producer } from '@etude/queue/jobs/producer';

type VerifyDeps = Omit<AdmissionDeps, 'attempt' | 'requestVerification'>;

/** Verifies a skill; new versions of those that call it get a job of their own. */
export function skillVerifyProcessor(
  producer: Producer,
  deps: VerifyDeps,
): JobHandler<typeof SkillVerify.payload, typeof SkillVerify.result> {
  const requestVerification = async (skill: Skill) => {
    await producer.add(SkillVerify, verificationOf(skill));
  };
  return async (payload, { attempt, signal }) => {
    const { status } = await admitSkill(payload, { ...deps, requestVerification, attempt }, signal);
    return { status };
  };
}
