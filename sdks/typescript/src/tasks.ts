import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { type CallSettings, type Calls, newRequestId } from './calls.js';
import { TaskFailedError } from './errors.js';
import {
  type EvaluatorSchema,
  LearningState,
  Mode,
  type StepExplanation,
  StopReason,
  type Task as TaskMessage,
  type TaskEvent,
  type TaskResult,
  type TaskSpecSchema,
  Tasks as Service,
  TaskState,
  type UsageReport,
} from './gen/etude/v1/tasks_pb.js';

const WAIT_MS = 20_000;

/** Fields of a TaskSpec that callers pass as they are, such as `agent`, `limits` and `priority`. */
type SpecFields = Omit<Exclude<MessageInitShape<typeof TaskSpecSchema>, { $typeName: string }>, 'prompt' | 'files' | 'mode'>;

/** Options of a task, in addition to its prompt. Without an evaluator, the answer is not judged. */
export interface TaskOptions extends SpecFields {
  /** Python asserts. The answer must define the function that they call first, or `entryPoint`. */
  readonly tests?: string | readonly string[];
  readonly entryPoint?: string;
  /** Pairs of input and expected output of a program. */
  readonly ioCases?: ReadonlyArray<readonly [stdin: string, expectedStdout: string]>;
  /** Whether the model sees these tests. */
  readonly public?: boolean;
  /** Files for the sandbox: content by path. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Whether to learn from the attempts at the end. */
  readonly training?: boolean;
  /** A repeat with the same id returns the same task. Default: a new id. */
  readonly requestId?: string;
}

export interface WaitOptions {
  /** Default: no limit. */
  readonly timeoutMs?: number;
  /** Whether to also wait for the end of learning. */
  readonly learning?: boolean;
  readonly signal?: AbortSignal;
}

