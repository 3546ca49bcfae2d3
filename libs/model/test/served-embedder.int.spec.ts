import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EtudeError } from '@etude/contracts/errors';
import type { Embedder } from '@etude/domain/ports/model';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { embedderConformance } from '@etude/domain/testing/embedder-conformance';
import { startProcess } from '@etude/test-support/processes';
import { testFolder } from '@etude/test-support/test-folder';
import { until } from '@etude/test-support/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DEFAULT_FOLDER, missingFiles } from '../src/sentence/sentence-embedder.js';
import { serveEmbedder } from '../src/served/embedder-main.js';
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

/** Serves an embedder in this process. The lexical embedder has as many dimensions as the sentence model. */
async function serve(path: string, embedder: Embedder = new LexicalEmbedder()): Promise<void> {
  const server = await serveEmbedder(embedder, path);
  onTestFinished(() => void server.close());
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
  });

  it('says which socket gives no answer once its patience ends', async () => {
    const path = socketPath();
    const client = clientOf(path, { attemptsMax: 2, waitTotalMaxMs: 1_000 });
    const gone = { code: 'MODEL_UNAVAILABLE', message: expect.stringMatching(new RegExp(`can't be reached: .*${path}.*Asked 2 times`)) };
    await expect(client.embed(['a'])).rejects.toMatchObject(gone);
  });

  it('passes on an error of the model', async () => {
    const path = socketPath();
    await serve(
      path,
      stub(() => Promise.reject(new EtudeError('MODEL_UNAVAILABLE', 'its files are damaged'))),
    );
    const embedding = clientOf(path, { attemptsMax: 1, waitTotalMaxMs: 0 }).embed(['a']);
    await expect(embedding).rejects.toMatchObject({ code: 'MODEL_UNAVAILABLE', message: expect.stringContaining('its files are damaged') });
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
    void left;
  });

  it('opens for its owner only, in place of a socket that was left there', async () => {
    const path = socketPath();
    await writeFile(path, 'left');
    await serve(path);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await clientOf(path).embed(['a'])).toHaveLength(1);
  });
});

describe.skipIf(missing.length > 0)(`an embedding process${why}`, () => {
  embedderConformance(async () => {
    const path = socketPath();
    const child = await startProcess({ args: [MAIN, '--socket', path, '--folder', folder] });
    return { embedder: clientOf(path), close: () => child.kill() };
  });
});
