import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { realpathSync, statSync } from 'node:fs';
import { createConnection, createServer, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { StackState } from './stack-state.js';

/**
 * Name of the abstract socket that the supervisor of this home listens on. The kernel frees it with the process, however
 * that ends, so a stale lock can't exist. Device and inode tell homes apart that only look alike from within containers.
 */
function lockName(home: string): string {
  const { dev, ino } = statSync(home);
  return `\0etude.${createHash('sha256')
    .update(`${realpathSync(home)}\n${dev}\n${ino}`)
    .digest('hex')
    .slice(0, 32)}`;
}

/** Holds the home for this process and tells whoever connects how the stack is. null where another process holds it. */
export async function holdStack(home: string, state: () => StackState): Promise<Server | null> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined); // it hung up before it was told; its own affair
    socket.end(JSON.stringify(state()));
  });
  const listening = once(server, 'listening');
  server.listen({ path: lockName(home) });
  try {
    await listening;
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
    return StackState.parse(JSON.parse(await text(socket)));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (['ECONNREFUSED', 'ENOENT', 'ECONNRESET'].includes(code)) return null;
    throw error;
  } finally {
    socket.destroy();
  }
}
