import type { Evaluator } from '@etude/contracts/task';
import { z } from 'zod';
import { sameOutput, sameValue } from './compare.js';
import {
  type AnsweringSkill,
  crashOutcome,
  cutExample,
  type EvaluatorRules,
  examples,
  namedKind,
  PASSED,
  publicOf,
  shown,
  type SkillAnswer,
  streams,
  traceback,
  WRONG,
} from './evaluator.js';

const IoCase = z.strictObject({ stdin: z.string(), expectedStdout: z.string(), public: z.boolean().default(false) });
type IoCase = z.infer<typeof IoCase>;

const ioRules = (cases: readonly IoCase[], isRight: (stdout: string, at: number) => boolean): EvaluatorRules => ({
  plan: (code) => cases.map(({ stdin }) => ({ kind: 'program', code, stdin })),
  cases,
  outcome: (run, at, code) => crashOutcome(run, code) ?? (run.stdoutCutBytes === 0 && isRight(run.stdout, at) ? PASSED : WRONG),
  showCase(at, run) {
    const { stdin, expectedStdout } = cases[at]!;
    return [`Input:\n${shown(stdin)}`, `Expected output:\n${shown(expectedStdout)}`, ...streams(run)];
  },
  expectation(parts) {
    const shownCases = examples(
      cases,
      parts,
      ({ stdin, expectedStdout }) => `Input:\n${cutExample(stdin)}\nExpected output:\n${cutExample(expectedStdout)}`,
    );
    return `A complete program that reads standard input and writes standard output. It is run on ${cases.length} inputs.${shownCases}`;
  },
  visible: publicOf(cases),
  adapt: ({ entryPoint, code }) => (entryPoint === null ? { code } : null),
});

export const ioCases = ({ cases, comparison, tolerance }: Extract<Evaluator, { kind: 'io_cases' }>): EvaluatorRules => ({
  ...ioRules(cases, (stdout, at) => sameOutput(stdout, cases[at]!.expectedStdout, comparison, tolerance)),
  tests: cases.map(({ stdin, expectedStdout }) => ({ kind: 'io', stdin, expectedStdout, comparison, tolerance })),
});

const Case = z.strictObject({ stdin: z.string(), outputs: z.array(z.string()).min(1).max(100), public: z.boolean().default(false) });

/** Accepts any of several outputs for each case. The cases can't become tests of a skill, because such a test has only one output. */
export const acceptedOutputs = namedKind(z.strictObject({ cases: z.array(Case).min(1).max(1_000) }), ({ cases }) => {
  const first = cases.map(({ outputs, ...given }) => ({ ...given, expectedStdout: outputs[0]! }));
  return ioRules(first, (stdout, at) => cases[at]!.outputs.some((output) => sameOutput(stdout, output, 'whitespace', 0)));
});

const Tolerance = z.number().min(0).nullable().default(null);
const Flags = z.strictObject({
  caseSensitive: z.boolean().default(false),
  spaceSensitive: z.boolean().default(false),
  absoluteTolerance: Tolerance,
  /** The largest allowed difference, as a share of the expected number. */
  relativeTolerance: Tolerance,
});
type Flags = z.infer<typeof Flags>;

/**
 * Judges like the default output validator of Kattis problem packages, with its flags (github.com/Kattis/problemtools, support/default_validator).
 * The cases can't become tests of a skill, because such tests have no flags.
 */
export const kattisOutput = namedKind(Flags.extend({ cases: z.array(IoCase).min(1).max(1_000) }), ({ cases, ...flags }) =>
  ioRules(cases, (stdout, at) => fitsFlags(stdout, cases[at]!.expectedStdout, flags)),
);

/** Matches the characters that C's `isspace` accepts. */
const SPACE = /([ \t\n\v\f\r]+)/;

function fitsFlags(actual: string, expected: string, flags: Flags): boolean {
  const parts = (text: string) => text.split(SPACE).filter((part, at) => flags.spaceSensitive || (at % 2 === 0 && part !== ''));
  const got = parts(actual);
  const wanted = parts(expected);
  return got.length === wanted.length && got.every((token, at) => isSameToken(token, wanted[at]!, flags));
}

