import { ListTasksResponseSchema, type Task, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { useRead } from '../api/client.js';
import { Link, useQueryValues } from '../ui/router.js';
import { ChoiceFilter, type Column, ReadList, TextFilter } from '../ui/list.js';
import { duration, firstLine, Scripted, When } from '../ui/text.js';
import { elapsedMs, idOf, State, STATES, tokensOf, VerdictOf } from './task-words.js';

const { RUNNING, QUEUED, INPUT_REQUIRED, SUCCEEDED, FAILED, CANCELLED } = TaskState;
const CHOICES = [RUNNING, QUEUED, INPUT_REQUIRED, SUCCEEDED, FAILED, CANCELLED].map(
  (state) => [`TASK_STATE_${TaskState[state]}`, STATES[state][0]] as const,
);

const COLUMNS: ReadonlyArray<Column<Task>> = [
  {
    title: 'Task',
    prose: true,
    cell: ({ name, spec }) => <Link to={`/tasks/${idOf(name)}`}>{firstLine(spec?.prompt ?? name, 90)}</Link>,
  },
  { title: 'State', cell: ({ state }) => <State state={state} /> },
  {
    title: 'Verdict',
    cell: ({ result }) =>
      result && (
        <>
          <VerdictOf {...result} /> <Scripted when={result.scripted} />
        </>
      ),
  },
  { title: 'Agent', cell: ({ spec }) => spec?.agent || 'default' },
  { title: 'Attempts', number: true, cell: ({ usage }) => usage?.attempts },
  { title: 'Model calls', number: true, cell: ({ usage }) => usage?.modelCalls },
  { title: 'Tokens', number: true, cell: ({ usage }) => tokensOf(usage).toLocaleString('en') },
  { title: 'Took', number: true, cell: (task) => (elapsedMs(task) === undefined ? '' : duration(elapsedMs(task)!)) },
  { title: 'Submitted', cell: ({ createTime }) => <When at={createTime} /> },
];

/** Turns "team=a, env=b" into the query parameter for labels, a JSON object. */
const labelsOf = (text: string) => {
  const pairs = text.split(',').flatMap((pair) => (pair.includes('=') ? [pair.trim().split('=', 2)] : []));
  return pairs.length === 0 ? undefined : JSON.stringify(Object.fromEntries(pairs));
};

export function TaskListPage() {
  const { state, labels, page } = useQueryValues('state', 'labels', 'page');
  const query = { page_size: 50, page_token: page, state, labels: labelsOf(labels) };
  const read = useRead(ListTasksResponseSchema, '/v1/tasks', query, { everyMs: 3_000 });
  return (
    <>
      <h1>Tasks</h1>
      <div className="filters">
        <ChoiceFilter name="state" label="State" options={[['', 'all'], ...CHOICES]} />
        <TextFilter name="labels" label="Labels" hint="team=a, env=b" isSearch />
      </div>
      <ReadList
        label="tasks"
        read={read}
        of={({ tasks }) => tasks}
        keyOf={({ name }) => name}
        columns={COLUMNS}
        empty={<NoTasks filtered={state + labels !== ''} />}
      />
    </>
  );
}

const NoTasks = ({ filtered }: { readonly filtered: boolean }) =>
  filtered ? (
    <p>No task matches these filters. Clear them to see all.</p>
  ) : (
    <p>
      There is no task yet. Submit one: <code>./etude tasks submit --prompt "Write a function square(n)." --watch</code>
    </p>
  );
