import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';

const RETRIEVAL = new URL('./retrieval.bench.js', import.meta.url).href;
const RUN = 'const { run } = await import(process.argv[1]); process.exitCode = (await run(process.argv.slice(2))) ?? 0;';
const Summary = z.object({ figures: z.record(z.string(), z.number()) });

/** nDCG@10 per set and method, with the installed embedder. Uses only the half of the queries on which no weight was chosen. */
export async function retrievalFigures(adapter: string, say: (text: string) => void): Promise<Record<string, number>> {
  say('retrieval quality ...');
  const args = ['-e', RUN, RETRIEVAL, '--adapter', adapter, '--half', 'report', '--json'];
  const running = promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 26 });
  running.child.stderr?.pipe(process.stderr);
  const { stdout } = await running;
  const { figures } = Summary.parse(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? ''));
  return Object.fromEntries(Object.entries(figures).filter(([name]) => name.includes('ndcg10')));
}