function isSameToken(actual: string, expected: string, { caseSensitive, absoluteTolerance, relativeTolerance }: Flags): boolean {
  const wanted = absoluteTolerance === null && relativeTolerance === null ? null : floatOf(expected);
  if (wanted === null) return caseSensitive ? actual === expected : lower(actual) === lower(expected);
  const got = floatOf(actual);
  if (got === null) return false;
  const difference = Math.abs(wanted - got);
  return difference <= (absoluteTolerance ?? -1) || difference <= (relativeTolerance ?? -1) * Math.abs(wanted);
}

const FLOAT = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

function floatOf(token: string): number | null {
  const value = FLOAT.test(token) ? Number(token) : Number.NaN;
  return Number.isFinite(value) ? value : null;
}

const lower = (text: string) => text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());

export const functionCases = ({ cases, entryPoint, tolerance }: Extract<Evaluator, { kind: 'function_cases' }>): EvaluatorRules => ({
  entryPoint,
  plan: (code) => cases.map(({ args, kwargs }) => ({ kind: 'call', code, entryPoint, args, kwargs })),
  cases,
  outcome(run, at, code) {
    const crash = crashOutcome(run, code);
    if (crash !== null) return crash;
    if (sameValue(run.value, cases[at]!.expected, tolerance)) return PASSED;
    return holdsObject(run.value) ? { verdict: 'WA', how: 'the function returned an object that is not plain data' } : WRONG;
  },
  showCase(at, run) {
    const { args, kwargs, expected } = cases[at]!;
    const got = run.value === undefined ? [] : [`Got: ${shown(pythonLiteral(run.value))}`];
    const call = `Call: ${shown(pythonCall(entryPoint, args, kwargs))}`;
    return [call, `Expected: ${shown(pythonLiteral(expected))}`, ...got, ...traceback(run)];
  },
  expectation(parts) {
    const shownCases = examples(
      cases,
      parts,
      ({ args, kwargs, expected }) => `${cutExample(pythonCall(entryPoint, args, kwargs))} == ${cutExample(pythonLiteral(expected))}`,
    );
    return `Code that defines \`${entryPoint}\` at its top level. It is called with arguments and what it returns is compared.${shownCases}`;
  },
  visible: publicOf(cases),
  adapt: (skill) => callable(entryPoint, skill),
  tests: cases.map(({ args, kwargs, expected }) => ({ kind: 'call', args, kwargs, expected, tolerance })),
});

/** Whether the value holds an object that the sandbox could describe only by its `repr`. */
function holdsObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return '$repr' in value || Object.values(value).some(holdsObject);
}

/** The code of a skill, with its function bound to the name that the task asks for. null if the skill is a program. */
export function callable(name: string, { entryPoint, code }: AnsweringSkill): SkillAnswer | null {
  if (entryPoint === null) return null;
  return { code: entryPoint === name ? code : `${code}\n\n\n${name} = ${entryPoint}` };
}

/** Writes a JSON value as a Python literal. Encodings of the sandbox such as `{"$set": [...]}` become Python too. */
function pythonLiteral(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const [key, content] = Object.entries(value)[0] ?? [];
  if (key === '$set' && Array.isArray(content)) return content.length === 0 ? 'set()' : `{${content.map(pythonLiteral).join(', ')}}`;
  if ((key === '$int' || key === '$repr') && typeof content === 'string') return content;
  if (key === '$float' && typeof content === 'string') return `float(${JSON.stringify(content)})`;
  const entries = key === '$dict' && Array.isArray(content) ? (content as Array<[unknown, unknown]>) : Object.entries(value);
  return `{${entries.map(([name, item]) => `${pythonLiteral(name)}: ${pythonLiteral(item)}`).join(', ')}}`;
}

function pythonCall(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): string {
  const named = Object.entries(kwargs).map(([key, value]) => `${key}=${pythonLiteral(value)}`);
  return `${name}(${[...args.map(pythonLiteral), ...named].join(', ')})`;
}
