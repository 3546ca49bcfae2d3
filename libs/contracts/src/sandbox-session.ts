import { z } from 'zod';
import { SandboxId } from './ids.js';
import { SandboxLimits, TemplateName } from './sandbox.js';

/** How long a session lives without being renewed, at most and unless asked otherwise. */
export const SESSION_TTL_MS_MAX = 24 * 3_600_000;
export const SESSION_TTL_MS_DEFAULT = 600_000;
/** Bytes of a file in one piece, on every way between caller and sandbox. */
export const FILE_CHUNK_BYTES_MAX = 512 * 1024;

/** What is asked for when a session is opened. `requestId`: the same again gives the same session. */
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

/** A session as callers see it; kept for an hour after its end, so that they can learn how it ended. */
export const SandboxSession = z.object({
  id: SandboxId,
  tenant: z.string(),
  state: z.enum(SESSION_STATES),
  /** `lost`: why, with the exit reason of the infrastructure, such as evicted or node_lost. */
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
