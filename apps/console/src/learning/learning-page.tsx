import { type ItemLift, LiftSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { ListTasksResponseSchema, type Task, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { useRead } from '../api/client.js';
import { placeOfRecord } from '../memory/places.js';
import { Chart, Interval } from '../ui/chart.js';
import { type Column, List, TextFilter } from '../ui/list.js';
import { Link, useQueryValue } from '../ui/router.js';
import { Empty, Loaded } from '../ui/states.js';
import { Badge, counted, percent, Section } from '../ui/text.js';
import { timestampMs } from '@bufbuild/protobuf/wkt';

const TASKS_MAX = 1_000;
const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'short' });

const CURVES: ReadonlyArray<readonly [title: string, of: (mean: Window) => number, text: (value: number) => string, top?: number]> = [
  ['Right at the first attempt or by a skill', ({ firstRight }) => firstRight, percent, 1],
  ['Model calls per task, with learning', ({ modelCalls }) => modelCalls, (value) => value.toFixed(1)],
  ['Tokens per task, with learning', ({ tokens }) => tokens, (value) => Math.round(value).toLocaleString('en')],
  ['US dollars per task, with learning', ({ usd }) => usd, (value) => `$${value.toFixed(4)}`],
];

export function LearningPage() {
  const [agent] = useQueryValue('agent');
  return (
    <>
      <h1>Learning</h1>
      <div className="filters">
        <TextFilter name="agent" label="Agent" isSearch />
      </div>
      <Curves agent={agent} />
      <Section title="Effect of memory">
        <p>
          Each rollout withholds some memory items at random. The lift says how much more often the first attempt was right with an item
          than without it, with a 95% interval.
        </p>
        <Lifts agent={agent} />
      </Section>
    </>
  );
}

function Curves({ agent }: { readonly agent: string }) {
  const read = useRead(ListTasksResponseSchema, '/v1/tasks', { page_size: TASKS_MAX });
  return (
    <Loaded read={read}>
      {({ tasks }) => {
        const ended = endedTasks(tasks.filter(({ spec }) => agent === '' || spec?.agent === agent));
        const windows = windowsOf(ended);
        if (windows.length < 2) return <Empty>There are too few finished tasks for a curve. Come back after some more.</Empty>;
        const aside = `means over ${windowOf(ended.length)} tasks; ${counted(ended.length, 'task')}, the newest ${TASKS_MAX} at most`;
        return (
          <Section title="Over time" aside={<span className="quiet">{aside}</span>}>
            <div className="charts">
              {CURVES.map(([title, of, text, top]) => (
                <Chart
                  key={title}
                  title={title}
                  values={windows.map(of)}
                  labelOf={(at) => date.format(windows[at]!.at)}
                  text={text}
                  {...(top === undefined ? {} : { top })}
                />
              ))}
            </div>
          </Section>
        );
      }}
    </Loaded>
  );
}

const points = (value: number) => `${value > 0 ? '+' : ''}${Math.round(value * 100)} points`;
const tokens = (value: number) => `${value > 0 ? '+' : ''}${Math.round(value).toLocaleString('en')}`;

const FIGURES: ReadonlyArray<Column<ItemLift>> = [
  { title: 'Shown', number: true, cell: ({ shown, shownRight }) => `${shownRight} of ${shown} right` },
  { title: 'Withheld', number: true, cell: ({ withheld, withheldRight }) => `${withheldRight} of ${withheld} right` },
  { title: 'Lift', cell: ({ success }) => (success ? <Interval {...success} text={points} /> : 'not measured yet') },
  { title: 'Tokens', cell: ({ tokens: effect }) => (effect ? <Interval {...effect} text={tokens} /> : '') },
];
const LAYER: Column<ItemLift> = { title: 'Layer', cell: ({ layer }) => layer || 'all memory' };
const ITEM: Column<ItemLift> = {
  title: 'Item',
  cell: ({ layer, kind, id, agent, harmful }) => (
    <>
      <Link to={placeOfRecord(layer, kind, id, agent)}>{`${kind} ${id}`}</Link> {harmful && <Badge tone="bad">harmful</Badge>}
    </>
  ),
};

function Lifts({ agent }: { readonly agent: string }) {
  const read = useRead(LiftSchema, '/v1/memory/lift', { agent });
  return (
    <Loaded read={read}>
      {({ memory, layers, items }) => (
        <>
          <List
            label="lift by layer"
            items={[...(memory ? [memory] : []), ...layers]}
            keyOf={({ layer }) => layer}
            columns={[LAYER, ...FIGURES]}
            empty={<p>Nothing was measured.</p>}
          />
          <h3>By item</h3>
          <List
            label="lift by item"
            items={items}
            keyOf={({ kind, id }) => `${kind} ${id}`}
            columns={[ITEM, ...FIGURES]}
            empty={<p>No item was both shown and withheld ten times yet. ETUDE_RECALL_WITHHOLD_PROBABILITY sets how often.</p>}
          />
        </>
      )}
    </Loaded>
  );
}

/** Averages over one task and the tasks that were submitted just before it. */
interface Window {
  /** When the task was submitted, in ms since 1970. */
  readonly at: number;
  /** Share of tasks that were solved at the first attempt, or by a skill. */
  readonly firstRight: number;
  /** Per task, including learning from it. */
  readonly modelCalls: number;
  readonly tokens: number;
  readonly usd: number;
}

/** Most points of a curve. More points couldn't be told apart. */
const POINTS_MAX = 200;

/** The number of tasks in each mean. */
const windowOf = (tasks: number) => Math.min(50, Math.max(3, Math.ceil(tasks / 8)));

function endedTasks(tasks: readonly Task[]): Task[] {
  const ended = tasks.filter(({ state, createTime }) => createTime && (state === TaskState.SUCCEEDED || state === TaskState.FAILED));
  return ended.toSorted((a, b) => timestampMs(a.createTime!) - timestampMs(b.createTime!));
}

/** @param tasks ended tasks, oldest first */
function windowsOf(tasks: readonly Task[]): Window[] {
  const size = windowOf(tasks.length);
  const step = Math.ceil(tasks.length / POINTS_MAX);
  const ends = [...tasks.keys()].filter((at) => at >= size - 1 && (tasks.length - 1 - at) % step === 0);
  return ends.map((at) => meansOf(tasks.slice(at - size + 1, at + 1)));
}

function meansOf(tasks: readonly Task[]): Window {
  const usages = tasks.flatMap(({ usage, learning }) => [usage, learning?.usage].filter((one) => one !== undefined));
  const mean = (of: (usage: (typeof usages)[number]) => number) => usages.reduce((sum, usage) => sum + of(usage), 0) / tasks.length;
  const right = tasks.filter(({ state, usage }) => state === TaskState.SUCCEEDED && (usage?.attempts ?? 0) <= 1);
  return {
    at: timestampMs(tasks.at(-1)!.createTime!),
    firstRight: right.length / tasks.length,
    modelCalls: mean(({ modelCalls }) => modelCalls),
    tokens: mean(({ inputTokens, outputTokens }) => Number(inputTokens + outputTokens)),
    usd: mean(({ costUsd }) => costUsd),
  };
}
