import { z } from 'zod';
import { table } from '../output.js';
import { SCRIPTED } from '../show.js';

/**
 * `house_rule`: only the reference solutions show the rule, not the tasks. `procedure`: one function under several names.
 * `distractor`: tasks worded like those of another family, but with a different rule.
 */
export const KINDS = ['house_rule', 'procedure', 'distractor'] as const;
export type Kind = (typeof KINDS)[number];

export const ARMS = ['with', 'without'] as const;
export type Arm = (typeof ARMS)[number];

const count = z.number().int().min(0);
const spent = { modelCalls: count, inputTokens: count, outputTokens: count, costUsd: z.number().min(0), scripted: z.boolean() };

export const RunLine = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('run'), run: z.string(), file: z.string(), rounds: count, agent: z.string() }),
  z.object({
    ...spent,
    kind: z.literal('problem'),
    id: z.string(),
    family: z.string(),
    familyKind: z.enum(KINDS),
    round: count,
    arm: z.enum(ARMS),
    solved: z.boolean(),
    attempts: count,
    skill: z.string(),
    /** Whether a skill gave a wrong answer before the first attempt. */
    isMisled: z.boolean(),
    error: z.string().nullable(),
  }),
  z.object({ ...spent, kind: z.literal('consolidation'), round: count, factsAdded: count, skillsActivated: count }),
  // The last line that `eval families --json` prints.
  z.looseObject({ kind: z.literal('summary') }),
]);
export type RunLine = z.infer<typeof RunLine>;
type TaskLine = Extract<RunLine, { kind: 'problem' }>;

export type Row = ReturnType<typeof rowOf>;

export type Figures = ReturnType<typeof figuresOf>;

export function figuresOf(lines: readonly RunLine[]) {
  const tasks = lines.filter((line) => line.kind === 'problem');
  const learned = lines.filter((line) => line.kind === 'consolidation');
  const rounds = [...new Set(tasks.map(({ round }) => round))].toSorted((a, b) => a - b);
  const rowsOf = (round: number, kind: Kind | 'all', arm: Arm): Row[] => {
    const of = tasks.filter((task) => task.round === round && task.arm === arm && (kind === 'all' || task.familyKind === kind));
    const more = arm === 'with' && kind === 'all' ? learned.filter((line) => line.round === round) : [];
    return of.length === 0 ? [] : [rowOf(round, arm, kind, of, [...of, ...more])];
  };
  return {
    runs: lines.flatMap((line) => (line.kind === 'run' ? [line.run] : [])),
    scripted: [...tasks, ...learned].some(({ scripted }) => scripted),
    rows: rounds.flatMap((round) => (['all', ...KINDS] as const).flatMap((kind) => ARMS.flatMap((arm) => rowsOf(round, kind, arm)))),
  };
}

type Spent = Pick<TaskLine, 'modelCalls' | 'inputTokens' | 'outputTokens' | 'costUsd'>;

/** @param kind `all`: tasks of every kind. With memory, the sums of `all` include the consolidation after the round. */
function rowOf(round: number, arm: Arm, kind: Kind | 'all', tasks: readonly TaskLine[], spenders: readonly Spent[]) {
  const total = (pick: (line: Spent) => number) => spenders.reduce((sum, line) => sum + pick(line), 0);
  return {
    round,
    arm,
    kind,
    tasks: tasks.length,
    firstRight: tasks.filter(({ solved, attempts, skill }) => solved && (skill !== '' || attempts === 1)).length,
    misled: tasks.filter(({ isMisled }) => isMisled).length,
    solved: tasks.filter(({ solved }) => solved).length,
    bySkill: tasks.filter(({ solved, skill }) => solved && skill !== '').length,
    modelCalls: total(({ modelCalls }) => modelCalls),
    tokens: total(({ inputTokens, outputTokens }) => inputTokens + outputTokens),
    costUsd: total(({ costUsd }) => costUsd),
  };
}

export const MEASURES = [
  { title: 'First attempts right', unit: 'percent', of: ({ firstRight, tasks }: Row) => (100 * firstRight) / tasks },
  { title: 'Model calls per task', unit: 'number', of: ({ modelCalls, tasks }: Row) => modelCalls / tasks },
  { title: 'Tokens per task', unit: 'number', of: ({ tokens, tasks }: Row) => tokens / tasks },
  { title: 'US dollars per task', unit: 'money', of: ({ costUsd, tasks }: Row) => costUsd / tasks },
  { title: 'Misled by a skill', unit: 'percent', of: ({ misled, tasks }: Row) => (100 * misled) / tasks },
  { title: 'Answered by a skill', unit: 'percent', of: ({ bySkill, tasks }: Row) => (100 * bySkill) / tasks },
] as const;
export type Measure = (typeof MEASURES)[number];

export function valueText(unit: Measure['unit'], value: number): string {
  if (unit === 'percent') return `${Math.round(value)} %`;
  return unit === 'money' ? value.toFixed(5) : String(Number(value.toFixed(value < 100 ? 1 : 0)));
}

export const figureCells = ({ rows }: Figures): string[][] => [
  ['Round', 'Kind', 'Memory', 'Tasks', ...MEASURES.map(({ title }) => title)],
  ...rows.map((row) => [
    String(row.round),
    row.kind,
    row.arm,
    String(row.tasks),
    ...MEASURES.map(({ unit, of }) => valueText(unit, of(row))),
  ]),
];

export const figuresText = (figures: Figures): string =>
  [table(figureCells(figures)), ...(figures.scripted ? [`The answers came from a script ${SCRIPTED}.`] : [])].join('\n\n');
