import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type Task, type TaskResult, TaskState, type Usage, Verdict } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Badge, type Tone } from '../ui/text.js';

export const STATES: Readonly<Record<TaskState, readonly [string, Tone]>> = {
  [TaskState.UNSPECIFIED]: ['unknown', 'plain'],
  [TaskState.QUEUED]: ['queued', 'plain'],
  [TaskState.RUNNING]: ['running', 'busy'],
  [TaskState.SUCCEEDED]: ['succeeded', 'good'],
  [TaskState.FAILED]: ['failed', 'bad'],
  [TaskState.CANCELLED]: ['cancelled', 'plain'],
  [TaskState.INPUT_REQUIRED]: ['asks you', 'warn'],
};

export const isFinal = (state: TaskState) => [TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED].includes(state);

export function State({ state }: { readonly state: TaskState }) {
  const [word, tone] = STATES[state] ?? STATES[TaskState.UNSPECIFIED];
  return <Badge tone={tone}>{word}</Badge>;
}

type Judged = Pick<TaskResult, 'verdict' | 'casesPassed' | 'casesTotal'>;

export function VerdictOf({ verdict, casesPassed, casesTotal }: Judged) {
  if (verdict === Verdict.UNSPECIFIED) return <Badge>not judged</Badge>;
  const cases = casesTotal === 0 ? '' : ` ${casesPassed}/${casesTotal}`;
  return (
    <Badge tone={verdict === Verdict.AC ? 'good' : 'bad'}>
      {Verdict[verdict]}
      {cases}
    </Badge>
  );
}

export const tokensOf = (usage: Usage | undefined) => Number((usage?.inputTokens ?? 0n) + (usage?.outputTokens ?? 0n));

/** Time from acceptance to the end, in ms; undefined while it runs. */
export const elapsedMs = ({ createTime, endTime }: Task) =>
  createTime && endTime ? timestampDate(endTime).getTime() - timestampDate(createTime).getTime() : undefined;

export const idOf = (name: string) => name.slice(name.indexOf('/') + 1);
