import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export type ModelGate = Awaited<ReturnType<typeof startModelGate>>;

/** A proxy of a model server that delays each call until a condition holds. Its URL has no "/v1". */
export async function startModelGate() {
  let held: [modelUrl: string, open: () => Promise<boolean>] | undefined;
  let waiting = 0;
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    waiting += 1;
    while (!response.destroyed && !(await held?.[1]())) await sleep(10);
    waiting -= 1;
    if (response.destroyed) return;
    const { method, url, headers } = request;
    const answered = await fetch(`${held?.[0]}${url}`, {
      method,
      headers: { 'content-type': headers['content-type'] ?? '' },
      body: Buffer.concat(await request.toArray()),
    });
    response.writeHead(answered.status, { 'content-type': answered.headers.get('content-type') ?? '' });
    response.end(Buffer.from(await answered.arrayBuffer()));
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    waiting: () => waiting,
    /** Forwards a call to `modelUrl` once `open` resolves to true. A call whose process has ended is dropped. */
    hold: (...given: NonNullable<typeof held>) => {
      held = given;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
