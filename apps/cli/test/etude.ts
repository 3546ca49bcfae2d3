import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { programEnvironment } from '@etude/test-support/processes';
import { until } from '@etude/test-support/until';
import { runCommand } from '../src/program.js';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** A script of a slow model. */
export const SLOW = `${ROOT}apps/cli/test/slow.yaml`;

const MAIN = `${ROOT}apps/cli/dist/main.js`;

export interface Outcome {
  /** null if a signal ended the process. */
  readonly exit: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The messages printed with --json, one per line. */
export const messagesIn = <Message>({ stdout }: Outcome) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Message);

type Environment = Readonly<Record<string, string>>;
const environmentWith = (env: Environment) => ({ ...programEnvironment(), ETUDE_EMBEDDER: 'lexical', ...env });

/** The built command line as a process, with `programEnvironment`, the lexical embedder, and the given environment. */
export class Etude {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  readonly ended: Promise<Outcome>;

  constructor(args: readonly string[], env: Environment = {}) {
    if (!existsSync(MAIN)) throw new Error('the command line is not built: tsc -b');
    this.child = spawn(process.execPath, [MAIN, ...args], {
      cwd: ROOT,
      env: environmentWith(env),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    this.child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.ended = once(this.child, 'close').then(([exit]) => ({ exit: exit as number | null, stdout: this.stdout, stderr: this.stderr }));
  }

  /** Waits until the process has printed `text` on stdout or stderr. */
  async says(text: string, timeoutMs = 110_000): Promise<void> {
    const over = () => this.child.exitCode !== null || this.child.signalCode !== null;
    await until(() => `${this.stdout}${this.stderr}`.includes(text) || over(), { timeoutMs, what: `"${text}" from etude` });
    if (!`${this.stdout}${this.stderr}`.includes(text))
      throw new Error(`etude ended before it said "${text}":\n${this.stdout}${this.stderr}`);
  }
}

/** Commands that start other built programs, which they find only from the built command line. */
const BUILT_ONLY = ['up', 'demo'];

/** Runs a command line to its end: in this process if possible, because a new process takes ten times as long. */
export async function etude(words: readonly string[], env: Environment = {}): Promise<Outcome> {
  if (BUILT_ONLY.includes(words[0] ?? '')) return new Etude(words, env).ended;
  const printed = { stdout: '', stderr: '' };
  const into = (name: keyof typeof printed) => ({ write: (text: string) => (printed[name] += text) });
  const environment = environmentWith(env);
  const { signal } = new AbortController();
  const exit = await runCommand(words, { environment, stdout: into('stdout'), stderr: into('stderr'), signal });
  return { exit, ...printed };
}

/** Waits for a command. @throws Error with its output if it fails */
export async function succeeds(running: Promise<Outcome>): Promise<Outcome> {
  const outcome = await running;
  if (outcome.exit !== 0) throw new Error(`etude ended with ${outcome.exit}:\n${outcome.stdout}${outcome.stderr}`);
  return outcome;
}
