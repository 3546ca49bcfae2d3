import type { SkillVerify } from '@etude/contracts/queues';
import { type AdmissionDeps, admitSkill } from '@etude/domain/skills/admit-skill';
import type { JobHandler } from '@etude/queue/consumer';

export function skillVerifyProcessor(
  deps: Omit<AdmissionDeps, 'attempt'>,
): JobHandler<typeof SkillVerify.payload, typeof SkillVerify.result> {
  return async (payload, { attempt, signal }) => {
    const { status } = await admitSkill(payload, { ...deps, attempt }, signal);
    return { status };
  };
}
