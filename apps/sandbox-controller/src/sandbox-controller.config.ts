import { availableParallelism } from 'node:os';
import { baseConfig } from '@etude/platform/config';
import { z } from 'zod';

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

export const sandboxControllerConfig = baseConfig.extend({
  /** Sandboxes kept ready. */
  ETUDE_SANDBOX_WARM: z.coerce.number().int().min(0).max(1_000).default(2),
  /** Executions at once in this process. */
  ETUDE_SANDBOX_CONCURRENCY: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(() => Math.min(32, 2 * availableParallelism())),
  /** Controls that this machine need not enforce, by name; without it the controller refuses to start where one is missing. */
  ETUDE_SANDBOX_ALLOW_MISSING: list.default([]),
});
export type SandboxControllerConfig = z.infer<typeof sandboxControllerConfig>;
