import type { Evaluator } from '@etude/contracts/task';
import { sameValue } from './compare.js';
import {
  type AnsweringSkill,
  crashOutcome,
  cutExample,
  type EvaluatorRules,
  examples,
  PASSED,
  publicOf,
  shown,
  type SkillAnswer,
  traceback,
  WRONG,
} from './evaluator.js';

/** Calls a function with each case's arguments and compares the value it returns. */
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

/** The skill's function under the name that the task asks for; null for a program. */
export function callable(name: string, { entryPoint, code }: AnsweringSkill): SkillAnswer | null {
  if (entryPoint === null) return null;
  return { code: entryPoint === name ? code : `${code}\n\n\n${name} = ${entryPoint}` };
}

/** Writes a JSON value as a Python literal, including the sandbox's encodings such as `{"$set": [...]}`. */
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

/** Writes a call in Python, such as `solve([1, 2], base=10)`. */
function pythonCall(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): string {
  const named = Object.entries(kwargs).map(([key, value]) => `${key}=${pythonLiteral(value)}`);
  return `${name}(${[...args.map(pythonLiteral), ...named].join(', ')})`;
}
