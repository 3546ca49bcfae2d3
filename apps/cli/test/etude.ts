import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { until } from '@etude/test-support/until';
import { vi } from 'vitest';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
// A test with a whole stack takes long on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 240_000 });

const MAIN = `${ROOT}apps/cli/dist/main.js`;

export interface Outcome {
  /** null where a signal ended it. */
  readonly exit: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The built command line as a process, with PATH, HOME, the embedder that needs no files, and what is given. */
export class Etude {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  readonly ended: Promise<Outcome>;

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    if (!existsSync(MAIN)) throw new Error('the command line is not built: tsc -b');
    this.child = spawn(process.execPath, [MAIN, ...args], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ETUDE_EMBEDDER: 'lexical', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    this.child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.ended = once(this.child, 'close').then(([exit]) => ({ exit: exit as number | null, stdout: this.stdout, stderr: this.stderr }));
  }

  /** Waits until it has printed `text` on either stream. */
  async says(text: string, timeoutMs = 60_000): Promise<void> {
    const over = () => this.child.exitCode !== null || this.child.signalCode !== null;
    await until(() => `${this.stdout}${this.stderr}`.includes(text) || over(), { timeoutMs, what: `"${text}" from etude` });
    if (!`${this.stdout}${this.stderr}`.includes(text))
      throw new Error(`etude ended before it said "${text}":\n${this.stdout}${this.stderr}`);
  }
}

export const etude = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> => new Etude(args, env).ended;

/** For the preparations of a test. */
export async function succeeds(running: Promise<Outcome>): Promise<Outcome> {
  const outcome = await running;
  if (outcome.exit !== 0) throw new Error(`etude ended with ${outcome.exit}:\n${outcome.stdout}${outcome.stderr}`);
  return outcome;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
