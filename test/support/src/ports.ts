import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * First of the ports for tests. All are below the ports of outgoing connections (from 32768 in Linux), which could take a port before its
 * server does. Nodes of a Redis cluster also listen 10,000 above their port.
 */
const FIRST = 10_000;
const BLOCKS = 100;
const BLOCK = 100;

async function listen(port: number): Promise<Server | null> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(null) : reject(error)));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

/** Claims a block of ports by listening on the block's first port until this process ends. */
async function claimBlock(): Promise<number> {
  const start = Math.floor(Math.random() * BLOCKS);
  for (let i = 0; i < BLOCKS; i += 1) {
    const first = FIRST + ((start + i) % BLOCKS) * BLOCK;
    const server = await listen(first);
    if (server) {
      server.unref();
      return first;
    }
  }
  throw new Error(`all ${BLOCKS} blocks of ports from ${FIRST} are taken`);
}

let block: Promise<number> | undefined;
/** Number of ports given out. It starts at random, because an earlier owner of the block may just have used the first ports. */
let given = Math.floor(Math.random() * BLOCK);

/** A free TCP port on loopback that no other test gets. */
export async function freePort(): Promise<number> {
  block ??= claimBlock();
  const first = await block;
  for (let i = 0; i < BLOCK; i += 1) {
    const port = first + 1 + (given++ % (BLOCK - 1));
    const server = await listen(port);
    if (!server) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
  throw new Error(`all ports from ${first} to ${first + BLOCK - 1} are taken`);
}
