import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { Cli } from '../cli.js';

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
  /** A command that is given the one to run and may prepare what that needs. */
  readonly through?: readonly string[];
}

export interface VitestEnd {
  /** null where it ended without a report. */
  readonly report: TestReport | null;
  readonly code: number | null;
}

/** Runs vitest once; Ctrl-C ends it and whatever its tests started. */
export async function runVitest(cli: Cli, { config, files, through = [] }: VitestRun): Promise<VitestEnd> {
  const dir = mkdtempSync(join(tmpdir(), 'etude-test-'));
  const file = join(dir, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', '--config', config];
  const [command = '', ...args] = [...through, ...vitest, ...reporters, ...files];
  // Its own group: a signal reaches all of it.
  const child = spawn(command, args, { cwd: cli.root, env: { ...cli.settings.environment }, stdio: ['ignore', 2, 2], detached: true });
  const stop = () => child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, 'SIGTERM');
  cli.signal.addEventListener('abort', stop, { once: true });
  const [code] = (await once(child, 'exit')) as [number | null];
  try {
    return { report: TestReport.parse(JSON.parse(readFileSync(file, 'utf8'))), code };
  } catch {
    return { report: null, code }; // said by the caller: no report counts as a failure
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
