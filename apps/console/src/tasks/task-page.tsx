import { type Task, type TaskEvent, TaskEventSchema, TaskSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { type ApiError, follow, useApi, useRead } from '../api/client.js';
import { Link, type PageProps, useQueryValue } from '../ui/router.js';
import { Code, Output } from '../ui/code.js';
import { Failed, Loaded } from '../ui/states.js';
import { Badge, counted, Details, duration, firstLine, Scripted, Section, When } from '../ui/text.js';
import { Question, TaskActions } from './task-actions.js';
import { elapsedMs, idOf, isFinal, State, tokensOf, VerdictOf } from './task-words.js';
import { TimeLine, Trace } from './trace.js';
import { StepPanel } from './step-panel.js';

export function TaskPage({ name: id }: PageProps) {
  const read = useRead(TaskSchema, `/v1/tasks/${id}`);
  const watched = useTaskEvents(id);
  const client = useQueryClient();
  const { events, finished } = watched;
  const last = events.findLast(({ event }) => event.case !== 'stepFinished' && event.case !== 'attemptStarted')?.resumeToken;
  // Reads the task again after an event that changes more than steps.
  useEffect(() => {
    if (last !== undefined) void client.invalidateQueries({ queryKey: [`/v1/tasks/${id}`] });
  }, [client, id, last]);
  return <Loaded read={read}>{(task) => <Shown task={finished ?? task} watched={watched} />}</Loaded>;
}

function Shown({ task, watched }: { readonly task: Task; readonly watched: Watched }) {
  const { events, live, isConnected, error } = watched;
  const [step, choose] = useQueryValue('step');
  const id = idOf(task.name);
  const isLive = !isFinal(task.state);
  const chosen = step || lastShown(events);
  return (
    <>
      <h1>
        {firstLine(task.spec?.prompt ?? '', 120)} <State state={task.state} />
      </h1>
      <TaskActions task={task} />
      {task.question && <Question task={id} question={task.question} />}
      <Facts task={task} />
      {error && <Failed error={error} />}
      {isLive && !isConnected && <p className="quiet">The connection is lost. The page reconnects automatically.</p>}
      <Section title="Trace" aside={<span className="quiet">{counted(events.length, 'event')}</span>}>
        <TimeLine events={events} />
        <div className="columns">
          <Trace events={events} chosen={chosen} onChoose={choose} isLive={isLive} />
          <div>
            {live && (
              <>
                <h2>{live.step} is being written</h2>
                <Output text={live.text} label="What the model writes" />
              </>
            )}
            {chosen !== '' && <StepPanel key={chosen} task={id} step={chosen} />}
          </div>
        </div>
      </Section>
      {task.result && <Answer task={task} />}
      <Section title="Task">
        <Output text={task.spec?.prompt ?? ''} label="Prompt of the task" />
        <p className="quiet">{casesText(task)}</p>
      </Section>
    </>
  );
}

/** The step to show if none is chosen: the last step with results. */
const lastShown = (events: readonly TaskEvent[]) =>
  events.flatMap(({ event }) => (event.case === 'stepFinished' && !QUIET_KINDS.has(event.value.kind) ? [event.value.step] : [])).at(-1) ??
  '';
const QUIET_KINDS = new Set(['record', 'sandbox', 'learn']);

function Facts({ task }: { readonly task: Task }) {
  const { name, spec, usage, result, error, learning, createTime } = task;
  const took = elapsedMs(task);
  const labels = Object.entries(spec?.labels ?? {});
  const skill = result?.skill ? result.skill.split('/')[1]! : '';
  return (
    <Details
      rows={[
        ['Task', <code key="name">{name}</code>],
        ['Agent', spec?.agent || 'default'],
        ['Labels', labels.length > 0 && labels.map(([key, value]) => <Badge key={key}>{`${key}=${value}`}</Badge>)],
        ['Submitted', <When key="when" at={createTime} />],
        ['Took', took === undefined ? '' : duration(took)],
        ['Verdict', result && <VerdictOf key="verdict" {...result} />],
        ['Answered by', skill ? <Link key="skill" to={`/skills/${skill}`}>{`skill ${skill}`}</Link> : result?.model],
        ['Answers', result?.scripted && <Scripted key="scripted" />],
        ['Attempts', usage?.attempts],
        ['Model calls', usage?.modelCalls],
        ['Tokens', tokensOf(usage).toLocaleString('en')],
        ['Cost', usage?.costUsd ? `$${usage.costUsd.toFixed(4)}` : ''],
        ['Error', error && `${error.code}: ${error.message}`],
        ['Learning', learning?.error ? `${learning.error.code}: ${learning.error.message}` : ''],
      ]}
    />
  );
}

const Answer = ({ task: { result } }: { readonly task: Task }) => (
  <Section title="Answer">
    {result?.reason && <p>{result.reason}</p>}
    {result?.code && <Code code={result.code} label="Code of the answer" />}
    {result?.output && <Output text={result.output} label="Output of the answer" />}
  </Section>
);

/** How the answer is judged. Hidden cases are counted and never shown. */
function casesText({ spec }: Task): string {
  const kind = spec?.evaluator?.kind;
  if (kind?.case !== 'ioCases' && kind?.case !== 'functionCases') return `Judged by: ${kind?.case ?? 'nobody'}.`;
  const all = kind.value.cases.length;
  const open = (kind.value.cases as ReadonlyArray<{ readonly public: boolean }>).filter((one) => one.public).length;
  return `Judged by ${counted(open, 'public case')} and ${counted(all - open, 'hidden case')}.`;
}

interface Watched {
  readonly events: readonly TaskEvent[];
  readonly live: { readonly step: string; readonly text: string } | null;
  readonly isConnected: boolean;
  readonly error: ApiError | null;
  /** The finished task, once its last event has arrived. */
  readonly finished: Task | undefined;
}

const NOTHING: Watched = { events: [], live: null, isConnected: true, error: null, finished: undefined };

const STREAM = {
  schema: TaskEventSchema,
  ask: { query: { text: true } },
  isLast: ({ event }: TaskEvent) => event.case === 'finished',
};

/** Adds new events. The model's live text is kept until its step has finished. */
function withEvents(before: Watched, added: readonly TaskEvent[]): Watched {
  let { live, finished } = before;
  const events = [...before.events];
  for (const one of added) {
    const { event } = one;
    if (event.case === 'modelText') {
      const { step, text } = event.value;
      live = { step, text: live?.step === step ? live.text + text : text };
      continue;
    }
    if (event.case === 'stepFinished' && event.value.step === live?.step) live = null;
    if (event.case === 'finished') finished = event.value.task;
    events.push(one);
  }
  return { ...before, events, live, finished };
}

/** All events of a task, live. Events that arrive within one frame are shown together. */
function useTaskEvents(id: string): Watched {
  const api = useApi();
  const [watched, setWatched] = useState(NOTHING);
  const waiting = useRef<TaskEvent[]>([]);
  useEffect(() => {
    const gone = new AbortController();
    const { signal } = gone;
    let frame = 0;
    setWatched(NOTHING);
    const onConnected = (isConnected: boolean) => setWatched((before) => ({ ...before, isConnected }));
    const show = () => {
      frame = 0;
      const added = waiting.current.splice(0);
      setWatched((before) => withEvents(before, added));
    };
    const watch = async () => {
      for await (const event of follow(api, { ...STREAM, path: `/v1/tasks/${id}:watch`, signal, onConnected })) {
        waiting.current.push(event);
        frame ||= requestAnimationFrame(show);
      }
    };
    watch().catch((error: ApiError) => setWatched((before) => ({ ...before, error })));
    return () => {
      gone.abort();
      cancelAnimationFrame(frame);
      waiting.current = [];
    };
  }, [api, id]);
  return watched;
}
