import { memoryConfig, requireMemory } from '@etude/memory/memory-config';
import { modelConfig } from '@etude/model/model-config';
import { baseConfig, sandboxPackagesConfig } from '@etude/platform/config';
import { publicKeysConfig, signingKeyConfig } from '@etude/platform/proof-keys';
import { agentSettingsConfig } from '@etude/queue/agents/agent-settings-store';
import { tenantLimitsConfig } from '@etude/queue/limits/tenant-limits';
import type { ScheduleParts, ScheduleTimes } from '@etude/queue/jobs/scheduler';
import { z } from 'zod';

const cron = (example: string) =>
  z
    .string()
    .trim()
    .regex(/^\S+( \S+){4,5}$/, `must be a cron pattern of five or six fields, such as "${example}"`)
    .optional();

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

const PRUNE_LIMITS = [
  'ETUDE_SKILLS_PRUNE_UNUSED_DAYS',
  'ETUDE_SKILLS_PRUNE_FAILING_RATE_MAX',
  'ETUDE_SKILLS_PRUNE_SUPERSEDED_DAYS',
] as const;

export const consolidationWorkerConfig = requireMemory(
  baseConfig
    .extend(modelConfig.shape)
    .extend(memoryConfig.shape)
    .extend(tenantLimitsConfig.shape)
    .extend(agentSettingsConfig.shape)
    .extend(signingKeyConfig.shape)
    .extend(publicKeysConfig.shape)
    .extend(sandboxPackagesConfig.shape)
    .extend({
      /** Share of a skill's mutants (deliberately broken copies) that its tests must detect, 0 to 1; at least one mutant. */
      ETUDE_SKILLS_MUTATION_SCORE_MIN: z.coerce.number().min(0).max(1).default(0.5),
      /** Most model calls per day and tenant that compare new facts with similar facts; 0: no calls. */
      ETUDE_SETTLING_CALLS_PER_DAY: z.coerce.number().int().min(0).max(1_000_000).default(1_000),
      /** Cron pattern of nightly consolidation. Unset: on demand only. */
      ETUDE_CONSOLIDATION_SCHEDULE: cron('0 3 * * *'),
      /** IANA name of the time zone of all schedules. */
      ETUDE_SCHEDULES_TIME_ZONE: z.string().refine(isTimeZone, 'must be an IANA time zone, such as "Europe/Berlin"').default('UTC'),
      /** Days that a nightly consolidation looks back. */
      ETUDE_CONSOLIDATION_DAYS: z.coerce.number().int().min(1).max(3_650).default(7),
      /** Most model calls of a consolidation run; 0: no limit. */
      ETUDE_CONSOLIDATION_MODEL_CALLS_MAX: z.coerce.number().int().min(0).max(10_000_000).default(0),
      /** Most input and output tokens of a consolidation run's model calls; 0: no limit. */
      ETUDE_CONSOLIDATION_TOKENS_MAX: z.coerce.number().int().min(0).max(10_000_000_000).default(0),
      /** Longest time, in ms, that a consolidation run waits for pending memory writes. */
      ETUDE_CONSOLIDATION_WRITES_WAIT_MS: z.coerce.number().int().min(0).max(600_000).default(30_000),
      /** Longest time, in ms, that a consolidation run waits until its skills are verified. */
      ETUDE_CONSOLIDATION_SKILLS_WAIT_MS: z.coerce.number().int().min(0).max(3_000_000).default(60_000),
      /** Cron pattern for archiving the least needed records. Unset: on demand only. */
      ETUDE_ARCHIVE_SCHEDULE: cron('0 4 * * *'),
      /** Records with a score below this, 0 to 1, are archived. ETUDE_ARCHIVE_SCHEDULE needs it. */
      ETUDE_ARCHIVE_SCORE_MAX: z.coerce.number().min(0).max(1).optional(),
      /** Records younger than this are never archived. */
      ETUDE_ARCHIVE_OLDER_THAN_DAYS: z.coerce.number().int().min(0).max(36_500).default(30),
      /** Cron pattern for pruning skills. Unset: on demand only. */
      ETUDE_SKILLS_PRUNE_SCHEDULE: cron('0 5 * * *'),
      /** Archives active skills that were not used for this many days; 0: never. A pruning on a schedule needs at least one such limit. */
      ETUDE_SKILLS_PRUNE_UNUSED_DAYS: z.coerce.number().int().min(0).max(36_500).default(0),
      /** Archives active skills with a success rate below this, 0 to 1; 0: never. */
      ETUDE_SKILLS_PRUNE_FAILING_RATE_MAX: z.coerce.number().min(0).max(1).default(0),
      /** Archives skills that were deprecated at least this many days ago; 0: never. */
      ETUDE_SKILLS_PRUNE_SUPERSEDED_DAYS: z.coerce.number().int().min(0).max(36_500).default(0),
      /** Number of uses before a skill can count as failing. */
      ETUDE_SKILLS_PRUNE_FAILING_USES_MIN: z.coerce.number().int().min(1).max(1_000_000).default(5),
    })
    .superRefine((config, context) => {
      const refuse = (setting: string, message: string) => context.addIssue({ code: 'custom', path: [setting], message });
      if (config.ETUDE_ARCHIVE_SCHEDULE !== undefined && config.ETUDE_ARCHIVE_SCORE_MAX === undefined)
        refuse('ETUDE_ARCHIVE_SCORE_MAX', 'ETUDE_ARCHIVE_SCHEDULE needs the score below which it archives, such as 0.2');
      if (config.ETUDE_SKILLS_PRUNE_SCHEDULE !== undefined && PRUNE_LIMITS.every((limit) => config[limit] === 0))
        refuse(PRUNE_LIMITS[0], 'ETUDE_SKILLS_PRUNE_SCHEDULE needs this setting (such as 180 days), _FAILING_RATE_MAX or _SUPERSEDED_DAYS');
    }),
);
export type ConsolidationWorkerConfig = z.infer<typeof consolidationWorkerConfig>;

export function schedulesFrom(config: ConsolidationWorkerConfig): ScheduleParts['schedules'] {
  const timesOf = (pattern: string | undefined): ScheduleTimes | null =>
    pattern === undefined ? null : { pattern, timeZone: config.ETUDE_SCHEDULES_TIME_ZONE };
  const nightly = timesOf(config.ETUDE_CONSOLIDATION_SCHEDULE);
  const archive = timesOf(config.ETUDE_ARCHIVE_SCHEDULE);
  const prune = timesOf(config.ETUDE_SKILLS_PRUNE_SCHEDULE);
  const scoreMax = config.ETUDE_ARCHIVE_SCORE_MAX;
  return {
    nightly: nightly && { ...nightly, days: config.ETUDE_CONSOLIDATION_DAYS },
    archive: archive && scoreMax !== undefined ? { ...archive, scoreMax, olderThanDays: config.ETUDE_ARCHIVE_OLDER_THAN_DAYS } : null,
    prune: prune && {
      ...prune,
      unusedDays: config.ETUDE_SKILLS_PRUNE_UNUSED_DAYS,
      failingRateMax: config.ETUDE_SKILLS_PRUNE_FAILING_RATE_MAX,
      failingUsesMin: config.ETUDE_SKILLS_PRUNE_FAILING_USES_MIN,
      supersededDays: config.ETUDE_SKILLS_PRUNE_SUPERSEDED_DAYS,
    },
  };
}
