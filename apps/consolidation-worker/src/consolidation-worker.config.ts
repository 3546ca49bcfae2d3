import { memoryConfig, requireMemory } from '@etude/memory/memory-config';
import { modelConfig } from '@etude/model/model-config';
import { baseConfig } from '@etude/platform/config';
import { publicKeysConfig, signingKeyConfig } from '@etude/platform/proof-keys';
import { sandboxPackagesConfig } from '@etude/platform/sandbox-packages';
import { agentSettingsConfig } from '@etude/queue/agents/agent-settings-config';
import { z } from 'zod';

const CRON = /^\S+( \S+){4,5}$/;

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

interface PruneLimits {
  readonly ETUDE_SKILLS_PRUNE_UNUSED_DAYS: number;
  readonly ETUDE_SKILLS_PRUNE_FAILING_RATE_MAX: number;
  readonly ETUDE_SKILLS_PRUNE_SUPERSEDED_DAYS: number;
}

function prunesAnything(config: PruneLimits): boolean {
  return config.ETUDE_SKILLS_PRUNE_UNUSED_DAYS + config.ETUDE_SKILLS_PRUNE_FAILING_RATE_MAX + config.ETUDE_SKILLS_PRUNE_SUPERSEDED_DAYS > 0;
}

export const consolidationWorkerConfig = requireMemory(
  baseConfig
    .extend(modelConfig.shape)
    .extend(memoryConfig.shape)
    .extend(agentSettingsConfig.shape)
    .extend(signingKeyConfig.shape)
    .extend(publicKeysConfig.shape)
    .extend(sandboxPackagesConfig.shape)
    .extend({
      /** Share of a skill's mutants that its tests have to notice, 0 to 1; one of them in any case. */
      ETUDE_SKILLS_MUTATION_SCORE_MIN: z.coerce.number().min(0).max(1).default(0.5),
      /** Cron pattern of the nightly run of every tenant that has learned something. Unset: runs on demand only. */
      ETUDE_CONSOLIDATION_SCHEDULE: z
        .string()
        .trim()
        .regex(CRON, 'must be a cron pattern of five or six fields, such as "0 3 * * *"')
        .optional(),
      /** IANA name; needed with a schedule. */
      ETUDE_CONSOLIDATION_TIME_ZONE: z.string().refine(isTimeZone, 'must be an IANA time zone, such as "Europe/Berlin"').optional(),
      /** Days that a nightly run looks back. */
      ETUDE_CONSOLIDATION_DAYS: z.coerce.number().int().min(1).max(3_650).default(7),
      /** How long a run waits at its start for pending memory writes of its tenant. */
      ETUDE_CONSOLIDATION_WRITES_WAIT_MS: z.coerce.number().int().min(0).max(600_000).default(30_000),
      /** How long a run waits at its end for its skills to be verified. */
      ETUDE_CONSOLIDATION_SKILLS_WAIT_MS: z.coerce.number().int().min(0).max(3_000_000).default(60_000),
      /** Cron pattern by which every tenant's least needed records leave retrieval; see `forgettingScore`. Unset: only when asked for. */
      ETUDE_ARCHIVE_SCHEDULE: z.string().trim().regex(CRON, 'must be a cron pattern of five or six fields, such as "0 4 * * *"').optional(),
      /** IANA name; needed with a schedule. */
      ETUDE_ARCHIVE_TIME_ZONE: z.string().refine(isTimeZone, 'must be an IANA time zone, such as "Europe/Berlin"').optional(),
      /** Needed with a schedule: what scores below is archived. */
      ETUDE_ARCHIVE_SCORE_MAX: z.coerce.number().min(0).max(1).optional(),
      /** Younger records are never archived. */
      ETUDE_ARCHIVE_OLDER_THAN_DAYS: z.coerce.number().int().min(0).max(36_500).default(30),
      /** Cron pattern by which every tenant's skills are pruned; `prune --undo` takes it back. Unset: only when asked for. */
      ETUDE_SKILLS_PRUNE_SCHEDULE: z
        .string()
        .trim()
        .regex(CRON, 'must be a cron pattern of five or six fields, such as "0 5 * * *"')
        .optional(),
      /** IANA name; needed with a schedule. */
      ETUDE_SKILLS_PRUNE_TIME_ZONE: z.string().refine(isTimeZone, 'must be an IANA time zone, such as "Europe/Berlin"').optional(),
      /** Needed with a schedule, one of them at least: active and not used for so long, failing more often, deprecated for so long. */
      ETUDE_SKILLS_PRUNE_UNUSED_DAYS: z.coerce.number().int().min(0).max(36_500).default(0),
      ETUDE_SKILLS_PRUNE_FAILING_RATE_MAX: z.coerce.number().min(0).max(1).default(0),
      ETUDE_SKILLS_PRUNE_SUPERSEDED_DAYS: z.coerce.number().int().min(0).max(36_500).default(0),
      /** Uses before a skill can be called failing. */
      ETUDE_SKILLS_PRUNE_FAILING_USES_MIN: z.coerce.number().int().min(1).max(1_000_000).default(5),
    })
    .refine((config) => config.ETUDE_ARCHIVE_SCHEDULE === undefined || config.ETUDE_ARCHIVE_TIME_ZONE !== undefined, {
      path: ['ETUDE_ARCHIVE_TIME_ZONE'],
      error: 'the time zone of ETUDE_ARCHIVE_SCHEDULE, such as "Europe/Berlin"',
    })
    .refine((config) => config.ETUDE_ARCHIVE_SCHEDULE === undefined || config.ETUDE_ARCHIVE_SCORE_MAX !== undefined, {
      path: ['ETUDE_ARCHIVE_SCORE_MAX'],
      error: 'the score below which ETUDE_ARCHIVE_SCHEDULE archives, such as 0.2',
    })
    .refine((config) => config.ETUDE_SKILLS_PRUNE_SCHEDULE === undefined || config.ETUDE_SKILLS_PRUNE_TIME_ZONE !== undefined, {
      path: ['ETUDE_SKILLS_PRUNE_TIME_ZONE'],
      error: 'the time zone of ETUDE_SKILLS_PRUNE_SCHEDULE, such as "Europe/Berlin"',
    })
    .refine((config) => config.ETUDE_SKILLS_PRUNE_SCHEDULE === undefined || prunesAnything(config), {
      path: ['ETUDE_SKILLS_PRUNE_UNUSED_DAYS'],
      error: 'or _FAILING_RATE_MAX or _SUPERSEDED_DAYS: what ETUDE_SKILLS_PRUNE_SCHEDULE prunes, such as 180',
    })
    .refine((config) => config.ETUDE_CONSOLIDATION_SCHEDULE === undefined || config.ETUDE_CONSOLIDATION_TIME_ZONE !== undefined, {
      path: ['ETUDE_CONSOLIDATION_TIME_ZONE'],
      error: 'the time zone of ETUDE_CONSOLIDATION_SCHEDULE, such as "Europe/Berlin"',
    }),
);
export type ConsolidationWorkerConfig = z.infer<typeof consolidationWorkerConfig>;
