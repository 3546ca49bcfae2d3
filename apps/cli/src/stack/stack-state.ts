import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { SANDBOX_DRIVERS } from './stack-options.js';
import { statePath } from './home.js';

const ProcessState = z.object({
  name: z.string(),
  pid: z.number().int().nullable(),
  /** How often it was started again after it died. */
  restarts: z.number().int(),
  ready: z.boolean(),
});
export type ProcessState = z.infer<typeof ProcessState>;

/** Where code runs. Stacks of earlier versions, which have to be stopped as well, say nothing of it. */
const SandboxPlace = z.object({
  driver: z.enum(SANDBOX_DRIVERS).default('local'),
  /** Of the controller's health and metrics, on loopback. */
  httpPort: z.number().int().default(0),
  /** Of the pods; null where there are none. */
  image: z.string().nullable().default(null),
  namespace: z.string().nullable().default(null),
  kubeconfig: z.string().nullable().default(null),
});

/** What a running stack says about itself; in `stack.json` for whoever wants to talk to it. */
export const StackState = z.object({
  /** Of the supervisor, which owns all the others. */
  pid: z.number().int(),
  /** "host:port" of the gateway. */
  address: z.string(),
  /** URL of its JSON over HTTP; null where there is none. */
  rest: z.string().nullable().default(null),
  /** URL of its MCP over HTTP; null where there is none. */
  mcp: z.string().nullable().default(null),
  redisPort: z.number().int(),
  /** The answers come from this script and from no model. */
  scripted: z.string().nullable(),
  model: z.string(),
  /** Of its server, without credentials; null with a script, and in stacks of earlier versions, as are the next two. */
  modelUrl: z.string().nullable().default(null),
  rolloutWorkers: z.number().int().nullable().default(null),
  /** Tasks at once in each worker. */
  concurrency: z.number().int().nullable().default(null),
  sandbox: SandboxPlace.prefault({}),
  /** "sqlite", or the URL of a Qdrant server. */
  memory: z.string().default('sqlite'),
  /** "sentence", "lexical", or a model of a server; '' in stacks of earlier versions. */
  embedder: z.string().default(''),
  ready: z.boolean(),
  startedAt: z.number().int(),
  processes: z.array(ProcessState),
});
export type StackState = z.infer<typeof StackState>;

/** null where no stack was started here. It may have died since; `findStack` knows. */
export function readStackState(home: string): StackState | null {
  let text: string;
  try {
    text = readFileSync(statePath(home), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const parsed = StackState.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : null;
}

/** Readers see the old file or the new one, never half of one. */
export function writeStackState(home: string, state: StackState): void {
  const next = `${statePath(home)}.${process.pid}`;
  try {
    writeFileSync(next, `${JSON.stringify(state, null, 2)}\n`);
    renameSync(next, statePath(home));
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}

export const removeStackState = (home: string) => rmSync(statePath(home), { force: true });
