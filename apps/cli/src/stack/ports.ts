import { once } from 'node:events';
import { createServer } from 'node:net';

async function bound(port: number): Promise<number | null> {
  const server = createServer();
  const listening = once(server, 'listening');
  server.listen(port, '127.0.0.1');
  try {
    await listening;
  } catch (error) {
    if (['EADDRINUSE', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
  const address = server.address();
  server.close();
  await once(server, 'close');
  return address === null || typeof address === 'string' ? null : address.port;
}

/** The preferred port of loopback where it is free, else any free one. Free a moment ago, that is; nothing holds it: see `onFreePorts`. */
export async function choosePort(preferred: number): Promise<number> {
  const port = (await bound(preferred)) ?? (await bound(0));
  if (port === null) throw new Error('no free port on 127.0.0.1');
  return port;
}

export const freePort = () => choosePort(0);

/** Two stacks that start at once hardly take ports from each other more often. */
const TRIES_MAX = 5;
/** As services, the scripted model, Redis and Qdrant say it. */
const TAKEN = /port \d+ on \S+ is taken|address already in use|EADDRINUSE/i;

/**
 * Starts what listens on ports that it chooses itself. Between the choice and the listening another process may be faster; then all of it
 * starts again, on other ports.
 *
 * @param clear ends what was started, before the next try
 * @throws whatever `start` throws for another reason, or too often
 */
export async function onFreePorts(start: () => Promise<void>, clear: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await start();
      return;
    } catch (error) {
      if (tries === TRIES_MAX || !(error instanceof Error && TAKEN.test(error.message))) throw error;
      await clear();
    }
  }
}
