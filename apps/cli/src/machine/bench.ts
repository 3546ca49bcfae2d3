import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import type { Cli, Start } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { SERVICE_NODE_ARGS } from '../home/stack-state.js';

const SUFFIX = '.bench.js';
/** A benchmark exports `run(args)`, which returns its exit code. `await` makes this a module; with --input-type no thread could start. */
const RUN = 'const { run } = await import(process.argv[1]); process.exitCode = (await run(process.argv.slice(2))) ?? 0;';

/** Runs Node.js in the checkout, on this process's stdout and stderr, until its end or Ctrl-C. @returns its exit code */
export async function runNode(
  { root, settings, signal }: Cli,
  args: readonly string[],
  more: Record<string, string> = {},
): Promise<number> {
  const env = { ...settings.environment, ...more };
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  signal.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  return signal.aborted ? EXIT.interrupted : (code ?? EXIT.internal);
}

/** Lists the benchmarks, or runs one benchmark in a new process with the Node.js flags of the services. */
async function bench(cli: Cli, name: string | undefined, args: readonly string[]): Promise<number> {
  const folder = join(cli.root, 'bench', 'dist');
  const known = globSync(`*${SUFFIX}`, { cwd: folder }).map((file) => basename(file, SUFFIX));
  if (name === undefined) {
    cli.out.data({ benchmarks: known }, known.join('\n'));
    return EXIT.ok;
  }
  if (!known.includes(name)) throw new CliError(EXIT.usage, `there is no benchmark ${name}`, [`there are: ${known.join(', ') || 'none'}`]);
  // The benchmark runs in the checkout, so paths of the caller's folder are made absolute.
  const given = args.map((arg) => (existsSync(arg) ? resolve(arg) : arg));
  const url = pathToFileURL(join(folder, `${name}${SUFFIX}`)).href;
  return runNode(cli, [...SERVICE_NODE_ARGS, '-e', RUN, url, ...given, ...(cli.globals.json ? ['--json'] : [])]);
}

/** Adds the command `bench`, which passes unknown flags to the benchmark. */
export function addBench(parent: Command, start: Start): void {
  parent
    .command('bench [name]')
    .description('run one benchmark of bench/ and print ratios; without a name, list the benchmarks')
    .allowUnknownOption()
    .allowExcessArguments()
    .action((_name: unknown, _options: object, command: Command) =>
      start(command, (cli) => bench(cli, command.args[0], command.args.slice(1))),
    );
}
