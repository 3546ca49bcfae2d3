import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { type Cli, commandLine } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { plural } from '../output.js';
import { type Finding, inspectMachine } from './doctor.js';

/** What of vitest's JSON report is read here. */
export const TestReport = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number().default(0),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().default(''),
      assertionResults: z.array(
        z.object({
          fullName: z.string(),
          status: z.string(),
          failureMessages: z
            .array(z.string())
            .nullish()
            .transform((told) => told ?? []),
        }),
      ),
    }),
  ),
});
export type TestReport = z.infer<typeof TestReport>;

export interface VitestRun {
  readonly config: string;
  /** From the root of the checkout. */
  readonly files: readonly string[];
  /** Files of reporters beside the usual one. */
  readonly reporters?: readonly string[];
  /** A command that is given the one to run and may prepare what that needs. */
  readonly through?: readonly string[];
}

export interface VitestEnd {
  /** null where it ended without a report. */
  readonly report: TestReport | null;
  readonly code: number | null;
  /** Time of each file, imports and hooks included; the slowest first. */
  readonly seconds: ReadonlyArray<readonly [file: string, seconds: number]>;
}

const Seconds = z.record(z.string(), z.number());

const SECONDS_REPORTER = 'tools/vitest-seconds.mjs';
const SLOWEST_SHOWN = 10;

