import { APPROVAL_MODES, ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { z } from 'zod';

const flag = () =>
  z.stringbool({ truthy: ['true', '1', 'yes', 'on'], falsy: ['false', '0', 'no', 'off'], error: 'must be true or false' }).optional();
const share = () => z.coerce.number({ error: 'must be a number from 0 to 1' }).min(0).max(1).optional();

/**
 * A service's settings for agents that have none of their own, the same for every service. Defaults are those of
 * `ProceduralMemorySettings`.
 */
export const agentSettingsConfig = z.object({
  /** Whether agents learn, offer and use skills at all. */
  ETUDE_SKILLS_ENABLED: flag(),
  /** Whether rollouts and consolidation register working code as skills. */
  ETUDE_SKILLS_AUTO_REGISTER: flag(),
  /** The least confidence at which the approval mode "threshold" approves a skill by itself. */
  ETUDE_SKILLS_CONFIDENCE_MIN: share(),
  /** The most skills of an agent, rejected and archived ones not counted; 0: no limit. */
  ETUDE_SKILLS_MAX: z.coerce.number().int().min(0).max(1_000_000).optional(),
  /** The least similarity at which a skill is used instead of new code. */
  ETUDE_SKILLS_SEARCH_SIMILARITY_MIN: share(),
  /** Whether a fitting skill is tried before the model is asked. */
  ETUDE_SKILLS_PREFER: flag(),
  /** Who approves a verified skill; see docs/skills.md. */
  ETUDE_SKILLS_APPROVAL: z
    .enum(APPROVAL_MODES, {
      error:
        'must be "automatic" (verified skills are used at once), "review" (they wait for approval) or "threshold" (they wait below ETUDE_SKILLS_CONFIDENCE_MIN)',
    })
    .optional(),
});
export type AgentSettingsConfig = z.infer<typeof agentSettingsConfig>;

export function installationSettings(config: AgentSettingsConfig): ProceduralMemorySettings {
  return ProceduralMemorySettings.parse({
    enabled: config.ETUDE_SKILLS_ENABLED,
    autoRegisterSkills: config.ETUDE_SKILLS_AUTO_REGISTER,
    skillRegistrationConfidenceThreshold: config.ETUDE_SKILLS_CONFIDENCE_MIN,
    maxSkills: config.ETUDE_SKILLS_MAX,
    skillSearchThreshold: config.ETUDE_SKILLS_SEARCH_SIMILARITY_MIN,
    preferSkills: config.ETUDE_SKILLS_PREFER,
    approvalMode: config.ETUDE_SKILLS_APPROVAL,
  });
}
