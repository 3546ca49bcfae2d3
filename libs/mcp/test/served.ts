import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type Client, ReadBuffer, serializeMessage, type Transport } from '@modelcontextprotocol/client';
import { afterEach } from 'vitest';
import type { EtudeServerOptions } from '../src/etude-server.js';
import { createMcpHttp } from '../src/http.js';
import { serveOverStdio, type StdioOptions } from '../src/stdio.js';
import { connectHttp, connectOver, type Revision } from './official-client.js';
import type { FakeGateway } from './fake-gateway.js';

export const TRANSPORTS = ['http', 'stdio'] as const;

const closing: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const OPTIONS: EtudeServerOptions = { version: '1.2.3', onUnfit: () => undefined, progressEveryMs: 20 };

/** Serves over HTTP until the test ends. @returns the URL */
export async function serveHttp(gateway: FakeGateway, options: Partial<EtudeServerOptions> = {}): Promise<URL> {
  const mcp = createMcpHttp(gateway, { ...OPTIONS, ...options, onError: () => undefined });
  const server = createServer((request, response) => {
    if (request.method !== 'POST') response.writeHead(405).end();
    else
      text(request)
        .then((body) => mcp.handle(request, response, JSON.parse(body) as object))
        .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    await mcp.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

/** A client's transport over a pipe whose other end is in the same process. */
class PipeTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport['onmessage']>;
  readonly toServer = new PassThrough();
  readonly fromServer = new PassThrough();
  readonly #read = new ReadBuffer();

  async start(): Promise<void> {
    this.fromServer.on('data', (chunk: Buffer) => {
      this.#read.append(chunk);
      for (let message = this.#read.readMessage(); message !== null; message = this.#read.readMessage()) this.onmessage?.(message);
    });
  }

  async send(message: Parameters<Transport['send']>[0]): Promise<void> {
    this.toServer.write(serializeMessage(message));
  }

  async close(): Promise<void> {
    this.toServer.end();
    this.onclose?.();
  }
}

const CALLER = { agent: 'default', user: '', session: 'one', metadata: {} };

/** Serves the other end of a pipe until the test ends. */
export function servePipe(gateway: FakeGateway, options: Partial<StdioOptions> & Pick<StdioOptions, 'stdin' | 'stdout'>): Promise<void> {
  const { signal } = new AbortController();
  const served = serveOverStdio(gateway, CALLER, { ...OPTIONS, signal, onError: () => undefined, ...options });
  closing.push(() => (options.stdin.destroy(), served));
  return served;
}

/** An official client that speaks one revision over one transport. */
export async function connect(
  gateway: FakeGateway,
  over: 'http' | 'stdio',
  revision: Revision,
  { headers = {}, options = {} }: { headers?: Record<string, string>; options?: Partial<StdioOptions> } = {},
): Promise<Client> {
  if (over === 'http') return opened(await connectHttp(await serveHttp(gateway, options), revision, headers));
  const pipe = new PipeTransport();
  void servePipe(gateway, { ...options, stdin: pipe.toServer, stdout: pipe.fromServer });
  return opened(await connectOver(pipe, revision));
}

function opened({ client, close }: { client: Client; close: () => Promise<void> }): Client {
  closing.push(close);
  return client;
}