function evaluatorOf(options: TaskOptions): MessageInitShape<typeof EvaluatorSchema> | undefined {
  const { tests, ioCases, entryPoint, public: shown = false, evaluator } = options;
  if ([tests, ioCases, evaluator].filter((one) => one !== undefined).length > 1)
    throw new TypeError('a task has one evaluator: pass only one of tests, ioCases, evaluator');
  if (tests !== undefined) {
    const text = typeof tests === 'string' ? tests : tests.join('\n');
    const called = entryPoint ?? /\bassert\s+(?:not\s+)?\(*([A-Za-z_]\w*)\s*\(/.exec(text)?.[1];
    if (called === undefined) throw new TypeError('tests: no assert begins with a call of a function; pass entryPoint');
    return { kind: { case: 'pythonTests', value: { entryPoint: called, tests: text, public: shown } } };
  }
  if (ioCases === undefined) return evaluator;
  const cases = ioCases.map(([stdin, expectedStdout]) => ({ stdin, expectedStdout, public: shown }));
  return { kind: { case: 'ioCases', value: { cases } } };
}

const bytesOf = (content: string | Uint8Array) => (typeof content === 'string' ? new TextEncoder().encode(content) : content);

/** One task by its name, such as "tasks/t0192f0c8a1b2". */
export class Task {
  constructor(
    private readonly calls: Calls,
    readonly name: string,
  ) {}

  /** The task in its current state. */
  async get(settings?: CallSettings): Promise<TaskMessage> {
    return this.calls.unary(Service.method.getTask, { name: this.name }, settings);
  }

  /**
   * All events of the task, from its start until it is finished. A broken stream resumes automatically.
   *
   * @param text whether to also yield the model's text while it is written; this text may be lost
   */
  watch({ text = false, signal }: { readonly text?: boolean; readonly signal?: AbortSignal } = {}): AsyncGenerator<TaskEvent, void> {
    return this.calls.resuming(Service.method.watchTask, { name: this.name, text }, ({ event }) => event.case === 'finished', signal);
  }

  /** Waits until the task is finished or asks a question, at most for `timeoutMs`. Returns the task in its state then. */
  async wait({ timeoutMs = Number.POSITIVE_INFINITY, learning = false, signal }: WaitOptions = {}): Promise<TaskMessage> {
    const end = performance.now() + timeoutMs;
    for (;;) {
      const leftMs = Math.max(1, Math.min(WAIT_MS, end - performance.now()));
      const request = { name: this.name, timeout: durationFromMs(Math.ceil(leftMs)), learning };
      const task = await this.calls.unary(Service.method.waitTask, request, { timeoutMs: leftMs + 10_000, signal });
      const running = task.state === TaskState.QUEUED || task.state === TaskState.RUNNING;
      const learns = learning && task.learning?.state === LearningState.PENDING;
      if ((!running && !learns) || performance.now() >= end) return task;
    }
  }

  /**
   * Waits for the accepted answer.
   *
   * @throws TaskFailedError if the task ended without an accepted answer or asks a question; Error after `timeoutMs`
   */
  async result(options: WaitOptions = {}): Promise<TaskResult> {
    const task = await this.wait(options);
    const { name, state, error, result, question } = task;
    if (state === TaskState.SUCCEEDED && result) return result;
    if (state === TaskState.QUEUED || state === TaskState.RUNNING)
      throw new Error(`${name} is still ${TaskState[state].toLowerCase()} after ${options.timeoutMs} ms`);
    if (state === TaskState.INPUT_REQUIRED)
      throw new TaskFailedError(`${name} asks: ${question?.text}; call answer()`, 'INPUT_REQUIRED', task);
    const stop = StopReason[task.stopReason];
    const why = error?.message || result?.reason || '';
    throw new TaskFailedError(`${name} ${TaskState[state].toLowerCase()} (${stop.toLowerCase()}): ${why}`, error?.code || stop, task);
  }

  /** Stops the task, with its running model call and code. */
  async cancel(): Promise<TaskMessage> {
    return this.calls.unary(Service.method.cancelTask, { name: this.name });
  }

  /** Answers the open question. With `key`: only if that question is open. */
  async answer(text: string, key = ''): Promise<TaskMessage> {
    return this.calls.unary(Service.method.answerTask, { name: this.name, text, key });
  }

  /** The model's prompt in a step, by default in the last step that called the model. */
  async explain(step = ''): Promise<StepExplanation> {
    return this.calls.unary(Service.method.explainStep, { name: this.name, step });
  }
}

/** Tasks of the tenant. */
export class Tasks {
  constructor(private readonly calls: Calls) {}

  /** Submits a task. Once this resolves, the task survives a crash of any service. */
  async submit(prompt: string, options: TaskOptions = {}): Promise<Task> {
    const { tests, ioCases, entryPoint, public: shown, files = {}, training, requestId = newRequestId(), ...fields } = options;
    const spec = {
      ...fields,
      prompt,
      files: Object.entries(files).map(([path, content]) => ({ path, content: bytesOf(content) })),
      mode: training ? Mode.TRAINING : Mode.UNSPECIFIED,
      evaluator: evaluatorOf({ tests, ioCases, entryPoint, public: shown, evaluator: fields.evaluator }),
    };
    const { name } = await this.calls.unary(Service.method.submitTask, { spec, requestId });
    return new Task(this.calls, name);
  }

  /** A task by its name, without a call to the gateway. */
  get(name: string): Task {
    return new Task(this.calls, name.startsWith('tasks/') ? name : `tasks/${name}`);
  }

  /** All tasks, newest first. With `state` or `labels`: only tasks in this state and with all of these labels. */
  list({ state, labels }: { readonly state?: TaskState; readonly labels?: Readonly<Record<string, string>> } = {}) {
    return this.calls.pages(Service.method.listTasks, { state, labels: { ...labels } }, ({ tasks }) => tasks);
  }

  /** The cost of the tenant's model calls in these days (default 7), by day, agent and purpose. */
  async usage({ days, agent }: { readonly days?: number; readonly agent?: string } = {}): Promise<UsageReport> {
    return this.calls.unary(Service.method.getUsage, { days, agent });
  }
}
