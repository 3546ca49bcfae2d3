import { hash } from 'node:crypto';
import { once } from 'node:events';
import { realpathSync, statSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { text as readAll } from 'node:stream/consumers';
import { z } from 'zod';

export const SANDBOX_DRIVERS = ['local', 'kubernetes'] as const;
export type SandboxDriver = (typeof SANDBOX_DRIVERS)[number];

export const MEMORY_ADAPTERS = ['sqlite', 'qdrant'] as const;
export type MemoryAdapter = (typeof MEMORY_ADAPTERS)[number];

export const PORTS = ['redis', 'grpc', 'rest', 'mcp', 'model'] as const;
export type Ports = Readonly<Record<(typeof PORTS)[number], number>>;

/** Options of the supervisor, on its command line. Secrets go through its environment instead. */
export const StackOptions = z.object({
  home: z.string(),
  root: z.string(),
  /** Preferred ports. Any free port replaces a port that is taken or missing. */
  ports: z.partialRecord(z.enum(PORTS), z.number().int()),
  /** Script of the scripted model; null if a real model is asked. */
  scripted: z.string().nullable(),
  sandbox: z.enum(SANDBOX_DRIVERS),
  memory: z.enum(MEMORY_ADAPTERS),
  /** Whether the supervisor ends when its stdin does. */
  foreground: z.boolean(),
});
export type StackOptions = z.infer<typeof StackOptions>;

/** One line of JSON that the supervisor writes to descriptor 3 while it starts and runs. */
export const Report = z.object({ note: z.string().optional(), ready: z.boolean().optional(), failed: z.string().optional() });
export type Report = z.infer<typeof Report>;

/** State of a running stack. Its supervisor sends the state on a socket, which `findStack` reads. */
export const StackState = z.object({
  /** Process id of the supervisor, which owns all the other processes. */
  pid: z.number().int(),
  address: z.string(),
  /** URLs of its REST API and of its MCP over HTTP. */
  rest: z.string(),
  mcp: z.string(),
  /** Script of the answers; null if a real model answers. */
  scripted: z.string().nullable(),
  model: z.string(),
  /** URL of the model's server, without credentials; null with a script. */
  modelUrl: z.string().nullable(),
  /** "local", or the command that shows the pods in which code runs. */
  sandbox: z.string(),
  /** "sqlite", or the URL of a Qdrant server. */
  memory: z.string(),
  /** "sentence", "lexical", or a model of a server. */
  embedder: z.string(),
  /** Socket of the process that holds the sentence model; null if there is none. */
  embedderSocket: z.string().nullable(),
  ready: z.boolean(),
  startedAt: z.number().int(),
  processes: z.array(
    z.object({
      name: z.string(),
      pid: z.number().int().nullable(),
      restarts: z.number().int(),
      ready: z.boolean(),
    }),
  ),
});
export type StackState = z.infer<typeof StackState>;

/**
 * Name of the abstract socket on which this home's supervisor listens. The kernel frees the name when the process ends, so no lock gets stale.
 * Device and inode tell apart homes that have the same path in different containers.
 */
function lockName(home: string): string {
  const { dev, ino } = statSync(home);
  return `\0etude.${hash('sha256', `${realpathSync(home)}\n${dev}\n${ino}`).slice(0, 32)}`;
}

/** Locks the home for this process, and sends the state to each connection. null if another process holds the lock. */
export async function holdStack(home: string, state: () => StackState): Promise<Server | null> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined); // the reader closed the connection early
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

/**
 * Flags of V8 for services, which are mostly idle: a small young generation, and less memory rather than more speed. A service takes about
 * 30 MiB less than by default, and a tenth more processor time.
 */
export const SERVICE_NODE_ARGS: readonly string[] = ['--max-semi-space-size=2', '--optimize-for-size'];
/** Flags of V8 for the gateway, which computes more. Compared with SERVICE_NODE_ARGS, it takes a fifth less processor time and 13 MiB more. */
export const GATEWAY_NODE_ARGS: readonly string[] = ['--max-semi-space-size=8'];
/** Without the compile cache, a service takes 10 MiB less. With these malloc limits, the C library returns freed memory. */
export const SERVICE_ENVIRONMENT = { NODE_DISABLE_COMPILE_CACHE: '1', MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '131072' };
