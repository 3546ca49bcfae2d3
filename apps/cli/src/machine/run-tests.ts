import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { plural } from '../output.js';
import { type Finding, inspectMachine } from './inspect-machine.js';

/** What of vitest's JSON report is read here. */
const TestReport = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number().default(0),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().default(''),
      assertionResults: z.array(z.object({ fullName: z.string(), status: z.string() })),
    }),
  ),
});
type TestReport = z.infer<typeof TestReport>;

const SANDBOX = ['bubblewrap', 'user namespaces', 'python3'];
/** What tests with real parts need, by where they are. Unit tests need nothing. */
const NEEDS: ReadonlyArray<readonly [RegExp, readonly string[]]> = [
  [/^libs\/queue\/.*\.int\.spec\.ts$/, ['redis-server']],
  [/^libs\/sandbox\/.*\.int\.spec\.ts$/, SANDBOX],
  [/^(apps|bench)\/.*\.int\.spec\.ts$/, ['redis-server', ...SANDBOX]],
  [/^test\/.*\.spec\.ts$/, ['redis-server', ...SANDBOX]],
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
const specFiles = (root: string) => globSync(SPECS, { cwd: root }).toSorted();

/** A file that could not be loaded has no tests in the report; it counts as one that failed. */
export function count(report: TestReport, skips: readonly Skip[]): Counts {
  const unloaded = report.testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + unloaded.length,
    skipped: report.numPendingTests + report.numTodoTests + skips.length,
  };
}

const skippedTests = (report: TestReport): Skip[] =>
  report.testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => !['passed', 'failed'].includes(status))
      .map(({ fullName }) => ({ what: `${name}: ${fullName}`, why: 'skipped by the test itself' })),
  );

/** Runs vitest over every package at once. null where it ended without a report. */
async function runVitest(cli: Cli, filters: readonly string[]): Promise<TestReport | null> {
  const dir = mkdtempSync(join(tmpdir(), 'etude-test-'));
  const file = join(dir, 'report.json');
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--config',
    'tools/vitest.all.ts',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${file}`,
    ...filters,
  ];
  // Its own group: Ctrl-C ends it and whatever its tests started.
  const child = spawn(process.execPath, args, {
    cwd: cli.root,
    env: { ...cli.settings.environment },
    stdio: ['ignore', 2, 2],
    detached: true,
  });
  const stop = () => child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, 'SIGTERM');
  cli.signal.addEventListener('abort', stop, { once: true });
  await once(child, 'exit');
  try {
    return TestReport.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return null; // said below: no report counts as a failure
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** `etude test`: every test that the machine can run; the last line counts them. */
export async function runTests(cli: Cli, filters: readonly string[]): Promise<number> {
  const all = specFiles(cli.root).filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
  const skips = skippedFiles(all, await inspectMachine(cli));
  const left = all.filter((file) => !skips.some(({ what }) => what === file));
  const chosen = skips.length > 0 ? left : filters;
  cli.out.note(`${plural(left.length, 'test file')} of ${all.length}`);
  const empty: TestReport = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
  const report = left.length === 0 ? empty : await runVitest(cli, chosen);
  if (cli.signal.aborted) return EXIT.interrupted;
  if (!report) cli.out.note('vitest ended without a report, which counts as a failure');
  const told = [...skips, ...skippedTests(report ?? empty)];
  for (const { what, why } of told) cli.out.note(`skipped: ${what} (${why})`);
  if (told.length === 0) cli.out.note('nothing was skipped');
  const counts = report ? count(report, skips) : { passed: 0, failed: 1, skipped: skips.length };
  cli.out.data({ kind: 'summary', ...counts, skips: told }, `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  return counts.failed > 0 ? EXIT.failed : EXIT.ok;
}
