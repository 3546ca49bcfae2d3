import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import type { EmbeddingStatus } from '@etude/contracts/embedder-names';
import { errorCode } from '@etude/contracts/errors';
import type { CachedEmbedder } from '../cached-embedder.js';

export interface EmbeddingServerOptions {
  readonly embedder: CachedEmbedder;
  /** Path of the socket. A socket that an earlier process left there is replaced. */
  readonly path: string;
}

/**
 * Serves an embedder to the other processes of a machine, over HTTP on a Unix socket, which only its owner can open. A POST with texts as JSON
 * gets their vectors, one after the other, or with status 500 the error as JSON. A GET gets the status.
 *
 * Calls of a client that leaves are given up. The embedder orders the calls: see `sentence-thread.ts`.
 */
export class EmbeddingServer {
  readonly #server: Server;
  #served = 0;
  #queue = 0;

  constructor(private readonly options: EmbeddingServerOptions) {
    // Idle connections stay open, so that no call meets one that is being closed.
    this.#server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
      if (request.method === 'GET') response.end(JSON.stringify(this.status()));
      else void this.#answer(request, response);
    });
  }

  async listen(): Promise<void> {
    const { path } = this.options;
    rmSync(path, { force: true });
    // The file has this mode from its first moment.
    const before = process.umask(0o177);
    try {
      await new Promise<void>((resolve, reject) => this.#server.once('error', reject).listen(path, resolve));
    } finally {
      process.umask(before);
    }
  }

  /** Takes no more clients, and removes the socket. Calls in progress are still answered. */
  close(): void {
    this.#server.close();
  }

  status(): EmbeddingStatus {
    const { embedder } = this.options;
    const memoryMiB = Math.round(process.memoryUsage.rss() / 2 ** 20);
    return { pid: process.pid, model: embedder.profile.model, memoryMiB, served: this.#served, cached: embedder.found, queue: this.#queue };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const left = new AbortController();
    response.once('close', () => left.abort());
    let waiting = 0;
    try {
      const texts = (await json(request)) as readonly string[];
      waiting = texts.length;
      this.#queue += waiting;
      const vectors = await this.options.embedder.embed(texts, left.signal);
      this.#served += texts.length;
      // In the machine's byte order, because both ends are on one machine.
      response.end(Buffer.concat(vectors.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength))));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      response.writeHead(500).end(JSON.stringify({ code: errorCode(error), message }));
    } finally {
      this.#queue -= waiting;
    }
  }
}
