import { fromJson, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, ListValueSchema, timestampFromMs, ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  Comparison,
  type EvaluatorSchema,
  type LimitsSchema,
  Mode,
  StopReason,
  type TaskEventSchema,
  type TaskSchema,
  type TaskSpecSchema,
  TaskState,
  Verdict,
} from '@etude/contracts/gen/etude/v1/tasks_pb';
import { taskName } from '@etude/contracts/ids';
import { sandboxLimitsMessage } from '@etude/contracts/sandbox-wire';
import type {
  Evaluator,
  Limits,
  StopReason as Stop,
  TaskEvent,
  TaskRecord,
  TaskResult,
  TaskSpec,
  TaskState as State,
  Usage,
  Verdict as Judged,
} from '@etude/contracts/task';
import { resumeToken } from '../wire/names.js';
import { timestampOf } from '../wire/time.js';

type TaskInit = MessageInitShape<typeof TaskSchema>;
type EventInit = MessageInitShape<typeof TaskEventSchema>;

export const STATES: Readonly<Record<State, TaskState>> = {
  queued: TaskState.QUEUED,
  running: TaskState.RUNNING,
  succeeded: TaskState.SUCCEEDED,
  failed: TaskState.FAILED,
  cancelled: TaskState.CANCELLED,
};
const STOPS: Readonly<Record<Stop, StopReason>> = {
  solved: StopReason.SOLVED,
  attempts: StopReason.ATTEMPTS,
  steps: StopReason.STEPS,
  wall_time: StopReason.WALL_TIME,
  model_tokens: StopReason.MODEL_TOKENS,
  cost: StopReason.COST,
  cancelled: StopReason.CANCELLED,
  error: StopReason.ERROR,
};
const VERDICTS: Readonly<Record<Judged, Verdict>> = { AC: Verdict.AC, WA: Verdict.WA, TLE: Verdict.TLE, MLE: Verdict.MLE, RE: Verdict.RE };
const COMPARISONS = { whitespace: Comparison.WHITESPACE, exact: Comparison.EXACT, numeric: Comparison.NUMERIC } as const;

/** "sum@3" to "skills/sum/versions/3". */
function skillVersionName(skill: string | null): string {
  const at = skill?.lastIndexOf('@') ?? -1;
  return skill === null || at < 0 ? '' : `skills/${skill.slice(0, at)}/versions/${skill.slice(at + 1)}`;
}

const usageMessage = (usage: Usage) => ({ ...usage, inputTokens: BigInt(usage.inputTokens), outputTokens: BigInt(usage.outputTokens) });

function evaluatorMessage(evaluator: Evaluator): MessageInitShape<typeof EvaluatorSchema> {
  switch (evaluator.kind) {
    case 'io_cases':
      return {
        kind: {
          case: 'ioCases',
          value: { cases: evaluator.cases, comparison: COMPARISONS[evaluator.comparison], tolerance: evaluator.tolerance },
        },
      };
    case 'function_cases': {
      const cases = evaluator.cases.map((one) => ({
        args: fromJson(ListValueSchema, one.args),
        kwargs: one.kwargs,
        expected: fromJson(ValueSchema, one.expected),
        public: one.public,
      }));
      return { kind: { case: 'functionCases', value: { entryPoint: evaluator.entryPoint, cases, tolerance: evaluator.tolerance } } };
    }
    case 'python_tests': {
      const { entryPoint, tests, setup, public: shown } = evaluator;
      return { kind: { case: 'pythonTests', value: { entryPoint, tests, setup, public: shown } } };
    }
    case 'command': {
      const { command, expectedExitCode, expectedStdout, comparison, answerPath } = evaluator;
      return {
        kind: { case: 'command', value: { command, expectedExitCode, expectedStdout, comparison: COMPARISONS[comparison], answerPath } },
      };
    }
    case 'none':
      return { kind: { case: 'none', value: {} } };
    default:
      return evaluator satisfies never;
  }
}

function limitsMessage(limits: Limits): MessageInitShape<typeof LimitsSchema> {
  return {
    attempts: limits.attemptsMax,
    steps: limits.stepsMax,
    wallTime: durationFromMs(limits.wallMs),
    modelTokens: BigInt(limits.modelTokensMax),
    costUsd: limits.costUsdMax ?? 0,
    sandbox: sandboxLimitsMessage(limits.sandbox),
  };
}

function specMessage(spec: TaskSpec): MessageInitShape<typeof TaskSpecSchema> {
  return {
    agent: spec.agent,
    user: spec.user ?? '',
    prompt: spec.prompt,
    files: spec.files.map(({ path, contentBase64 }) => ({ path, content: Buffer.from(contentBase64, 'base64') })),
    mode: spec.mode === 'training' ? Mode.TRAINING : Mode.INFERENCE,
    evaluator: evaluatorMessage(spec.evaluator),
    referenceSolution: spec.referenceSolution ?? '',
    limits: limitsMessage(spec.limits),
    strategy: spec.strategy,
    memory: spec.memory,
    priority: spec.priority,
    labels: spec.labels,
    untrusted: spec.untrusted ?? false,
  };
}

function resultMessage(result: TaskResult): TaskInit['result'] {
  return { ...result, verdict: VERDICTS[result.verdict], skill: skillVersionName(result.skill), model: result.model ?? '' };
}

/** A task as callers see it, its spec with the defaults that apply. */
export function taskMessage(record: TaskRecord): TaskInit {
  return {
    name: taskName(record.id),
    spec: specMessage(record.spec),
    state: STATES[record.state],
    stopReason: record.stopReason === null ? StopReason.UNSPECIFIED : STOPS[record.stopReason],
    result: record.result ? resultMessage(record.result) : undefined,
    usage: usageMessage(record.usage),
    createTime: timestampFromMs(record.createdAt),
    updateTime: timestampFromMs(record.updatedAt),
    endTime: timestampOf(record.endedAt),
    etag: String(record.revision),
    error: record.error ?? undefined,
    cancelRequested: record.cancelRequested,
  };
}

function eventBody(event: Exclude<TaskEvent, { type: 'finished' }>): NonNullable<EventInit['event']> {
  switch (event.type) {
    case 'state':
      return { case: 'stateChanged', value: { state: STATES[event.state] } };
    case 'worker':
      return { case: 'workerChanged', value: { epoch: event.epoch } };
    case 'attempt_started':
      return { case: 'attemptStarted', value: { attempt: event.attempt } };
    case 'step': {
      const { step, attempt, kind, summary, durationMs, usage, scripted } = event;
      return {
        case: 'stepFinished',
        value: { step, attempt, kind, summary, durationMs: BigInt(Math.round(durationMs)), usage: usageMessage(usage), scripted },
      };
    }
    case 'attempt_finished': {
      const { attempt, verdict, reason, casesPassed, casesTotal, skill } = event;
      return {
        case: 'attemptFinished',
        value: { attempt, verdict: VERDICTS[verdict], reason, casesPassed, casesTotal, skill: skillVersionName(skill) },
      };
    }
    default:
      return event satisfies never;
  }
}

export interface StoredEvent {
  readonly id: string;
  readonly event: TaskEvent;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** @param task the finished task; asked for with the `finished` event only */
export function eventMessage(taskId: string, { id, event, at }: StoredEvent, task: TaskRecord | null): EventInit {
  const body =
    event.type === 'finished' ? ({ case: 'finished', value: task ? { task: taskMessage(task) } : {} } as const) : eventBody(event);
  return { resumeToken: resumeToken(taskId, id), time: timestampFromMs(at), event: body };
}
