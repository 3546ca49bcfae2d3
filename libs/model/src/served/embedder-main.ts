import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import type { EmbeddingStatus } from '@etude/contracts/embedder-names';
import { errorCode } from '@etude/contracts/errors';
import { CachedEmbedder } from '../cached-embedder.js';
import { DEFAULT_FOLDER, missingFiles, SentenceEmbedder } from '../sentence/sentence-embedder.js';

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

  /** @param path of the socket. A socket that an earlier process left there is replaced. */
  constructor(
    private readonly embedder: CachedEmbedder,
    private readonly path: string,
  ) {
    // Idle connections stay open, so that no call meets one that is being closed.
    this.#server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
      if (request.method === 'GET') response.end(JSON.stringify(this.status()));
      else void this.#answer(request, response);
    });
  }

  async listen(): Promise<void> {
    rmSync(this.path, { force: true });
    // The file has this mode from its first moment.
    const before = process.umask(0o177);
    try {
      await new Promise<void>((resolve, reject) => this.#server.once('error', reject).listen(this.path, resolve));
    } finally {
      process.umask(before);
    }
  }

  /** Takes no more clients, and removes the socket. Calls in progress are still answered. */
  close(): void {
    this.#server.close();
  }

  status(): EmbeddingStatus {
    const { embedder } = this;
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
      const vectors = await this.embedder.embed(texts, left.signal);
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

const USAGE = 'usage: embedder-main --socket PATH [--folder DIR] [--threads N] [--cache-bytes N]';

/**
 * Holds the sentence model for the other processes of this machine, until SIGTERM or SIGINT. Prints one JSON line when it listens on the
 * socket. The first text loads the weights. Flags instead of settings, because reading settings costs 20 MiB of memory.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      socket: { type: 'string' },
      folder: { type: 'string', default: DEFAULT_FOLDER },
      threads: { type: 'string', default: '1' },
      'cache-bytes': { type: 'string', default: '33554432' },
    },
  });
  const { socket: path, folder } = values;
  const [threads, bytesMax] = [Number(values.threads), Number(values['cache-bytes'])];
  if (!path || !(Number.isInteger(threads) && threads > 0 && bytesMax >= 0)) throw new Error(USAGE);
  const missing = missingFiles(folder);
  if (missing.length > 0) throw new Error(`there is no ${missing.join(' and no ')} in ${folder}; run "etude embedder fetch"`);
  const embedder = new CachedEmbedder(new SentenceEmbedder({ folder, threads }), bytesMax);
  const server = new EmbeddingServer(embedder, path);
  await server.listen();
  const stop = () => {
    server.close();
    // Nothing has to be finished, since clients ask again.
    process.exit(0);
  };
  process.once('SIGTERM', stop).once('SIGINT', stop);
  process.stdout.write(`${JSON.stringify({ ready: true, service: 'embedder', path, pid: process.pid })}\n`);
}

if (import.meta.main)
  await main().catch((error: unknown) => {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 2;
  });
