import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type Learning,
  LearningState,
  type StepExplanation,
  StopReason,
  type Task,
  type TaskEvent,
  type TaskResult,
  TaskSpecSchema,
  TaskState,
  type Usage,
  Verdict,
} from '@etude/contracts/gen/etude/v1/tasks_pb';
import { firstLine, plural, table } from '../output.js';
import { SCRIPTED, when, wordRows } from '../show.js';

const stateWord = (state: TaskState) => TaskState[state].toLowerCase();
export const verdictWord = (verdict: Verdict) => Verdict[verdict];
export const stopWord = (reason: StopReason) => StopReason[reason].toLowerCase();
const mark = (scripted: boolean) => (scripted ? [SCRIPTED] : []);

const tokensOf = (usage: Usage | undefined) => Number((usage?.inputTokens ?? 0n) + (usage?.outputTokens ?? 0n));

/** Wall time from acceptance to the end, in ms; 0 while it runs. */
export function elapsedMs({ createTime, endTime }: Task): number {
  return createTime && endTime ? timestampDate(endTime).getTime() - timestampDate(createTime).getTime() : 0;
}

function callsText(usage: Usage): string {
  const parts = [plural(usage.modelCalls, 'model call'), plural(tokensOf(usage), 'token')];
  if (usage.costUsd > 0) parts.push(`$${usage.costUsd.toFixed(4)}`);
  return parts.join(', ');
}

/** The model calls of a task and of learning from it, added up. */
export function allCalls({ usage, learning }: Partial<Pick<Task, 'usage' | 'learning'>>) {
  const both = [usage, learning?.usage].filter((one) => one !== undefined);
  const sum = (pick: (one: Usage) => number) => both.reduce((total, one) => total + pick(one), 0);
  return {
    modelCalls: sum((one) => one.modelCalls),
    inputTokens: sum((one) => Number(one.inputTokens)),
    outputTokens: sum((one) => Number(one.outputTokens)),
    costUsd: sum((one) => one.costUsd),
  };
}

function learningText(learning: Learning | undefined): string {
  if (!learning || learning.state <= LearningState.NONE) return '';
  const { state, usage, error } = learning;
  const parts = [LearningState[state].toLowerCase()];
  if (usage) parts.push(`· ${callsText(usage)}`);
  if (error) parts.push(`· ${error.code}: ${error.message}`);
  return parts.join(' ');
}

type Judged = Pick<TaskResult, 'verdict' | 'casesPassed' | 'casesTotal'>;

/** The verdict with its cases. Without an evaluator, code that ran to its end has no verdict. */
function judgedText({ verdict, casesPassed, casesTotal }: Judged): string {
  if (verdict === Verdict.UNSPECIFIED) return 'not judged';
  return casesTotal === 0 ? verdictWord(verdict) : `${verdictWord(verdict)} ${casesPassed}/${casesTotal}`;
}

export function outcomeLine(task: Task): string {
  const { result, error } = task;
  const parts = [stateWord(task.state)];
  const reason = stopWord(task.stopReason);
  const isTold = task.stopReason === StopReason.UNSPECIFIED || reason === parts[0] || result?.verdict === Verdict.UNSPECIFIED;
  if (!isTold) parts.push(`(${reason})`);
  if (result) parts.push(judgedText(result));
  if (result?.skill) parts.push(`by ${result.skill}`);
  if (task.usage) parts.push(`· ${plural(task.usage.attempts, 'attempt')}, ${callsText(task.usage)}`);
  if (error) parts.push(`· ${error.code}: ${error.message}`);
  return [...parts, ...mark(result?.scripted === true)].join(' ');
}

export function unjudgedAnswer({ spec, result }: Task): string {
  return spec?.evaluator?.kind.case === 'none' ? (result?.output.trimEnd() ?? '') : '';
}

export function taskText(task: Task): string {
  const { spec, result, question, cancelRequested, endTime } = task;
  const rows = [
    ['task', task.name],
    ['state', outcomeLine(task)],
    ['learning', learningText(task.learning)],
    ['question', question?.text ?? ''],
    ['prompt', firstLine(spec?.prompt ?? '', 100)],
    ...(spec === undefined ? [] : wordRows(TaskSpecSchema, spec, ['prompt', 'referenceSolution'])),
    ['created', when(task.createTime)],
    ['ended', cancelRequested && !endTime ? 'asked to stop' : when(endTime)],
    ['reason', firstLine(result?.reason ?? '', 100)],
    ['model', result?.model ?? ''],
  ];
  const parts = [table(rows.filter(([, value]) => value !== ''))];
  if (result?.output) parts.push(`output:\n${result.output.trimEnd()}`);
  if (result?.code) parts.push(`code:\n${result.code.trimEnd()}`);
  return parts.join('\n\n');
}

export function explanationText({ step, sections, totalTokens, steps }: StepExplanation): string {
  const shown = sections.map(({ role, title, text, tokens, sources }) => {
    const head = [`${role}${title && ` · ${title}`}`, plural(tokens, 'token'), ...sources].join(' · ');
    return `--- ${head}\n${text.trim()}`;
  });
  return [`${step} asked the model with ${plural(totalTokens, 'token')}`, ...shown, `steps: ${steps.join(' ')}`].join('\n\n');
}

/** One line for an event of a watch. '' if a later event has the same information. */
export function eventLine({ event }: TaskEvent): string {
  switch (event.case) {
    case 'stateChanged':
      return event.value.state > TaskState.RUNNING ? '' : stateWord(event.value.state);
    case 'attemptStarted':
      // Attempt 0 runs a skill. Attempts with newly written code count from 1.
      return event.value.attempt === 0 ? 'trying a skill' : `attempt ${event.value.attempt}`;
    case 'stepFinished': {
      const { step, summary, durationMs, usage, scripted } = event.value;
      const tokens = tokensOf(usage) > 0 ? [plural(tokensOf(usage), 'token')] : [];
      return [
        `  ${step.padEnd(14)} ${`${durationMs} ms`.padStart(8)}`,
        [firstLine(summary, 90), ...tokens].join(' · '),
        ...mark(scripted),
      ].join('  ');
    }
    case 'attemptFinished': {
      const { attempt, verdict, reason, skill } = event.value;
      const by = skill ? ` by ${skill}` : '';
      const why = reason && verdict > Verdict.AC ? `: ${firstLine(reason, 90)}` : '';
      return `  ${attempt === 0 ? 'skill' : `attempt ${attempt}`} ${judgedText(event.value)}${by}${why}`;
    }
    case 'question':
      return `  asks ${event.value.key}: ${event.value.text}`;
    case 'modelText':
      return event.value.text;
    case 'workerChanged':
      // The epoch doesn't say whether another worker or the same worker retries the task.
      return `  retried by a worker (epoch ${event.value.epoch})`;
    case 'finished':
      return event.value.task ? outcomeLine(event.value.task) : 'finished';
    default:
      return '  (an event unknown to this version of etude)';
  }
}
