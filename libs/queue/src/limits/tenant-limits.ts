import { EtudeError } from '@etude/contracts/errors';
import { TenantId } from '@etude/contracts/ids';
import { parsedJson } from '@etude/contracts/json';
import { z } from 'zod';

const count = z.number().int().min(0);
/** A limit of 0 means no limit. */
const Limits = z.strictObject({
  /** Weight in the share of workers among tenants with waiting tasks. */
  weight: z.number().int().min(1).max(100),
  /** Most unfinished tasks. */
  tasks: count,
  /** Most tasks accepted within a minute, which begins with the first of them. */
  submitsPerMinute: count,
  /** Most open sandboxes. The sandbox controllers enforce this limit. */
  sandboxes: z.number().int().min(1),
  /** Most tokens and US dollars of model calls per day (UTC). */
  tokensPerDay: count,
  usdPerDay: z.number().min(0),
});
export type TenantLimits = Readonly<z.infer<typeof Limits>>;
export type TenantLimitsOf = (tenant: string) => TenantLimits;

/** The settings of every service that enforces limits of tenants. Every service needs the same values. */
export const tenantLimitsConfig = z.object({
  /**
   * Limits by tenant, as a JSON object such as {"*": {"tasks": 1000}, "acme": {"weight": 5}}; "*" is every other tenant. The limits are
   * "weight", "tasks" (unfinished ones; default 10,000), "submitsPerMinute", "sandboxes" (default 16), "tokensPerDay" and "usdPerDay". The last
   * two limit model calls, with their prompts, per day in UTC. A call that has begun may exceed the limit.
   */
  ETUDE_TENANT_LIMITS: z
    .string()
    .default('{}')
    .transform((text, context) => {
      const value = parsedJson(text);
      if (value !== undefined) return value;
      context.addIssue('must be a JSON object such as {"*": {"tasks": 1000}, "acme": {"weight": 5}}');
      return z.NEVER;
    })
    .pipe(z.record(TenantId.or(z.literal('*')), Limits.partial())),
});

/** With weight 1, the line has a place for each of the 10,000 tasks (PLACE_MAX in `tasks/shared.lua`). */
const USUAL: TenantLimits = { weight: 1, tasks: 10_000, submitsPerMinute: 0, sandboxes: 16, tokensPerDay: 0, usdPerDay: 0 };

export function limitsFrom({ ETUDE_TENANT_LIMITS: own }: z.infer<typeof tenantLimitsConfig>): TenantLimitsOf {
  const usual = { ...USUAL, ...own['*'] };
  return (tenant) => (Object.hasOwn(own, tenant) ? { ...usual, ...own[tenant] } : usual);
}

/** Distance between the tags of a tenant's tasks in the line (`tasks/shared.lua`). */
export const tagsApart = ({ weight }: TenantLimits): number => Math.round(100 / weight);

/** How long a caller waits for one of its tasks to end before it submits again. */
const TASK_END_MS = 5_000;

/** @param told number of unfinished tasks, or ms until the tenant may submit again */
export function limitReached(
  tenant: string,
  limit: 'tasks' | 'submits',
  told: number,
  { tasks, submitsPerMinute }: TenantLimits,
): EtudeError {
  const [reason, retryAfterMs] =
    limit === 'tasks'
      ? [`${told} unfinished tasks, and may have at most ${tasks}; wait until some have ended, or cancel some`, TASK_END_MS]
      : [`submitted ${submitsPerMinute} tasks within a minute, the most that it may; submit again later`, told];
  const message = `tenant ${tenant} has ${reason}; the operator can raise the limit`;
  return new EtudeError('TENANT_LIMIT', message, { retryAfterMs, metadata: { limit } });
}
