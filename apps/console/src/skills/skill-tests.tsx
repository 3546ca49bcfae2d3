import { type Column, List } from '../ui/list.js';

/** A test of a skill, as a review tells it in JSON. */
type SkillTest =
  | {
      readonly kind: 'call';
      readonly args: readonly unknown[];
      readonly kwargs: Readonly<Record<string, unknown>>;
      readonly expected: unknown;
    }
  | { readonly kind: 'io'; readonly stdin: string; readonly expectedStdout: string }
  | { readonly kind: 'python'; readonly setup: string; readonly tests: string };

function inputOf(test: SkillTest): string {
  if (test.kind === 'io') return test.stdin;
  if (test.kind === 'python') return test.setup;
  const named = Object.entries(test.kwargs).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return [...test.args.map((value) => JSON.stringify(value)), ...named].join(', ');
}

function expectedOf(test: SkillTest): string {
  if (test.kind === 'io') return test.expectedStdout;
  return test.kind === 'python' ? test.tests : JSON.stringify(test.expected);
}

const WORDS = { call: 'call', io: 'program', python: 'asserts' } as const;

const COLUMNS: ReadonlyArray<Column<SkillTest>> = [
  { title: 'Kind', cell: ({ kind }) => WORDS[kind] },
  { title: 'Input', cell: (test) => <pre>{inputOf(test)}</pre> },
  { title: 'Expected', cell: (test) => <pre>{expectedOf(test)}</pre> },
];

/** The tests of a skill, side by side with what they expect. @param tests as JSON */
export const SkillTests = ({ tests }: { readonly tests: readonly string[] }) => (
  <List
    label="tests"
    items={tests.map((test) => JSON.parse(test) as SkillTest)}
    keyOf={(test) => JSON.stringify(test)}
    columns={COLUMNS}
    empty={<p>It has no tests.</p>}
  />
);
