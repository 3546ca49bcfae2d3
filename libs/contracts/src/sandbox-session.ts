import { z } from 'zod';
import { SandboxId } from './ids.js';
import { SandboxLimits, TemplateName } from './sandbox.js';

/** Lifetime of a session that isn't renewed: the maximum and the default. */
export const SESSION_TTL_MS_MAX = 24 * 3_600_000;
export const SESSION_TTL_MS_DEFAULT = 600_000;
/** Size of one chunk in an upload or download. */
export const FILE_CHUNK_BYTES_MAX = 512 * 1024;

/** The request to open a session. Repeating a `requestId` returns the same session. */
export const SessionRequest = z.strictObject({
  tenant: z.string(),
  requestId: z.string().min(1).max(200),
  template: TemplateName.default('default'),
  limits: SandboxLimits,
  ttlMs: z.number().int().min(1_000).max(SESSION_TTL_MS_MAX).default(SESSION_TTL_MS_DEFAULT),
  labels: z.record(z.string().max(63), z.string().max(255)).default({}),
});
export type SessionRequest = z.infer<typeof SessionRequest>;

export const SESSION_STATES = ['open', 'closed', 'expired', 'lost'] as const;

/** A session as callers see it. It is kept for an hour after its end, so that callers can learn how it ended. */
export const SandboxSession = z.object({
  id: SandboxId,
  tenant: z.string(),
  state: z.enum(SESSION_STATES),
  /** For `lost`: the reason, starting with the exit reason of the infrastructure, such as evicted or node_lost. */
  stateReason: z.string().default(''),
  template: TemplateName,
  limits: SandboxLimits,
  labels: z.record(z.string(), z.string()),
  createdAt: z.number().int(),
  expiresAt: z.number().int(),
});
export type SandboxSession = z.infer<typeof SandboxSession>;

/** A regular file below a session's working directory. */
export const SessionFile = z.strictObject({
  path: z.string(),
  sizeBytes: z.number().int(),
  modifiedMs: z.number().int(),
});
export type SessionFile = z.infer<typeof SessionFile>;