/** Runs vitest once; Ctrl-C ends it and whatever its tests started. */
export async function runVitest(cli: Cli, { config, files, reporters: more = [], through = [] }: VitestRun): Promise<VitestEnd> {
  const dir = mkdtempSync(join(tmpdir(), 'etude-test-'));
  const file = join(dir, 'report.json');
  const secondsFile = join(dir, 'seconds.json');
  const named = ['default', SECONDS_REPORTER, ...more, 'json'].map((name) => `--reporter=${name}`);
  const reporters = [...named, `--outputFile.json=${file}`];
  const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', '--config', config];
  const [command = '', ...args] = [...through, ...vitest, ...reporters, ...files];
  // Its own group: a signal reaches all of it.
  const env = { ...cli.settings.environment, ETUDE_TEST_SECONDS_PATH: secondsFile };
  const child = spawn(command, args, { cwd: cli.root, env, stdio: ['ignore', 2, 2], detached: true });
  const stop = () => child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, 'SIGTERM');
  cli.signal.addEventListener('abort', stop, { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  try {
    const seconds = Object.entries(Seconds.parse(JSON.parse(readFileSync(secondsFile, 'utf8'))));
    return {
      report: TestReport.parse(JSON.parse(readFileSync(file, 'utf8'))),
      code,
      seconds: seconds.map(([path, took]) => [relative(cli.root, path), took] as const).toSorted(([, a], [, b]) => b - a),
    };
  } catch {
    return { report: null, code, seconds: [] }; // said by the caller: no report counts as a failure
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const SANDBOX = ['bubblewrap', 'user namespaces', 'python3'];
/** What tests with real parts need, by where they are. Unit tests need nothing. */
const NEEDS: ReadonlyArray<readonly [RegExp, readonly string[]]> = [
  [/\/qdrant\/.*\.int\.spec\.ts$/, ['qdrant']],
  [/^libs\/queue\/.*\.int\.spec\.ts$/, ['redis-server']],
  [/^libs\/sandbox\/.*\.int\.spec\.ts$/, SANDBOX],
  [/^(apps|bench)\/.*\.int\.spec\.ts$/, ['redis-server', ...SANDBOX]],
  [/^test\/(?!cluster\/).*\.spec\.ts$/, ['redis-server', ...SANDBOX]],
];

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

interface Skip {
  readonly what: string;
  readonly why: string;
}

/** The files that this machine can't run, each with what is missing. */
export function skippedFiles(files: readonly string[], findings: readonly Finding[]): Skip[] {
  const missing = new Set(findings.filter(({ ok }) => !ok).map(({ name }) => name));
  return files.flatMap((what) => {
    const why = NEEDS.filter(([where]) => where.test(what)).flatMap(([, names]) => names.filter((name) => missing.has(name)));
    return why.length > 0 ? [{ what, why: `needs ${[...new Set(why)].join(', ')}` }] : [];
  });
}

const SPECS = ['libs/*', 'apps/*', 'test/*', 'bench'].map((where) => `${where}/{src,test}/**/*.spec.ts`);
const CLUSTER_SPEC = /\.cluster\.spec\.ts$/;
/** What every driver of sandboxes keeps: with a cluster it runs again, in pods. */
const CONFORMANCE_SPEC = /^libs\/sandbox\/test\/conformance\//;
const specFiles = (root: string) => globSync(SPECS, { cwd: root }).toSorted();

export interface Failure {
  /** The file, from the root of the checkout, and the test's name. */
  readonly what: string;
  /** The first line of what it said. */
  readonly why: string;
}

const firstLine = (message = '') => message.trim().split('\n', 1)[0]?.slice(0, 300) || 'without a message';

/** Every failure by name. A file that could not be loaded has no tests in the report; it is one that failed. */
export function failures(root: string, report: TestReport): Failure[] {
  return report.testResults.flatMap(({ name, status, message, assertionResults }): Failure[] => {
    const file = relative(root, name);
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (failed.length === 0 && status === 'failed') return [{ what: file, why: firstLine(message) }];
    return failed.map(({ fullName, failureMessages }) => ({ what: `${file}: ${fullName}`, why: firstLine(failureMessages[0]) }));
  });
}

const skippedTests = (report: TestReport): Skip[] =>
  report.testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => !['passed', 'failed'].includes(status))
      .map(({ fullName }) => ({ what: `${name}: ${fullName}`, why: 'skipped by the test itself' })),
  );

const EMPTY: TestReport = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
const NOTHING_RUN: VitestEnd = { report: EMPTY, code: 0, seconds: [] };

export interface TestOptions {
  /** Those that need a cluster, and no others. */
  readonly cluster?: boolean;
}

/** `etude test`: every test that the machine can run, of one kind; the last lines name what failed and count them. */
export async function runTests(cli: Cli, filters: readonly string[], { cluster = false }: TestOptions = {}): Promise<number> {
  const wanted = specFiles(cli.root).filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
  if (wanted.length === 0)
    throw new CliError(EXIT.usage, `no test file has ${filters.map((filter) => JSON.stringify(filter)).join(' or ')} in its path`, [
      'a filter is a part of a path, such as libs/queue or skills.int',
    ]);
  const all = wanted.filter((file) => CLUSTER_SPEC.test(file) === cluster || (cluster && CONFORMANCE_SPEC.test(file)));
  if (!cluster && all.length < wanted.length)
    cli.out.note(`${plural(wanted.length - all.length, 'file')} with tests of a cluster left to ${commandLine(cli, 'test --cluster')}`);
  return cluster ? runInCluster(cli, all) : runHere(cli, all);
}

/** Says which Qdrant the tests take, after installing what stands in for one where there is none. */
async function inspectQdrant({ root, settings, signal, out }: Cli): Promise<Finding> {
  const looked = promisify(execFile)(process.execPath, ['test/support/dist/qdrant-main.js'], {
    cwd: root,
    env: { ...settings.environment },
    signal,
  });
  const { ok, said } = await looked.then(
    ({ stdout }) => ({ ok: true, said: stdout }),
    (error: { stdout?: string; message: string }) => ({ ok: false, said: error.stdout || error.message }),
  );
  out.note(said.trim());
  return { name: 'qdrant', ok, needed: false, state: said.trim(), cost: '', fix: '' };
}

async function runHere(cli: Cli, all: readonly string[]): Promise<number> {
  const qdrant = all.some((file) => /\/qdrant\//.test(file)) ? [await inspectQdrant(cli)] : [];
  const skips = skippedFiles(all, [...(await inspectMachine(cli)), ...qdrant]);
  const left = all.filter((file) => !skips.some(({ what }) => what === file));
  cli.out.note(`${plural(left.length, 'test file')} of ${all.length}`);
  const run = { config: 'tools/vitest.all.ts', files: left };
  return summarize(cli, left, left.length === 0 ? NOTHING_RUN : await runVitest(cli, run), skips);
}

/** What test/cluster ends with where the machine can't run a cluster; it has said why by then. */
const NO_CLUSTER = 3;

async function runInCluster(cli: Cli, all: readonly string[]): Promise<number> {
  cli.out.note(`${plural(all.length, 'test file')} in a cluster`);
  if (all.length === 0) return summarize(cli, all, NOTHING_RUN, []);
  const through = [process.execPath, 'test/cluster/dist/main.js', 'run'];
  const end = await runVitest(cli, {
    config: 'test/cluster/vitest.cluster.ts',
    files: all,
    through,
  });
  if (end.report || end.code !== NO_CLUSTER) return summarize(cli, all, end, []);
  const skips = all.map((what) => ({ what, why: 'needs a cluster, which can not be had here; why is said above' }));
  return summarize(cli, [], NOTHING_RUN, skips);
}

/** Files that were to run and of which the report says nothing. */
export function unreported(root: string, files: readonly string[], report: TestReport): Failure[] {
  const told = new Set(report.testResults.map(({ name }) => relative(root, name)));
  return files.filter((file) => !told.has(file)).map((what) => ({ what, why: 'was not run' }));
}

/** What vitest itself has to answer for: it ended badly, and no test says why. */
function unexplained({ report, code }: VitestEnd, failed: readonly Failure[]): Failure[] {
  if (!report) return [{ what: 'vitest', why: 'ended without a report' }];
  if (code === 0 || failed.length > 0) return [];
  return [{ what: 'vitest', why: `ended with ${code ?? 'a signal'} although no test failed; an error outside of any test is said above` }];
}

function summarize(cli: Cli, files: readonly string[], end: VitestEnd, skips: readonly Skip[]): number {
  if (cli.signal.aborted) return EXIT.interrupted;
  const report = end.report ?? EMPTY;
  const told = [...skips, ...skippedTests(report)];
  for (const { what, why } of told) cli.out.note(`skipped: ${what} (${why})`);
  if (told.length === 0) cli.out.note('nothing was skipped');
  const named = [...failures(cli.root, report), ...(end.report ? unreported(cli.root, files, report) : [])];
  const failed = [...named, ...unexplained(end, named)];
  const counts: Counts = {
    passed: report.numPassedTests,
    failed: failed.length,
    skipped: report.numPendingTests + report.numTodoTests + skips.length,
  };
  const slowest = end.seconds.slice(0, SLOWEST_SHOWN).map(([file, seconds]) => ({ file, seconds: Number(seconds.toFixed(1)) }));
  const lines = [
    ...slowest.map(({ file, seconds }) => `slow: ${seconds.toFixed(1).padStart(6)} s  ${file}`),
    ...failed.map(({ what, why }) => `failed: ${what} (${why})`),
  ];
  const total = `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
  cli.out.data({ kind: 'summary', ...counts, failures: failed, skips: told, slowest }, [...lines, total].join('\n'));
  return failed.length > 0 ? EXIT.failed : EXIT.ok;
}
