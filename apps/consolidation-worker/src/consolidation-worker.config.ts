import { memoryConfig, requireMemory } from '@etude/memory/memory-config';
import { modelConfig } from '@etude/model/model-config';
import { baseConfig } from '@etude/platform/config';
import { z } from 'zod';

const CRON = /^\S+( \S+){4,5}$/;

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

export const consolidationWorkerConfig = requireMemory(
  baseConfig
    .extend(modelConfig.shape)
    .extend(memoryConfig.shape)
    .extend({
      /** Whether verified skills are used at once or wait for somebody's approval. */
      ETUDE_SKILLS_APPROVAL: z.enum(['automatic', 'review'], {
        error: 'must be "automatic" (verified skills are used at once) or "review" (they wait for approval)',
      }),
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
    })
    .refine((config) => config.ETUDE_CONSOLIDATION_SCHEDULE === undefined || config.ETUDE_CONSOLIDATION_TIME_ZONE !== undefined, {
      path: ['ETUDE_CONSOLIDATION_TIME_ZONE'],
      error: 'the time zone of ETUDE_CONSOLIDATION_SCHEDULE, such as "Europe/Berlin"',
    }),
);
export type ConsolidationWorkerConfig = z.infer<typeof consolidationWorkerConfig>;
