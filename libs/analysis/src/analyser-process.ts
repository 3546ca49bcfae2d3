import { type ChildProcess, fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EtudeError } from '@etude/contracts/errors';
import type { AnalyserTask, ChildAnswer, ThreadAnswer } from './analyser-child-main.js';

const CHILD = fileURLToPath(new URL('../dist/analyser-child-main.js', import.meta.url));

/** A process that has its analysers loaded. It answers one question at a time. */
export class AnalyserProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** @throws EtudeError INTERNAL where it does not come up */
  static async start({ startMs, memoryMiB }: { startMs: number; memoryMiB: number }): Promise<AnalyserProcess> {
    const child = fork(CHILD, [String(memoryMiB)], {
      // Compiled once and quickly: compiling Ruff again for speed takes 250 MiB, and a skill is a small text.
      // What is not allowed here it has not: network, writing, other processes.
      execArgv: [
        '--liftoff-only',
        '--permission',
        '--allow-worker',
        '--no-warnings',
        ...readable().map((folder) => `--allow-fs-read=${join(folder, '*')}`),
      ],
      env: {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (said = (said + chunk).slice(-2_000)));
    const first = await answerOf(child, AbortSignal.timeout(startMs), `they were not loaded within ${startMs} ms`);
    if (first === 'ready') return new AnalyserProcess(child);
    child.kill('SIGKILL');
    const why = 'failed' in first ? first.failed : '';
    throw new EtudeError('INTERNAL', `the analysers did not start: ${why} ${said}`.trim());
  }

  /** Never fails: what went wrong is the answer. The process is to be killed after any that has no findings. */
  async ask(task: AnalyserTask, wallMs: number, signal?: AbortSignal): Promise<ThreadAnswer> {
    const bound = AbortSignal.any([AbortSignal.timeout(wallMs), ...(signal ? [signal] : [])]);
    const answer = answerOf(this.#child, bound, `it took longer than ${wallMs} ms`);
    if (this.#child.connected) this.#child.send(task, () => undefined);
    const found = await answer;
    return found === 'ready' ? { failed: 'its analysers answered out of turn' } : found;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

/** Folders of the analysers' own code. */
function readable(): string[] {
  const { resolve } = createRequire(CHILD);
  const packages = /^.*[/\\]node_modules(?=[/\\])/.exec(resolve('@astral-sh/ruff-wasm-nodejs'))?.[0];
  const contracts = dirname(dirname(resolve('@etude/contracts/skill-proof')));
  return [dirname(dirname(CHILD)), contracts, ...(packages ? [packages] : [])];
}

function answerOf(child: ChildProcess, signal: AbortSignal, tooLate: string): Promise<ChildAnswer> {
  return new Promise((resolve) => {
    const settle = (answer: ChildAnswer) => {
      signal.removeEventListener('abort', aborted);
      child.off('message', settle).off('error', failed).off('exit', exited);
      resolve(answer);
    };
    const aborted = () => settle({ failed: tooLate });
    const failed = (error: Error) => settle({ failed: error.message });
    const exited = (code: number | null, killedBy: string | null) =>
      settle({ failed: `it ended its analysers (${killedBy ?? `exit code ${code}`})` });
    if (child.exitCode !== null || child.signalCode !== null) return exited(child.exitCode, child.signalCode);
    if (signal.aborted) return aborted();
    signal.addEventListener('abort', aborted, { once: true });
    child.on('message', settle).once('error', failed).once('exit', exited);
  });
}
