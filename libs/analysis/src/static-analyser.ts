import { EtudeError } from '@etude/contracts/errors';
import type { SkillFinding } from '@etude/contracts/skill-proof';
import type { CodeAnalyser } from '@etude/domain/ports/code-analyser';
import { AnalyserProcess } from './analyser-process.js';

export interface AnalyserLimits {
  /** For one text; 20 s by default. */
  readonly wallMs?: number;
  /** Until the analysers are loaded; 60 s by default. */
  readonly startMs?: number;
  /** Of their whole process; 1,024 by default. */
  readonly memoryMiB?: number;
  /** Of one text; 2,000,000 by default. */
  readonly charsMax?: number;
}

const LIMITS: Required<AnalyserLimits> = { wallMs: 20_000, startMs: 60_000, memoryMiB: 1_024, charsMax: 2_000_000 };

/**
 * Ruff for Python and secretlint for secrets, in a process of their own that has no network, writes nothing, starts nothing and
 * knows no setting of this one. It is started by the first text, kept, looks at one text at a time, and is replaced after one that
 * ended it, took too long or made it too large: that one has the finding `not-analysed`, of severity "error".
 */
export class RuffSecretlintAnalyser implements CodeAnalyser {
  readonly #limits: Required<AnalyserLimits>;
  #process: AnalyserProcess | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(limits: AnalyserLimits = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /**
   * @param language "text": secrets only, as in a procedure or a file beside the code
   * @throws EtudeError CANCELLED; SHUTTING_DOWN once it is closed; INTERNAL where the analysers themselves do not start
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
    this.#process ??= await AnalyserProcess.start(this.#limits);
    const answer = await this.#process.ask({ text, language }, wallMs, signal);
    if ('findings' in answer) return answer.findings;
    // Whatever it was, the process is in no state to trust.
    this.#stop();
    if (signal?.aborted) throw cancelled();
    if (this.#closed) throw closed();
    return [notAnalysed(answer.failed)];
  }

  #stop(): void {
    this.#process?.kill();
    this.#process = null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stop();
    await this.#turn;
    // It may have been starting.
    this.#stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const cancelled = () => new EtudeError('CANCELLED', 'the analysis was cancelled');
const closed = () => new EtudeError('SHUTTING_DOWN', 'the analysers were closed');

function notAnalysed(why: string): SkillFinding {
  return { analyser: 'etude', rule: 'not-analysed', severity: 'error', line: null, message: `the code could not be analysed: ${why}` };
}
