import type { Skill } from '@etude/contracts/memory';
import { SkillVerify } from '@etude/contracts/queues';
import { type AdmissionDeps, admitSkill } from '@etude/domain/skills/verification/admit-skill';
import type { JobHandler } from '@etude/queue/consumer';
import type { Producer } from '@etude/queue/producer';

type VerifyDeps = Omit<AdmissionDeps, 'attempt' | 'requestVerification'>;

/** Verifies a skill; new versions of those that call it get a job of their own. */
export function skillVerifyProcessor(
  producer: Producer,
  deps: VerifyDeps,
): JobHandler<typeof SkillVerify.payload, typeof SkillVerify.result> {
  const requestVerification = async ({ scope: { tenant, agent }, name, version, digest }: Skill) => {
    await producer.add(SkillVerify, { v: 1, tenant, agent, name, version, digest });
  };
  return async (payload, { attempt, signal }) => {
    const { status } = await admitSkill(payload, { ...deps, requestVerification, attempt }, signal);
    return { status };
  };
}
