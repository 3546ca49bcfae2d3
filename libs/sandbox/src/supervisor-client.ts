import { randomUUID } from 'node:crypto';
import { EtudeError, isAbort } from '@etude/contracts/errors';
import { JsonObject } from '@etude/contracts/json';
import { Display, RunResult } from '@etude/contracts/sandbox';
import { type CellToolAnswer, TOOL_ANSWER_WAIT_MS } from '@etude/contracts/scratchpad';
import type { SupervisorFrame } from './frames.js';
import type { ClaimedSandbox, ExecutionSink, LostSandbox, SandboxExecution, SandboxLink } from './sandbox-driver.js';
import { SupervisorFiles } from './supervisor-files.js';

/** If the supervisor has not reported the end of a run this long after the run's wall limit, the sandbox counts as lost. */
const SUPERVISOR_GRACE_MS = 8_000;

export const KERNEL_LOST: LostSandbox = { exit: 'kernel_lost', message: 'the sandbox was lost while the code ran' };

interface SupervisorClientOptions {
  readonly claim: string;
  /** See `ClaimedSandbox.place`. */
  readonly place: string | null;
  /**
   * Called when the link has ended by itself. Returns another link to the same supervisor, bound to the same claim, or the reason of the
   * loss. The current execution continues over the new link. Absent: the sandbox is lost with its link.
   */
  recover?(): Promise<SandboxLink | LostSandbox>;
  /** Called by the first `release`, and for a link that `recover` returns after that. Resolves when no process of the sandbox runs any more. */
  onRelease(link: SandboxLink): Promise<void>;
  /** Called by the first `leave`. Absent: `leave` does nothing, because no other process can take the sandbox over. */
  onLeave?(): Promise<void>;
}

interface Following {
  readonly execution: SandboxExecution;
  readonly sink: ExecutionSink;
  readonly signal: AbortSignal;
  /** Number of the next frame. The sink has all frames before it. */
  next: number;
  watchdog: NodeJS.Timeout | undefined;
  readonly settle: (end: LostSandbox | null) => void;
  readonly fail: (error: Error) => void;
}

/** A claimed sandbox, over the protocol of docs/sandbox-protocol.md. Its link is bound, or its `bind` has been sent. */
export class SupervisorClient implements ClaimedSandbox {
  readonly place: string | null;
  readonly files: SupervisorFiles;
  private readonly losing = Promise.withResolvers<LostSandbox>();
  readonly lost = this.losing.promise;
  private following: Following | null = null;
  private released: Promise<void> | null = null;
  private end: LostSandbox | null = null;

  constructor(
    private link: SandboxLink,
    private readonly options: SupervisorClientOptions,
  ) {
    this.place = options.place;
    this.files = new SupervisorFiles((frame) => this.link.send({ ...frame, claim: options.claim }));
    void this.read();
  }

  async execute(execution: SandboxExecution, sink: ExecutionSink, signal: AbortSignal): Promise<LostSandbox | null> {
    signal.throwIfAborted();
    if (this.end) return this.end;
    if (this.following) throw new Error(`execution ${this.following.execution.executionId} is running in this sandbox already`);
    const stop = () => this.stop(execution);
    signal.addEventListener('abort', stop, { once: true });
    try {
      const end = await new Promise<LostSandbox | null>((settle, fail) => {
        this.following = { execution, sink, signal, next: 0, watchdog: undefined, settle, fail };
        this.watch(this.following);
        this.ask(this.following);
      });
      signal.throwIfAborted();
      return end;
    } catch (error) {
      if (signal.aborted && !execution.keep) await this.link.gone;
      throw isAbort(error) ? (signal.reason as Error) : error;
    } finally {
      signal.removeEventListener('abort', stop);
      this.unfollow();
    }
  }

  async answer(executionId: string, number: number, answer: CellToolAnswer): Promise<void> {
    const given = answer.success ? { result: answer.result } : { error: answer.error };
    await this.files.ask({ type: 'answer', executionId, number, ...given });
  }

  release(): Promise<void> {
    this.released ??= this.options.onRelease(this.link);
    return this.released;
  }

  async leave(): Promise<void> {
    if (this.options.onLeave) this.released ??= this.options.onLeave();
    await this.released;
  }

