import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { RunResult, SandboxFile, SandboxRun } from '@etude/contracts/sandbox';
import type { Verdict } from '@etude/contracts/task';
import type { z } from 'zod';

interface Crash {
  /** Name of the exception. null if the process was killed or exited without an exception. */
  readonly type: string | null;
  readonly message: string;
  readonly line: number | null;
  /** One line about the crash, safe for a hidden case: of the case's data it holds only a built-in exception's name and a line number. */
  readonly summary: string;
}

const BUILT_IN = new Set(
  [
    'ArithmeticError AssertionError AttributeError BrokenPipeError BufferError ConnectionError EOFError FileExistsError',
    'FileNotFoundError FloatingPointError ImportError IndentationError IndexError IsADirectoryError KeyError KeyboardInterrupt',
    'LookupError MemoryError ModuleNotFoundError NameError NotImplementedError OSError OverflowError PermissionError',
    'RecursionError ReferenceError RuntimeError StopIteration SyntaxError SystemError SystemExit TabError TimeoutError',
    'TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError ZeroDivisionError',
  ].flatMap((line) => line.split(' ')),
);

/**
 * Tells how a run crashed, according to the sandbox's report, or else to the traceback on stderr.
 *
 * @param code the code that ran. It can print a made-up traceback, so the summary names a line only if the code has that line
 */
export function crashOf(run: RunResult, code = ''): Crash {
  const nothing = { type: null, message: '', line: null };
  if (run.exit === 'signal') return { ...nothing, summary: `killed by signal ${run.signal ?? '?'}` };
  const reported = run.error ?? fromTraceback(run.stderr);
  if (!reported) return { ...nothing, summary: `exited with status ${run.exitCode ?? '?'}` };
  const { type, line } = reported;
  const isOfCode = line !== null && code !== '' && line >= 1 && line <= code.split('\n').length;
  const name = BUILT_IN.has(type) ? type : 'an exception of its own';
  return { ...reported, summary: `raised ${name}${isOfCode ? ` at line ${line}` : ''}` };
}

function fromTraceback(stderr: string): NonNullable<RunResult['error']> | null {
  const last = /^([A-Za-z_][\w.]*)(?:: (.*))?$/.exec(stderr.trimEnd().split('\n').at(-1) ?? '');
  if (!last || !/Traceback|File "/.test(stderr)) return null;
  const line = [...stderr.matchAll(/^ *File "[^"]*", line (\d+)/gm)].at(-1)?.[1];
  return { type: last[1]!.split('.').at(-1)!, message: last[2] ?? '', line: line ? Number(line) : null };
}

export interface CaseOutcome {
  /** null if the case was not run because an earlier case crashed. */
  readonly verdict: Verdict | null;
  /** A phrase for people and the model, without data of a hidden case. */
  readonly how: string;
}

/** How a skill answers a task: with this code, or as a function whose arguments the model must choose. */
export type SkillAnswer = { readonly code: string } | 'needs_arguments';
export type AnsweringSkill = Pick<Skill, 'entryPoint' | 'code'>;

/** The task's text, and the function that puts data between the prompt's tags. */
interface PromptParts {
  readonly prompt: string;
  readonly block: (tag: string, text: string) => string;
}

/** The rules of one task's evaluator: how answers are run, judged and described in prompts. */
export interface EvaluatorRules {
  /** Name of the function that the answer must define. Absent if the answer is a program. */
  readonly entryPoint?: string;
  /** Plans the runs of this code, one for each case. No run contains expected outputs. */
  plan(code: string): SandboxRun[];
  /** Files that the runs need in addition to the files of the task. */
  files?(code: string): SandboxFile[];
  /** The cases, if they are judged one by one. Absent if one run judges the whole answer. */
  readonly cases?: ReadonlyArray<{ readonly public: boolean }>;
  /** The outcome of a run that stayed within its limits. Its output may be cut. @param code the code that ran, whose lines the messages name */
  outcome(run: RunResult, at: number, code: string): CaseOutcome;
  /** Lines that show the model a failed public case: input, expected and actual output. */
  showCase?(at: number, run: RunResult): string[];
  /** Feedback for the model if the only run failed. `how` is a sentence about the failure. Default: `how` and the printed text. */
  feedback?(how: string, run: RunResult): string;
  /** Feedback for the model if everything passed. Default: a sentence that says this. */
  praise?(run: RunResult): string;
  /** The part of the prompt that says what to answer. It holds only public data. */
  expectation(parts: PromptParts): string;
  /** Public data about the expected answer, which goes into the task's fingerprint. It never holds hidden cases. */
  readonly visible: unknown;
  /** The skill's answer. null if the task needs a function and the skill is a program, or if it needs a program and the skill is a function. */
  adapt(skill: AnsweringSkill): SkillAnswer | null;
  /** The cases as tests of a skill. Absent if they can't become tests. */
  readonly tests?: SkillTest[];
}

/** An evaluator that callers choose by name. Its rules are made from the fields in `spec`. `rules` throws a ZodError if the fields are wrong. */
export function namedKind<S extends z.ZodType>(spec: S, rules: (fields: z.output<S>) => EvaluatorRules) {
  return { spec, rules: (fields: unknown) => rules(spec.parse(fields)) };
}

const SHOWN_CHARS_MAX = 1_500;
const EXAMPLES_MAX = 5;
const EXAMPLE_CHARS_MAX = 1_000;

export const PASSED: CaseOutcome = { verdict: 'AC', how: 'passed' };
export const WRONG: CaseOutcome = { verdict: 'WA', how: 'wrong answer' };

export function crashOutcome(run: RunResult, code: string): CaseOutcome | null {
  if (run.exit === 'ok' && !run.error) return null;
  const crash = crashOf(run, code);
  return crash.type === 'MemoryError' ? { verdict: 'MLE', how: 'ran out of memory' } : { verdict: 'RE', how: crash.summary };
}

export const shown = (text: string) => cutMiddle(text, SHOWN_CHARS_MAX);

export function streams(run: RunResult): string[] {
  return [`Your code printed:\n${shown(run.stdout) || '(nothing)'}`, ...traceback(run)];
}

export function traceback(run: RunResult): string[] {
  if (run.stderr.trim() !== '') return [`Error output:\n${shown(run.stderr.trimEnd())}`];
  return run.error ? [`Error: ${run.error.type}: ${shown(run.error.message)}`] : [];
}

export const cutExample = (text: string) => cutMiddle(text, EXAMPLE_CHARS_MAX);

export function examples<C extends { readonly public: boolean }>(
  cases: readonly C[],
  { block }: PromptParts,
  textOf: (given: C) => string,
): string {
  const texts = publicOf(cases)
    .slice(0, EXAMPLES_MAX)
    .map((given) => block('example', textOf(given)));
  return texts.length === 0 ? '' : `\nExamples:\n${texts.join('\n')}`;
}

export const publicOf = <C extends { readonly public: boolean }>(cases: readonly C[]) => cases.filter((given) => given.public);

/** Shortens a long text to `maxChars` characters of its beginning and end, with a note between them about how much is missing. */
export function cutMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = Math.ceil(maxChars * 0.6);
  const tail = maxChars - head;
  return `${text.slice(0, head)}\n[... ${text.length - maxChars} characters left out ...]\n${text.slice(text.length - tail)}`;
}
