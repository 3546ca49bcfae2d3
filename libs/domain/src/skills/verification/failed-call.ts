import type { SkillTest } from '@etude/contracts/memory';
import type { RunResult } from '@etude/contracts/sandbox';

/** Characters of one value, and of all arguments. */
const VALUE_MAX = 80;
const CALL_MAX = 160;

/**
 * What a failed test called, wanted and got, on one line behind its verdict: `; f("a", n=2) gave "x", not "y"`. Not for tests that
 * whoever reads it must not see. Empty where the test is Python of its own.
 */
export function failedCall(
  { entryPoint }: { readonly entryPoint: string | null },
  test: SkillTest | undefined,
  result: RunResult | undefined,
): string {
  if (test === undefined || test.kind === 'python') return '';
  const called = test.kind === 'io' ? `with the input ${shown(test.stdin)} it` : `${entryPoint ?? ''}(${argumentsOf(test)})`;
  const got = gotOf(test, result);
  const wanted = shown(test.kind === 'io' ? test.expectedStdout : test.expected);
  return got === null ? `; ${called}, where ${wanted} is expected` : `; ${called} gave ${got}, not ${wanted}`;
}

/** null: it came to no answer. */
function gotOf({ kind }: SkillTest, result: RunResult | undefined): string | null {
  if (result === undefined || result.exit !== 'ok' || result.error !== undefined) return null;
  if (kind === 'io') return shown(result.stdout);
  return result.value === undefined ? null : shown(result.value);
}

/** Where two prints part, on one line: `"a" the first time, "b" the second`. Not for tests that whoever reads it must not see. */
export function shownPrints(first: string, second: string): string {
  const [before, after] = [first.split('\n'), second.split('\n')];
  const parting = before.findIndex((line, index) => line !== after[index]);
  const at = parting < 0 ? before.length : parting;
  return `${shown(before[at] ?? '')} the first time, ${shown(after[at] ?? '')} the second`;
}

function argumentsOf({ args, kwargs }: Extract<SkillTest, { kind: 'call' }>): string {
  const named = Object.entries(kwargs).map(([name, value]) => `${cut(oneLine(name), VALUE_MAX)}=${shown(value)}`);
  return cut([...args.map(shown), ...named].join(', '), CALL_MAX);
}

/** JSON has no line breaks; those that it leaves as they are go, too. */
const shown = (value: unknown) => cut(oneLine(JSON.stringify(value)), VALUE_MAX);

const oneLine = (text: string) => text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, ' ');

const cut = (text: string, max: number) => (text.length <= max ? text : `${text.slice(0, max - 1)}…`);