  private unfollow(): void {
    clearTimeout(this.following?.watchdog);
    this.following = null;
  }

  private ask({ execution, next, signal }: Following): void {
    this.link.send({ type: 'execute', claim: this.options.claim, ...execution, after: next });
    // A cancel that was sent while there was no connection is lost, so it is sent again.
    if (signal.aborted) this.stop(execution);
  }

  /** Stops the code: with `keep` by a cancel, otherwise with the whole sandbox. */
  private stop({ keep, executionId }: SandboxExecution): void {
    if (keep) this.link.send({ type: 'cancel', claim: this.options.claim, executionId });
    else void this.link.destroy();
  }

  private async read(): Promise<void> {
    for (;;) {
      const frame = await this.link.receive();
      if (frame) {
        this.take(frame);
        continue;
      }
      const next = this.released || this.end ? KERNEL_LOST : ((await this.options.recover?.()) ?? KERNEL_LOST);
      if ('exit' in next) return this.lose(next);
      this.link = next;
      if (this.released) return void this.options.onRelease(next);
      if (this.following) this.ask(this.following);
      this.files.repeat();
    }
  }

  private take(frame: SupervisorFrame): void {
    try {
      if (frame.type.startsWith('file.') || frame.type === 'answered') this.files.answer(frame);
      else if (frame.type === 'refused') this.refused(frame);
      else if (this.following && frame.executionId === this.following.execution.executionId) this.follow(this.following, frame);
    } catch (error) {
      this.condemn({ ...KERNEL_LOST, message: `the supervisor sent a malformed "${frame.type}": ${(error as Error).message}` });
    }
  }

  private follow(following: Following, frame: SupervisorFrame): void {
    const at = Number(frame.seq);
    // The former link has already delivered this frame.
    if (!(at >= following.next)) return;
    following.next = at + 1;
    const { sink, settle } = following;
    if (frame.type === 'output') sink.output(frame.stream === 'stderr' ? 'stderr' : 'stdout', String(frame.text));
    else if (frame.type === 'display') sink.display(Display.parse(frame.data));
    else if (frame.type === 'tool_call') {
      this.watch(following, TOOL_ANSWER_WAIT_MS);
      sink.toolCall?.({ number: Number(frame.number), tool: String(frame.tool), arguments: JsonObject.parse(frame.arguments) });
    } else if (frame.type === 'run') {
      this.watch(following);
      sink.result(RunResult.parse(frame.result));
    } else if (frame.type === 'done') settle(null);
  }

  /** Restarts the time within which the supervisor must end the run. `waitMs` is added for the answer to a tool call. */
  private watch(following: Following, waitMs = 0): void {
    clearTimeout(following.watchdog);
    const late = { ...KERNEL_LOST, message: 'the supervisor did not stop a run at its wall limit' };
    const mostMs = waitMs + following.execution.limits.wallMs + SUPERVISOR_GRACE_MS;
    following.watchdog = setTimeout(() => this.condemn(late), mostMs);
  }

  private refused({ reason, code }: SupervisorFrame): void {
    const { following } = this;
    if (code === 'busy') following?.fail(new EtudeError('FAILED_PRECONDITION', `the sandbox is busy: ${String(reason)}`));
    else if (following && isUnknown(following, String(code))) {
      const { executionId } = following.execution;
      const message = `execution "${executionId}" is not known in this sandbox; send its code without a resume token`;
      following.fail(new EtudeError('NOT_FOUND', message, { field: 'execution_id' }));
    } else this.condemn({ exit: 'infra', message: `the sandbox refused a request: ${String(reason)}` });
  }

  private condemn(end: LostSandbox): void {
    this.lose(end);
    void this.link.destroy();
  }

  private lose(end: LostSandbox): void {
    if (this.end) return;
    this.end = end;
    this.following?.settle(end);
    this.files.fail(end);
    if (!this.released) this.losing.resolve(end);
  }
}

/** A supervisor refuses an unknown execution without runs as `malformed`. `forgotten` means that its frames are no longer kept. */
const isUnknown = ({ execution, next }: Following, code: string): boolean =>
  (code === 'malformed' && execution.runs.length === 0) || (code === 'forgotten' && execution.keep === true && next === 0);

export const newClaim = () => `claim-${randomUUID()}`;
