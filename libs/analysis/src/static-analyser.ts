import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EtudeError } from '@etude/contracts/errors';
import type { SkillFinding } from '@etude/contracts/skill-proof';
import type { CodeAnalyser } from '@etude/domain/ports/verification';
import type { AnalyserTask, ChildAnswer, TextAnswer } from './analyser-child-main.js';

const LIMITS = {
  wallMs: 20_000,
  startMs: 60_000,
  /** Limit for Ruff's memory. The process's heap has the same limit. */
  memoryMiB: 1_024,
  /** Longest text that is analysed, in characters. */
  charsMax: 2_000_000,
};
export type AnalyserLimits = Partial<typeof LIMITS>;

/**
 * Runs Ruff on Python and secretlint on all texts, in a child process without network, write access, children of its own or settings. The
 * first text starts the process, which then analyses one text at a time. A text that crashes the process or exceeds a limit gets the
 * finding `not-analysed`, of severity "error". The process is then replaced.
 */
export class RuffSecretlintAnalyser implements CodeAnalyser {
  readonly #limits: typeof LIMITS;
  #process: ChildProcess | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(limits: AnalyserLimits = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /**
   * @param language "text" looks for secrets only, as in a procedure or a file beside the code
   * @throws EtudeError CANCELLED; SHUTTING_DOWN once the analyser is closed; INTERNAL if the analysers do not start
   */
  analyse(text: string, signal?: AbortSignal, language: 'python' | 'text' = 'python'): Promise<readonly SkillFinding[]> {
    const found = this.#turn.then(() => this.#inTurn(text, language, signal));
    this.#turn = found.catch(() => undefined);
    return found;
  }

  async #inTurn(text: string, language: 'python' | 'text', signal?: AbortSignal): Promise<readonly SkillFinding[]> {
    const { charsMax, wallMs } = this.#limits;
    if (this.#closed) throw closed();
    if (signal?.aborted) throw cancelled();
    if (text.length > charsMax) return [notAnalysed(`it is longer than ${charsMax} characters`)];
    this.#process ??= await startChild(this.#limits);
    const bound = AbortSignal.any([AbortSignal.timeout(wallMs), ...(signal ? [signal] : [])]);
    const answering = answerOf(this.#process, bound, `it took longer than ${wallMs} ms`);
    if (this.#process.connected) this.#process.send({ text, language } satisfies AnalyserTask, () => undefined);
    const answer = (await answering) as TextAnswer;
    if ('findings' in answer) return answer.findings;
    // After any failure the process can't be trusted.
    this.#stop();
    if (signal?.aborted) throw cancelled();
    if (this.#closed) throw closed();
    return [notAnalysed(answer.failed)];
  }

  #stop(): void {
    this.#process?.kill('SIGKILL');
    this.#process = null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stop();
    await this.#turn;
    // The last call, for which `close` waited, may have started a process.
    this.#stop();
  }
}

const cancelled = () => new EtudeError('CANCELLED', 'the analysis was cancelled');
const closed = () => new EtudeError('SHUTTING_DOWN', 'the analysers were closed');

function notAnalysed(why: string): SkillFinding {
  return { analyser: 'etude', rule: 'not-analysed', severity: 'error', line: null, message: `the code could not be analysed: ${why}` };
}

const CHILD = fileURLToPath(new URL('../dist/analyser-child-main.js', import.meta.url));
const WASM_PAGES_PER_MIB = 16;

/** Starts a process and waits until its analysers are loaded. @throws EtudeError INTERNAL if the process does not start */
async function startChild({ startMs, memoryMiB }: typeof LIMITS): Promise<ChildProcess> {
  const child = fork(CHILD, {
    // Compiles Ruff once and quickly: an optimised build takes 250 MiB more, and skills are small texts.
    execArgv: [
      '--liftoff-only',
      `--max-old-space-size=${memoryMiB}`,
      `--wasm-max-mem-pages=${memoryMiB * WASM_PAGES_PER_MIB}`,
      '--permission',
      '--no-warnings',
      ...readable().map((folder) => `--allow-fs-read=${join(folder, '*')}`),
    ],
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (said = (said + chunk).slice(-2_000)));
  const first = await answerOf(child, AbortSignal.timeout(startMs), `loading took longer than ${startMs} ms`);
  if (first === 'ready') return child;
  child.kill('SIGKILL');
  const why = 'failed' in first ? first.failed : '';
  throw new EtudeError('INTERNAL', `the analysers did not start: ${why} ${said}`.trim());
}

/** Folders with the analysers' own code, which the process may read. */
function readable(): string[] {
  const { resolve } = createRequire(CHILD);
  const packages = /^.*[/\\]node_modules(?=[/\\])/.exec(resolve('@astral-sh/ruff-wasm-nodejs'))?.[0];
  const contracts = dirname(dirname(resolve('@etude/contracts/skill-proof')));
  return [dirname(dirname(CHILD)), contracts, ...(packages ? [packages] : [])];
}

/** Never rejects: a failure is returned as `failed`, after which the caller has to kill the process. */
async function answerOf(child: ChildProcess, signal: AbortSignal, tooLate: string): Promise<ChildAnswer> {
  const over = new AbortController();
  const bound = { signal: AbortSignal.any([signal, over.signal]) };
  const ended = () => ({ failed: `it crashed the analysers (${child.signalCode ?? `exit code ${child.exitCode}`})` });
  if (child.exitCode !== null || child.signalCode !== null) return ended();
  try {
    return await Promise.race([
      once(child, 'message', bound).then(([message]) => message as ChildAnswer),
      once(child, 'exit', bound).then(ended),
    ]);
  } catch (error) {
    return { failed: signal.aborted ? tooLate : (error as Error).message };
  } finally {
    over.abort();
  }
}
