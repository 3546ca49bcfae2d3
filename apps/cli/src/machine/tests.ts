import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import type { Cli, Start } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { plural } from '../output.js';
import { SERVICE_NODE_ARGS } from '../home/stack-state.js';
import { type Finding, inspectNeeds } from './doctor.js';

/** A test or file that was skipped or failed, or an error outside of tests, and why. */
interface Told {
  readonly what: string;
  readonly why: string;
}

/** The result of one run, as `tools/vitest-outcome.ts` writes it. */
interface Outcome {
  readonly passed: number;
  readonly failed: readonly Told[];
  readonly skipped: readonly Told[];
}

/** Exit code of test/cluster if this machine can't run a cluster. test/cluster prints the reason. */
const NO_CLUSTER = 3;

/** @param through a command that runs vitest's command */
async function runVitest(cli: Cli, config: string, files: readonly string[], through: readonly string[] = []): Promise<Outcome> {
  const nothing: Outcome = { passed: 0, failed: [], skipped: [] };
  if (files.length === 0) return nothing;
  const dir = mkdtempSync(join(tmpdir(), 'etude-test-'));
  const path = join(dir, 'outcome.json');
  const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', '--config', config];
  const [command = '', ...args] = [
    ...through,
    ...vitest,
    '--reporter=default',
    `--reporter=${join(cli.root, 'tools/vitest-outcome.ts')}`,
    `--outputFile=${path}`,
    ...files,
  ];
  // With its own process group, a signal reaches vitest and all processes that vitest started.
  const child = spawn(command, args, { cwd: cli.root, env: { ...cli.settings.environment }, stdio: ['ignore', 2, 2], detached: true });
  const stop = () => child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, 'SIGTERM');
  cli.signal.addEventListener('abort', stop, { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  try {
    if (through.length > 0 && code === NO_CLUSTER)
      return { ...nothing, skipped: files.map((what) => ({ what, why: 'needs a cluster, which cannot run here; the reason is above' })) };
    const outcome = JSON.parse(readFileSync(path, 'utf8')) as Outcome;
    if (code === 0 || outcome.failed.length > 0) return outcome;
    return { ...outcome, failed: [{ what: 'vitest', why: `ended with ${code ?? 'a signal'}` }] };
  } catch {
    return { ...nothing, failed: [{ what: 'vitest', why: 'ended without a report' }] };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const SANDBOX = ['bubblewrap', 'user namespaces', 'python3'];
/** Programs that tests with real parts need, by test path. Unit tests need none. */
const NEEDS: ReadonlyArray<readonly [RegExp, readonly string[]]> = [
  [/^libs\/queue\/.*\.int\.spec\.ts$/, ['redis-server']],
  [/^libs\/sandbox\/.*\.int\.spec\.ts$/, SANDBOX],
  [/^(apps|bench)\/.*\.int\.spec\.ts$/, ['redis-server', ...SANDBOX]],
  [/^apps\/console\/.*\.int\.spec\.ts$/, ['chromium']],
  [/^test\/monitoring\//, ['prometheus']],
  [/^test\/(?!cluster\/).*\.spec\.ts$/, ['redis-server', ...SANDBOX]],
];

export function skippedFiles(files: readonly string[], findings: ReadonlyArray<Pick<Finding, 'name' | 'ok'>>): Told[] {
  const missing = new Set(findings.filter(({ ok }) => !ok).map(({ name }) => name));
  return files.flatMap((what) => {
    const why = NEEDS.filter(([where]) => where.test(what)).flatMap(([, names]) => names.filter((name) => missing.has(name)));
    return why.length > 0 ? [{ what, why: `needs ${[...new Set(why)].join(', ')}` }] : [];
  });
}

const SPECS = ['libs/*', 'apps/*', 'test/*', 'bench'].map((where) => `${where}/{src,test}/**/*.spec.ts`);
const CLUSTER_SPEC = /\.cluster\.spec\.ts$/;
/** Cluster tests that first build images and programs. */
const SLOW_SPEC = /\.slow\.cluster\.spec\.ts$/;
/** Tests of the contract that every sandbox driver keeps. With a cluster they run again, in pods. */
const CONFORMANCE_SPEC = /^libs\/sandbox\/test\/conformance\//;

export interface TestOptions {
  readonly cluster?: boolean;
  readonly all?: boolean;
}

export async function runTests(
  cli: Cli,
  filters: readonly string[],
  { cluster = false, all: slow = false }: TestOptions = {},
): Promise<number> {
  const specs = globSync(SPECS, { cwd: cli.root }).toSorted();
  const wanted = specs.filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
  if (wanted.length === 0)
    throw new CliError(EXIT.usage, `no test file has ${filters.map((filter) => JSON.stringify(filter)).join(' or ')} in its path`);
  const all = wanted.filter((file) => CLUSTER_SPEC.test(file) === cluster || (cluster && CONFORMANCE_SPEC.test(file)));
  // Installs Qdrant once. Otherwise every worker of vitest would install it.
  if (!cluster && all.some((file) => /qdrant|memory-adapters/.test(file))) await runNode(cli, ['test/support/dist/qdrant-main.js']);
  const why = 'takes minutes; --cluster --all runs it';
  const tooSlow = all.filter((file) => !slow && SLOW_SPEC.test(file)).map((what) => ({ what, why }));
  const skips = cluster ? tooSlow : skippedFiles(all, inspectNeeds(cli, true));
  const left = all.filter((file) => !skips.some(({ what }) => what === file));
  cli.out.note(`${plural(left.length, 'test file')} of ${all.length}`);
  const [config, ...through] = cluster
    ? ['test/cluster/vitest.cluster.ts', process.execPath, 'test/cluster/dist/main.js', 'run']
    : ['vitest.config.ts'];
  return summarize(cli, await runVitest(cli, config, left, through), skips);
}

function summarize(cli: Cli, { passed, failed, skipped }: Outcome, skippedHere: readonly Told[]): number {
  if (cli.signal.aborted) return EXIT.interrupted;
  const skips = [...skippedHere, ...skipped];
  for (const { what, why } of skips) cli.out.note(`skipped: ${what} (${why})`);
  const lines = failed.map(({ what, why }) => `failed: ${what} (${why})`);
  const counts = `${passed} passed, ${failed.length} failed, ${skips.length} skipped`;
  cli.out.data({ passed, failed: failed.length, skipped: skips.length, failures: failed, skips }, [...lines, counts].join('\n'));
  return failed.length > 0 ? EXIT.failed : EXIT.ok;
}

const SUFFIX = '.bench.js';
/** Runs a benchmark's `run(args)`, which returns an exit code. `await` makes this text a module; with --input-type, threads could not start. */
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

async function bench(cli: Cli, name: string | undefined, args: readonly string[]): Promise<number> {
  const folder = join(cli.root, 'bench', 'dist');
  const known = globSync(`*${SUFFIX}`, { cwd: folder }).map((file) => basename(file, SUFFIX));
  if (name === undefined) {
    cli.out.data({ benchmarks: known }, known.join('\n'));
    return EXIT.ok;
  }
  if (!known.includes(name))
    throw new CliError(EXIT.usage, `there is no benchmark ${name}`, [`the benchmarks are: ${known.join(', ') || 'none'}`]);
  // The benchmark runs in the checkout, so paths of the caller's folder are made absolute.
  const given = args.map((arg) => (existsSync(arg) ? resolve(arg) : arg));
  const url = pathToFileURL(join(folder, `${name}${SUFFIX}`)).href;
  return runNode(cli, [...SERVICE_NODE_ARGS, '-e', RUN, url, ...given, ...(cli.globals.json ? ['--json'] : [])]);
}

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
