import { clone, toJson } from '@bufbuild/protobuf';
import {
  EvaluatorSchema,
  Mode,
  type Question as AskedQuestion,
  type Task,
  TaskSchema,
  type TaskSpec,
  TaskSpecSchema,
} from '@etude/contracts/gen/etude/v1/tasks_pb';
import { useState } from 'react';
import { requestId, useAct } from '../api/client.js';
import { go } from '../ui/router.js';
import { Failed } from '../ui/states.js';
import { ActButton, Button, Copy } from '../ui/button.js';
import { submitting, When } from '../ui/text.js';
import { idOf, isFinal } from './task-words.js';

const jsonOf = (spec: TaskSpec) => toJson(TaskSpecSchema, spec, { useProtoFieldName: true });

export function TaskActions({ task }: { readonly task: Task }) {
  const id = idOf(task.name);
  const cancel = useAct((api) => api.call(TaskSchema, 'POST', `/v1/tasks/${id}:cancel`, { body: { request_id: requestId() } }));
  const retry = useAct(async (api) => {
    const body = { spec: jsonOf(task.spec!), request_id: requestId() };
    const again = await api.call(TaskSchema, 'POST', '/v1/tasks', { body });
    go(`/tasks/${idOf(again.name)}`);
  });
  const error = cancel.error ?? retry.error;
  const { cancelRequested: asked } = task;
  return (
    <>
      <div className="buttons">
        {!isFinal(task.state) && (
          <ActButton act={cancel} input={null} text={asked ? 'Being cancelled' : 'Cancel'} tone="danger" disabled={asked} />
        )}
        <ActButton act={retry} input={null} text="Submit again" />
        <Copy content={cliCall(task)} text="Copy as command" />
        <Copy content={pythonCall(task)} text="Copy as Python" />
      </div>
      {error && <Failed error={error} />}
    </>
  );
}

/** The task without its reference solution and hidden tests. */
function shownSpec(spec: TaskSpec): TaskSpec {
  const shown = clone(TaskSpecSchema, spec);
  shown.referenceSolution = '';
  const kind = shown.evaluator?.kind;
  if (kind?.case === 'ioCases' || kind?.case === 'functionCases') {
    const open = (kind.value.cases as ReadonlyArray<{ readonly public: boolean }>).filter((one) => one.public);
    kind.value.cases = open as never;
    if (open.length === 0) delete shown.evaluator;
  } else if (kind?.case === 'named' || (kind?.case === 'pythonTests' && !kind.value.public)) delete shown.evaluator;
  return shown;
}

const cliCall = ({ spec }: Task) =>
  `./etude tasks submit --watch --spec - <<'SPEC'\n${JSON.stringify(jsonOf(shownSpec(spec!)), null, 2)}\nSPEC\n`;

/** Writes texts as JSON strings, which are Python literals too. */
const pythonCall = ({ spec }: Task) => {
  const { prompt, agent, user, mode, evaluator } = shownSpec(spec!);
  const parse = evaluator && `Parse(${JSON.stringify(JSON.stringify(toJson(EvaluatorSchema, evaluator)))}, Evaluator())`;
  const named = { agent: agent && JSON.stringify(agent), user: user && JSON.stringify(user), training: mode === Mode.TRAINING && 'True' };
  const given = Object.entries({ ...named, evaluator: parse }).flatMap(([name, value]) => (value ? [`${name}=${value}`] : []));
  return [
    'from etude import Etude',
    ...(parse ? ['from etude.v1.tasks_pb2 import Evaluator', 'from google.protobuf.json_format import Parse'] : []),
    '',
    `task = Etude().tasks.submit(${[JSON.stringify(prompt), ...given].join(', ')})`,
    'for event in task.watch():',
    '    print(event)',
    '',
  ].join('\n');
};

export function Question({ task, question }: { readonly task: string; readonly question: AskedQuestion }) {
  const [text, setText] = useState('');
  const answer = useAct((api) =>
    api.call(TaskSchema, 'POST', `/v1/tasks/${task}:answer`, { body: { key: question.key, text, request_id: requestId() } }),
  );
  return (
    <form className="note warn" onSubmit={submitting(() => answer.mutate(undefined))}>
      <strong>The task asks you</strong>
      <p>{question.text}</p>
      <label className="field">
        <span>
          Your answer, until <When at={question.expireTime} />
        </span>
        <textarea rows={3} value={text} onChange={({ target }) => setText(target.value)} />
      </label>
      <Button text="Answer" tone="primary" disabled={text.trim() === '' || answer.isPending} />
      {answer.error && <Failed error={answer.error} />}
    </form>
  );
}
