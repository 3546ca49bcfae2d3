import { z } from 'zod';

const slug = (max = 64) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, `must start with a letter or digit and hold only letters, digits, ".", "_" and "-"`);

export const TenantId = slug();
export const AgentId = slug();
export const UserId = slug(128);
/** Owners of shared skills: all agents of one user, all agents of one tenant, and all tenants. */
export const USER_AGENT = '@user';
export const TENANT_AGENT = '@tenant';
export const GLOBAL_TENANT = '@global';
/** The owner of a record. Callers can't authenticate as, or name, an owner that starts with "@". */
export const OwnerTenant = z.union([TenantId, z.literal(GLOBAL_TENANT)]);
export const OwnerAgent = z.union([AgentId, z.literal([USER_AGENT, TENANT_AGENT])]);
export const WorldId = slug();
export const RequestId = slug(128);
/** `t` and a time-ordered unique part: sorting the ids sorts them by creation. */
export const TaskId = z.string().regex(/^t[0-9a-z]{8,40}$/);
/** `<task>-r<n>`: the n-th rollout of a task. */
export const RolloutId = z.string().regex(/^t[0-9a-z]{8,40}-r[0-9]{1,6}$/);
/** The sandbox of a session: `s` and a time-ordered unique part. */
export const SandboxId = z.string().regex(/^s[0-9a-z]{8,40}$/);
export const SkillName = z
  .string()
  .regex(
    /^[a-z][a-z0-9_]{0,79}$/,
    'must start with a small letter and hold only small letters, digits and "_", at most 80 characters; such as "sum_of_squares"',
  );

export const rolloutIdOf = (taskId: string) => `${taskId}-r1`;
export const taskIdOf = (rolloutId: string) => rolloutId.slice(0, rolloutId.lastIndexOf('-r'));

/** The task of an execution with the id `<rollout>.<step>`; null if it runs for no task, such as to verify a skill. */
export function taskOfExecution(executionId: string): string | null {
  const rollout = RolloutId.safeParse(executionId.split('.')[0]);
  return rollout.success ? taskIdOf(rollout.data) : null;
}

export const taskName = (taskId: string) => `tasks/${taskId}`;
export const sandboxName = (sandboxId: string) => `sandboxes/${sandboxId}`;
export const skillResourceName = (name: string) => `skills/${name}`;
