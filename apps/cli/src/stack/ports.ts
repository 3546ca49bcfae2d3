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

/** The preferred port of loopback where it is free, else any free one. Free a moment ago, that is; nothing holds it. */
export async function choosePort(preferred: number): Promise<number> {
  const port = (await bound(preferred)) ?? (await bound(0));
  if (port === null) throw new Error('no free port on 127.0.0.1');
  return port;
}

export const freePort = () => choosePort(0);
