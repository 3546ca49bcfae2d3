import { z } from 'zod';

/** Where code runs: in processes of this machine, or in pods. */
export const SANDBOX_DRIVERS = ['local', 'kubernetes'] as const;
export type SandboxDriver = (typeof SANDBOX_DRIVERS)[number];

/** Where memory is kept: in one file, or in a Qdrant server. */
export const MEMORY_ADAPTERS = ['sqlite', 'qdrant'] as const;
export type MemoryAdapter = (typeof MEMORY_ADAPTERS)[number];

/** What the supervisor is told on its command line. No secrets: those go through its environment. */
export const StackOptions = z.object({
  home: z.string(),
  root: z.string(),
  grpcPort: z.number().int(),
  restPort: z.number().int(),
  mcpPort: z.number().int(),
  redisPort: z.number().int(),
  rolloutWorkers: z.number().int(),
  /** Rollouts at once in each worker. */
  concurrency: z.number().int(),
  /** Script file of the scripted model instead of a model. */
  scripted: z.string().nullable(),
  sandbox: z.enum(SANDBOX_DRIVERS),
  memory: z.enum(MEMORY_ADAPTERS),
  /** Ends when its stdin does. */
  foreground: z.boolean(),
});
export type StackOptions = z.infer<typeof StackOptions>;

/** What the supervisor says while it starts and runs, one JSON line each, on descriptor 3. */
export const Report = z.object({ note: z.string().optional(), ready: z.boolean().optional(), failed: z.string().optional() });
export type Report = z.infer<typeof Report>;
