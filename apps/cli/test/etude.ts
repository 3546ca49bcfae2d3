import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { programEnvironment } from '@etude/test-support/processes';
import { until } from '@etude/test-support/until';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

const MAIN = `${ROOT}apps/cli/dist/main.js`;

export interface Outcome {
  /** null if a signal ended the process. */
  readonly exit: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The built command line as a process, with `programEnvironment`, the lexical embedder, and the given environment. */
export class Etude {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  readonly ended: Promise<Outcome>;

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    if (!existsSync(MAIN)) throw new Error('the command line is not built: tsc -b');
    this.child = spawn(process.execPath, [MAIN, ...args], {
      cwd: ROOT,
      env: { ...programEnvironment(), ETUDE_EMBEDDER: 'lexical', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    this.child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.ended = once(this.child, 'close').then(([exit]) => ({ exit: exit as number | null, stdout: this.stdout, stderr: this.stderr }));
  }

  /** Waits until the process has printed `text` on stdout or stderr. */
  async says(text: string, timeoutMs = 60_000): Promise<void> {
    const over = () => this.child.exitCode !== null || this.child.signalCode !== null;
    await until(() => `${this.stdout}${this.stderr}`.includes(text) || over(), { timeoutMs, what: `"${text}" from etude` });
    if (!`${this.stdout}${this.stderr}`.includes(text))
      throw new Error(`etude ended before it said "${text}":\n${this.stdout}${this.stderr}`);
  }
}

export const etude = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> => new Etude(args, env).ended;

/** Waits for a command. @throws Error with its output if it fails */
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
