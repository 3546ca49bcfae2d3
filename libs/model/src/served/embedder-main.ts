import { parseArgs } from 'node:util';
import { CachedEmbedder } from '../cached-embedder.js';
import { DEFAULT_FOLDER, missingFiles, SentenceEmbedder } from '../sentence/sentence-embedder.js';
import { EmbeddingServer } from './embedding-server.js';

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
  const server = new EmbeddingServer({ embedder, path });
  await server.listen();
  const stop = () => {
    server.close();
    // Nothing has to be finished, since clients ask again.
    process.exit(0);
  };
  process.once('SIGTERM', stop).once('SIGINT', stop);
  process.stdout.write(`${JSON.stringify({ ready: true, service: 'embedder', path, pid: process.pid })}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 2;
});
