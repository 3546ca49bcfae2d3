import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';

/** The treatment of one request. `forget`: the server executes the request, but its answer is lost. `hang`: no answer is sent. */
export type Misbehaviour =
  | 'forget'
  | 'hang'
  | 'reset'
  | { readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> };

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

export interface Proxy {
  readonly url: string;
  /** The requests since the last `misbehave`. */
  readonly seen: readonly SeenRequest[];
  /** Calls `how` for each request from now on. null passes the request on. */
  misbehave(how: Decide): void;
  close(): Promise<void>;
}

type Decide = (request: SeenRequest, count: number) => Misbehaviour | null;
const behave: Decide = () => null;

/** Starts a proxy in front of an HTTP server. It passes all requests on until `misbehave` is called. */
export async function startProxy(target: string): Promise<Proxy> {
  let decide = behave;
  let seen: SeenRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    void take(incoming, outgoing);
  });
  const take = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const body = await readBody(incoming);
    const asked = { method: incoming.method ?? 'GET', path: incoming.url ?? '/', body: body.toString() };
    seen.push(asked);
    answer(decide(asked, seen.length), incoming, body, outgoing);
  };
  const answer = (how: Misbehaviour | null, incoming: IncomingMessage, body: Buffer, outgoing: ServerResponse) => {
    if (how === 'hang') return;
    if (how === 'reset') incoming.socket.destroy();
    else if (how === null || how === 'forget') forward(target, incoming, body, outgoing, how === 'forget');
    else outgoing.writeHead(how.status, { 'content-type': 'application/json', ...how.headers }).end(JSON.stringify(how.body ?? {}));
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    get seen() {
      return seen;
    },
    misbehave(how) {
      seen = [];
      decide = how;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function forward(target: string, incoming: IncomingMessage, body: Buffer, outgoing: ServerResponse, forget: boolean): void {
  const url = new URL(incoming.url ?? '/', target);
  const { host: _host, connection: _connection, ...headers } = incoming.headers;
  const giveBack = async (answered: IncomingMessage) => {
    const answer = await readBody(answered);
    if (forget) incoming.socket.destroy();
    else outgoing.writeHead(answered.statusCode ?? 502, answered.headers).end(answer);
  };
  const passed = request(url, { method: incoming.method ?? 'GET', headers }, (answered) => void giveBack(answered));
  passed.on('error', () => incoming.socket.destroy());
  passed.end(body);
}

async function readBody(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
