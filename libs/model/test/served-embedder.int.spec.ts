import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { EmbeddingStatus } from '@etude/contracts/embedder-names';
import { EtudeError } from '@etude/contracts/errors';
import type { Embedder } from '@etude/domain/ports/model';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { embedderConformance } from '@etude/domain/testing/embedder-conformance';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { testFolder } from '@etude/test-support/test-folder';
import { until } from '@etude/test-support/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CachedEmbedder } from '../src/cached-embedder.js';
import { DEFAULT_FOLDER, missingFiles } from '../src/sentence/sentence-embedder.js';
import { EmbeddingServer } from '../src/served/embedder-main.js';
import { ServedEmbedder } from '../src/served/served-embedder.js';

const MAIN = fileURLToPath(new URL('../dist/served/embedder-main.js', import.meta.url));
const folder = process.env['ETUDE_EMBEDDER_PATH'] ?? DEFAULT_FOLDER;
const missing = missingFiles(folder);
const why = missing.length === 0 ? '' : `, skipped as there is no ${missing.join(' and no ')} in ${folder}`;

const socketPath = () => join(testFolder(), 'socket');

function clientOf(path: string, patience?: { attemptsMax: number; waitTotalMaxMs: number }): ServedEmbedder {
  const client = new ServedEmbedder(path, patience);
  onTestFinished(() => client.close());
  return client;
}

/** An embedding server in this process. The lexical embedder has as many dimensions as the sentence model. */
async function serve(path: string, embedder: Embedder = new LexicalEmbedder()): Promise<EmbeddingServer> {
  const server = new EmbeddingServer(new CachedEmbedder(embedder), path);
  await server.listen();
  onTestFinished(() => server.close());
  return server;
}

/** What the process at this socket says about itself. */
async function statusAt(path: string): Promise<EmbeddingStatus> {
  const [answer] = (await once(get({ socketPath: path, agent: false }), 'response')) as [IncomingMessage];
  return (await json(answer)) as EmbeddingStatus;
}

const stub = (embed: Embedder['embed']): Embedder => ({ profile: new LexicalEmbedder().profile, embed });

describe('ServedEmbedder', () => {
  embedderConformance(async () => {
    const path = socketPath();
    await serve(path);
    const embedder = clientOf(path);
    return { embedder, close: async () => embedder.close() };
  });

  it('asks again where the process ends before its answer', async () => {
    const path = socketPath();
    const dying = createServer((socket) => socket.once('data', () => dying.close(() => void serve(path)) && socket.destroy()));
    await once(dying.listen(path), 'listening');
    expect(await clientOf(path).embed(['a', 'b'])).toHaveLength(2);
    expect(await statusAt(path)).toMatchObject({ served: 2, queue: 0 });
  });

  it('says which socket gives no answer once its patience ends', async () => {
    const path = socketPath();
    const client = clientOf(path, { attemptsMax: 2, waitTotalMaxMs: 1_000 });
    const gone = { code: 'MODEL_UNAVAILABLE', message: expect.stringMatching(new RegExp(`${path} doesn't answer.*Asked 2 times`)) };
    await expect(client.embed(['a'])).rejects.toMatchObject(gone);
  });

  it('passes on an error of the model, and asks only once', async () => {
    const path = socketPath();
    let asked = 0;
    const failing = stub(() => Promise.reject(new EtudeError('MODEL_UNAVAILABLE', `damaged ${(asked += 1)}`)));
    await serve(path, failing);
    await expect(clientOf(path).embed(['a'])).rejects.toMatchObject({ code: 'MODEL_UNAVAILABLE', message: 'damaged 1' });
  });

  it('gives up the calls of a client that aborts or leaves', async () => {
    const path = socketPath();
    const signals: AbortSignal[] = [];
    const endless = stub((_texts, signal) => {
      signals.push(signal as AbortSignal);
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('given up'))));
    });
    await serve(path, endless);
    const [client, abort] = [clientOf(path), new AbortController()];
    const [aborted, left] = [client.embed(['a'], abort.signal), client.embed(['b'])].map((call) =>
      call.catch((error: Error) => error.name),
    );
    await until(() => signals.length === 2);
    abort.abort();
    expect(await aborted).toBe('AbortError');
    await until(() => signals[0]?.aborted);
    expect(signals[1]?.aborted).toBe(false);
    client.close();
    await until(() => signals[1]?.aborted);
    expect(await statusAt(path)).toMatchObject({ queue: 0, served: 0 });
    void left;
  });

  it('answers from its cache what any client asked before', async () => {
    const path = socketPath();
    await serve(path);
    const [first] = await clientOf(path).embed(['the same text']);
    expect(await clientOf(path).embed(['the same text'])).toEqual([first]);
    expect(await statusAt(path)).toMatchObject({ pid: process.pid, served: 2, cached: 1 });
  });

  it('opens for its owner only, in place of a socket that was left there', async () => {
    const path = socketPath();
    await writeFile(path, 'left');
    await serve(path);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await clientOf(path).embed(['a'])).toHaveLength(1);
  });

  it('closes a connection that speaks something else', async () => {
    const path = socketPath();
    await serve(path);
    const socket = createConnection({ path });
    socket.resume().write('no HTTP\r\n\r\n');
    await once(socket, 'close');
    expect(await clientOf(path).embed(['a'])).toHaveLength(1);
  });
});

async function start(path: string): Promise<TestProcess> {
  const child = await startProcess({ args: [MAIN, '--socket', path, '--folder', folder] });
  onTestFinished(() => child.kill());
  return child;
}

describe.skipIf(missing.length > 0)(`an embedding process${why}`, () => {
  embedderConformance(async () => {
    const path = socketPath();
    await start(path);
    const embedder = clientOf(path);
    return { embedder, close: async () => embedder.close() };
  });

  it('is killed in the middle of a call, which the next one answers', async () => {
    const path = socketPath();
    const first = await start(path);
    const texts = Array.from({ length: 60 }, (_, i) => `text ${i} `.repeat(60));
    const answer = clientOf(path).embed(texts);
    await until(async () => (await statusAt(path)).queue === 60);
    await first.kill();
    const second = await start(path);
    expect(await answer).toHaveLength(60);
    expect(await statusAt(path)).toMatchObject({ pid: second.pid, model: 'all-minilm-l6-v2', served: 60, queue: 0 });
  });
});
