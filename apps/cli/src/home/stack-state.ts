import { hash } from 'node:crypto';
import { once } from 'node:events';
import { realpathSync, statSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { text as readAll } from 'node:stream/consumers';
import { z } from 'zod';

/** Where code runs: in processes of this machine, or in pods. */
export const SANDBOX_DRIVERS = ['local', 'kubernetes'] as const;
export type SandboxDriver = (typeof SANDBOX_DRIVERS)[number];

/** Where memory is kept: in one file, or in a Qdrant server. */
export const MEMORY_ADAPTERS = ['sqlite', 'qdrant'] as const;
export type MemoryAdapter = (typeof MEMORY_ADAPTERS)[number];

/** What a stack listens on, on loopback. */
export const PORTS = ['redis', 'grpc', 'rest', 'mcp', 'model', 'qdrant'] as const;
export type Ports = Readonly<Record<(typeof PORTS)[number], number>>;

/** What the supervisor is told on its command line. No secrets: those go through its environment. */
export const StackOptions = z.object({
  home: z.string(),
  root: z.string(),
  /** Preferred ones; any free one where one is taken or not said. */
  ports: z.partialRecord(z.enum(PORTS), z.number().int()),
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

/** What a running stack says about itself, on a socket of its home: see `findStack`. */
export const StackState = z.object({
  /** Of the supervisor, which owns all the others. */
  pid: z.number().int(),
  /** "host:port" of the gateway. */
  address: z.string(),
  /** URLs of its JSON and its MCP over HTTP. */
  rest: z.string(),
  mcp: z.string(),
  /** The answers come from this script and from no model. */
  scripted: z.string().nullable(),
  model: z.string(),
  /** URL of its server, without credentials; null with a script. */
  modelUrl: z.string().nullable(),
  /** Where code runs; the others are of its pods. */
  sandbox: z.object({
    driver: z.enum(SANDBOX_DRIVERS),
    image: z.string().nullable(),
    namespace: z.string().nullable(),
    kubeconfig: z.string().nullable(),
  }),
  /** "sqlite", or the URL of a Qdrant server. */
  memory: z.string(),
  /** "sentence", "lexical", or a model of a server. */
  embedder: z.string(),
  ready: z.boolean(),
  startedAt: z.number().int(),
  processes: z.array(
    z.object({
      name: z.string(),
      pid: z.number().int().nullable(),
      /** How often it was started again after it died. */
      restarts: z.number().int(),
      ready: z.boolean(),
    }),
  ),
});
export type StackState = z.infer<typeof StackState>;

/**
 * Name of the abstract socket that the supervisor of this home listens on. The kernel frees it with the process, however
 * that ends, so a stale lock can't exist. Device and inode tell homes apart that only look alike from within containers.
 */
function lockName(home: string): string {
  const { dev, ino } = statSync(home);
  return `\0etude.${hash('sha256', `${realpathSync(home)}\n${dev}\n${ino}`).slice(0, 32)}`;
}

/** Holds the home for this process and tells whoever connects how the stack is. null where another process holds it. */
export async function holdStack(home: string, state: () => StackState): Promise<Server | null> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined); // it hung up before it was told; its own affair
    socket.end(JSON.stringify(state()));
  });
  try {
    await once(server.listen({ path: lockName(home) }), 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
    throw error;
  }
}

/** What the running stack of this home says about itself; null where none runs. */
export async function findStack(home: string): Promise<StackState | null> {
  if (!statSync(home, { throwIfNoEntry: false })?.isDirectory()) return null;
  const socket = createConnection({ path: lockName(home) });
  try {
    return StackState.parse(JSON.parse(await readAll(socket)));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (['ECONNREFUSED', 'ENOENT', 'ECONNRESET'].includes(code)) return null;
    throw error;
  } finally {
    socket.destroy();
  }
}
