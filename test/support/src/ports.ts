import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the ports of outgoing connections (from 32768 in Linux), any of which could take a port before its server does. Nodes of a Redis
 * cluster also listen 10,000 above their port.
 */
const FIRST = 10_000;
const BLOCKS = 100;
const BLOCK = 100;

/** null: somebody else has the port. */
async function listen(port: number): Promise<Server | null> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(null) : reject(error)));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

/** Claims a block of ports by listening on its first one until this process ends. */
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
/** Not always the same first ports: an earlier owner of the block may just have used them. */
let given = Math.floor(Math.random() * BLOCK);

/** A free TCP port on loopback that no other test is given. */
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
