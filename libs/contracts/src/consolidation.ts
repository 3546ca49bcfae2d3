import { z } from 'zod';

/** One pass over an agent's recent episodes, as callers see it. */
export const ConsolidationRecord = z.object({
  id: z.string(),
  tenant: z.string(),
  agent: z.string().nullable(),
  days: z.number().int(),
  dryRun: z.boolean(),
  state: z.enum(['queued', 'running', 'done', 'failed']),
  createdAt: z.number().int(),
  endedAt: z.number().int().nullable().default(null),
  episodesRead: z.number().int().default(0),
  groups: z.number().int().default(0),
  factsAdded: z.number().int().default(0),
  factsReinforced: z.number().int().default(0),
  skillsProposed: z.number().int().default(0),
  skillsActivated: z.number().int().default(0),
  skillsRejected: z.number().int().default(0),
  modelCalls: z.number().int().default(0),
  modelFailures: z.number().int().default(0),
  plan: z.array(z.string()).default([]),
  error: z.string().nullable().default(null),
  scripted: z.boolean().default(false),
});
export type ConsolidationRecord = z.infer<typeof ConsolidationRecord>;
