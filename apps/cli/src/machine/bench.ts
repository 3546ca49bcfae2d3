import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Cli } from '../cli.js';
import { CliError, EXIT } from '../errors.js';

/**
 * V8's young generation, in MiB: services that mostly wait keep about 20 MiB less each than with its default, and allocate
 * too little for the more frequent collections to show.
 */
export const SERVICE_NODE_ARGS: readonly string[] = ['--max-semi-space-size=4'];

const SUFFIX = '.bench.js';
/** A benchmark exports `run(args)`; what it answers is its exit code. A module by its `await`: with --input-type no thread can be started. */
const RUN = 'const { run } = await import(process.argv[1]); process.exitCode = (await run(process.argv.slice(2))) ?? 0;';

function benchmarks(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((file) => file.endsWith(SUFFIX))
    .map((file) => file.slice(0, -SUFFIX.length));
}

const folderOf = (root: string) => join(root, 'bench', 'dist');

/** `etude bench`: one name per line. */
async function listBenchmarks(cli: Cli): Promise<number> {
  const known = benchmarks(folderOf(cli.root));
  cli.out.data({ benchmarks: known }, known.join('\n'));
  if (known.length === 0) cli.out.note('there are no benchmarks');
  return EXIT.ok;
}

/** `etude bench NAME`: a process of its own, so that what it measures is not the command line; run by Node as services are, whose part it plays. */
export async function runBench(cli: Cli, name: string, args: readonly string[]): Promise<number> {
  const dir = folderOf(cli.root);
  const known = benchmarks(dir);
  if (!known.includes(name)) throw new CliError(EXIT.usage, `there is no benchmark ${name}`, [`there are: ${known.join(', ') || 'none'}`]);
  const url = pathToFileURL(join(dir, `${name}${SUFFIX}`)).href;
  const flags = cli.globals.json ? ['--json'] : [];
  const child = spawn(process.execPath, [...SERVICE_NODE_ARGS, '-e', RUN, url, ...args, ...flags], {
    cwd: cli.root,
    env: { ...cli.settings.environment },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const stop = () => child.kill('SIGTERM');
  cli.signal.addEventListener('abort', stop, { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  return cli.signal.aborted ? EXIT.interrupted : (code ?? EXIT.internal);
}

export const bench = (cli: Cli, name: string | undefined, args: readonly string[]): Promise<number> =>
  name === undefined ? listBenchmarks(cli) : runBench(cli, name, args);
