import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import type { Embedder } from '@etude/domain/ports/model';
import { CachedEmbedder } from '../cached-embedder.js';
import { DEFAULT_FOLDER, missingFiles, SentenceEmbedder } from '../sentence/sentence-embedder.js';

/**
 * Serves an embedder to the other processes of a machine. It speaks OpenAI's protocol over HTTP on a Unix socket, which only its owner can
 * open.
 *
 * If a client closes its connection, its calls are cancelled. The embedder decides the order of calls: see `sentence-thread.ts`.
 *
 * @param path the socket's path. If an earlier process left a socket there, it is replaced
 */
export async function serveEmbedder(embedder: Embedder, path: string): Promise<Server> {
  // Idle connections stay open, so that no call uses a connection that is just being closed.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => void answer(embedder, request, response));
  rmSync(path, { force: true });
  // The socket is created with this mode, so that nobody else can open it even for a moment.
  const before = process.umask(0o177);
  try {
    await once(server.listen(path), 'listening');
  } finally {
    process.umask(before);
  }
  return server;
}

async function answer(embedder: Embedder, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const left = new AbortController();
  response.once('close', () => left.abort());
  try {
    const { input } = (await json(request)) as { readonly input: readonly string[] };
    const vectors = await embedder.embed(input, left.signal);
    response.end(JSON.stringify({ data: vectors.map((vector) => ({ embedding: [...vector] })) }));
  } catch (error) {
    response.writeHead(503).end(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
  }
}

const USAGE = 'usage: embedder-main --socket PATH [--folder DIR] [--threads N] [--cache-bytes N]';

/**
 * Holds the sentence model for the other processes of this machine, until a signal ends it. Prints one JSON line when it listens on the
 * socket. The first text loads the weights. It has flags instead of settings, because reading settings costs 20 MiB of memory.
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
  if (missing.length > 0) throw new Error(`There is no ${missing.join(' and no ')} in ${folder}. Run "etude embedder fetch".`);
  const embedder = new CachedEmbedder(new SentenceEmbedder({ folder, threads }), bytesMax);
  await serveEmbedder(embedder, path);
  process.stdout.write(`${JSON.stringify({ ready: true, service: 'embedder', path, pid: process.pid })}\n`);
}

if (import.meta.main)
  await main().catch((error: unknown) => {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 2;
  });
