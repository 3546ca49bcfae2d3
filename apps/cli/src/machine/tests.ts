import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { Cli } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { plural } from '../output.js';
import { type Finding, inspectMachine } from './doctor.js';

/** The fields of vitest's JSON report that are read here. */
const TestReport = z.object({
  numPassedTests: z.number(),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().default(''),
      startTime: z.number().default(0),
      endTime: z.number().default(0),
      assertionResults: z.array(z.object({ fullName: z.string(), status: z.string(), failureMessages: z.array(z.string()).nullish() })),
    }),
  ),
});
export type TestReport = z.infer<typeof TestReport>;

interface VitestEnd {
  readonly report: TestReport;
  readonly code: number | null;
  /** Failures of vitest itself. */
  readonly broken: readonly Told[];
}

const SLOWEST_SHOWN = 10;

/** Runs vitest once. Ctrl-C ends it with everything that its tests started. @param through command to which vitest's is appended */
async function runVitest(cli: Cli, config: string, files: readonly string[], through: readonly string[] = []): Promise<VitestEnd> {
  if (files.length === 0) return NOTHING_RUN;
  const dir = mkdtempSync(join(tmpdir(), 'etude-test-'));
  const path = join(dir, 'report.json');
  const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', '--config', config];
  const [command = '', ...args] = [...through, ...vitest, '--reporter=default', '--reporter=json', `--outputFile.json=${path}`, ...files];
  // A process group of its own: a signal reaches every process in it.
  const child = spawn(command, args, { cwd: cli.root, env: { ...cli.settings.environment }, stdio: ['ignore', 2, 2], detached: true });
  const stop = () => child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, 'SIGTERM');
  cli.signal.addEventListener('abort', stop, { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  try {
    const report = TestReport.parse(JSON.parse(readFileSync(path, 'utf8')));
    const isExplained = code === 0 || failures(cli.root, report).length > 0;
    return { report, code, broken: isExplained ? [] : [{ what: 'vitest', why: 'an error outside of any test is said above' }] };
  } catch {
    return { ...NOTHING_RUN, code, broken: [{ what: 'vitest', why: 'ended without a report' }] };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const NOTHING_RUN: VitestEnd = { report: { numPassedTests: 0, testResults: [] }, code: 0, broken: [] };

const SANDBOX = ['bubblewrap', 'user namespaces', 'python3'];
/** Programs that tests with real parts need, by test path. Unit tests need none. */
const NEEDS: ReadonlyArray<readonly [RegExp, readonly string[]]> = [
  [/\/qdrant\/.*\.int\.spec\.ts$/, ['qdrant']],
  [/^libs\/queue\/.*\.int\.spec\.ts$/, ['redis-server']],
  [/^libs\/sandbox\/.*\.int\.spec\.ts$/, SANDBOX],
  [/^(apps|bench)\/.*\.int\.spec\.ts$/, ['redis-server', ...SANDBOX]],
  [/^test\/(?!cluster\/).*\.spec\.ts$/, ['redis-server', ...SANDBOX]],
];

/** One test or file, and why it was skipped or failed. */
interface Told {
  readonly what: string;
  readonly why: string;
}

/** The files that this machine can't run, each with what is missing. */
export function skippedFiles(files: readonly string[], findings: ReadonlyArray<Pick<Finding, 'name' | 'ok'>>): Told[] {
  const missing = new Set(findings.filter(({ ok }) => !ok).map(({ name }) => name));
  return files.flatMap((what) => {
    const why = NEEDS.filter(([where]) => where.test(what)).flatMap(([, names]) => names.filter((name) => missing.has(name)));
    return why.length > 0 ? [{ what, why: `needs ${[...new Set(why)].join(', ')}` }] : [];
  });
}

const SPECS = ['libs/*', 'apps/*', 'test/*', 'bench'].map((where) => `${where}/{src,test}/**/*.spec.ts`);
const CLUSTER_SPEC = /\.cluster\.spec\.ts$/;
/** Tests of the contract that every sandbox driver keeps. With a cluster they run again, in pods. */
const CONFORMANCE_SPEC = /^libs\/sandbox\/test\/conformance\//;

const firstLine = (message = '') => message.trim().split('\n', 1)[0]?.slice(0, 300) || 'without a message';

/** Every test that did not pass, by name. A file that could not be loaded has no tests in the report, and counts as one failure. */
function notPassed(root: string, report: TestReport): ReadonlyArray<Told & { readonly status: string }> {
  return report.testResults.flatMap(({ name, status: ofFile, message, assertionResults: tests }) => {
    const file = relative(root, name);
    if (ofFile === 'failed' && !tests.some(({ status }) => status === 'failed'))
      return [{ what: file, status: ofFile, why: firstLine(message) }];
    return tests
      .filter(({ status }) => status !== 'passed')
      .map(({ fullName, status, failureMessages }) => ({ what: `${file}: ${fullName}`, status, why: firstLine(failureMessages?.[0]) }));
  });
}

export const failures = (root: string, report: TestReport): Told[] =>
  notPassed(root, report).flatMap(({ status, ...told }) => (status === 'failed' ? [told] : []));

const skippedTests = (root: string, report: TestReport): Told[] =>
  notPassed(root, report).flatMap(({ status, what }) => (status === 'failed' ? [] : [{ what, why: 'skipped by the test itself' }]));

export interface TestOptions {
  /** Runs only the tests that need a cluster, and the sandbox conformance tests in pods. */
  readonly cluster?: boolean;
}

/** `etude test`: runs every test of one kind that this machine can run. The last lines name and count the failures. */
export async function runTests(cli: Cli, filters: readonly string[], { cluster = false }: TestOptions = {}): Promise<number> {
  const specs = globSync(SPECS, { cwd: cli.root }).toSorted();
  const wanted = specs.filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
  if (wanted.length === 0)
    throw new CliError(EXIT.usage, `no test file has ${filters.map((filter) => JSON.stringify(filter)).join(' or ')} in its path`);
  const all = wanted.filter((file) => CLUSTER_SPEC.test(file) === cluster || (cluster && CONFORMANCE_SPEC.test(file)));
  return cluster ? runInCluster(cli, all) : runHere(cli, all);
}

/** Says which Qdrant the tests use. If there is none, a replacement is installed first. */
async function inspectQdrant({ root, settings, signal, out }: Cli): Promise<Pick<Finding, 'name' | 'ok'>> {
  const options = { cwd: root, env: { ...settings.environment }, signal };
  const looked = promisify(execFile)(process.execPath, ['test/support/dist/qdrant-main.js'], options);
  const { ok, said } = await looked.then(
    ({ stdout }) => ({ ok: true, said: stdout.trim() }),
    (error: { stdout?: string; message: string }) => ({ ok: false, said: (error.stdout || error.message).trim() }),
  );
  out.note(said);
  return { name: 'qdrant', ok };
}

async function runHere(cli: Cli, all: readonly string[]): Promise<number> {
  const qdrant = all.some((file) => /\/qdrant\//.test(file)) ? [await inspectQdrant(cli)] : [];
  const skips = skippedFiles(all, [...inspectMachine(cli), ...qdrant]);
  const left = all.filter((file) => !skips.some(({ what }) => what === file));
  cli.out.note(`${plural(left.length, 'test file')} of ${all.length}`);
  return summarize(cli, await runVitest(cli, 'tools/vitest.all.ts', left), skips);
}

/** Exit code of test/cluster if this machine can't run a cluster. It has printed the reason by then. */
const NO_CLUSTER = 3;

async function runInCluster(cli: Cli, all: readonly string[]): Promise<number> {
  const end = await runVitest(cli, 'test/cluster/vitest.cluster.ts', all, [process.execPath, 'test/cluster/dist/main.js', 'run']);
  if (end.code !== NO_CLUSTER) return summarize(cli, end, []);
  const skips = all.map((what) => ({ what, why: 'needs a cluster, which can not be had here; why is said above' }));
  return summarize(cli, NOTHING_RUN, skips);
}

function summarize(cli: Cli, { report, broken }: VitestEnd, skippedHere: readonly Told[]): number {
  if (cli.signal.aborted) return EXIT.interrupted;
  const skips = [...skippedHere, ...skippedTests(cli.root, report)];
  for (const { what, why } of skips) cli.out.note(`skipped: ${what} (${why})`);
  const failed = [...failures(cli.root, report), ...broken];
  const counts = { passed: report.numPassedTests, failed: failed.length, skipped: skips.length };
  const slowest = report.testResults
    .map(({ name, startTime, endTime }) => ({ file: relative(cli.root, name), seconds: Math.round((endTime - startTime) / 100) / 10 }))
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, SLOWEST_SHOWN);
  const lines = [
    ...slowest.map(({ file, seconds }) => `slow: ${seconds.toFixed(1).padStart(6)} s  ${file}`),
    ...failed.map(({ what, why }) => `failed: ${what} (${why})`),
    `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`,
  ];
  cli.out.data({ kind: 'summary', ...counts, failures: failed, skips, slowest }, lines.join('\n'));
  return failed.length > 0 ? EXIT.failed : EXIT.ok;
}
