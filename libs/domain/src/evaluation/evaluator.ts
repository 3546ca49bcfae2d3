import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { RunResult, SandboxFile, SandboxRun } from '@etude/contracts/sandbox';
import type { Verdict } from '@etude/contracts/task';
import type { z } from 'zod';
import { crashOf } from './crash.js';

/** How one case went. `null`: it was not run because an earlier one crashed. */
export interface CaseOutcome {
  readonly verdict: Verdict | null;
  /** For people and the model; holds nothing of a hidden case. */
  readonly how: string;
}

/** How a skill can answer a task: with this code, or as a function whose arguments the model has to name. */
export type SkillAnswer = { readonly code: string } | 'needs_arguments';
export type AnsweringSkill = Pick<Skill, 'entryPoint' | 'code'>;

/** The task's text, and `block`, which puts data between the prompt's tags. */
export interface PromptParts {
  readonly prompt: string;
  readonly block: (tag: string, text: string) => string;
}

/** All that the domain knows about one task's evaluator. A kind of evaluator is a function that makes these rules of its fields. */
export interface EvaluatorRules {
  /** The function that the answer has to define; absent where it is a program. */
  readonly entryPoint?: string;
  /** The runs that judge this code, one for each case. Expected outputs are in none of them. */
  plan(code: string): SandboxRun[];
  /** Files that the runs need beside the task's own. */
  files?(code: string): SandboxFile[];
  /** Cases that are judged one by one; absent where one run is judged. */
  readonly cases?: ReadonlyArray<{ readonly public: boolean }>;
  /**
   * The outcome of a run that kept to its limits.
   * @param code of the run, for messages that name a line
   */
  outcome(run: RunResult, at: number, code: string): CaseOutcome;
  /** A public case that failed, for the model: input, expected and actual output. */
  showCase?(at: number, run: RunResult): string[];
  /** What the model is told where the only run failed; by default how, and what the code printed. */
  feedback?(how: string, run: RunResult): string;
  /** What the model is told where all is well; by default that it passed. */
  praise?(run: RunResult): string;
  /** What to answer, for the prompt. Public data only. */
  expectation(parts: PromptParts): string;
  /** What the answer has to fit beside the prompt's words: part of the task's fingerprint. Hidden cases are not. */
  readonly visible: unknown;
  /** null where the skill's form does not fit: a program can't be called, a function can't read standard input by itself. */
  adapt(skill: AnsweringSkill): SkillAnswer | null;
  /** A skill's tests from its cases; absent where something other than the code's answers is judged. */
  readonly tests?: SkillTest[];
}

/** A kind of evaluator that callers send by its name: its fields, and the rules that follow from them. */
export interface NamedKind {
  readonly spec: z.ZodType;
  /** @throws ZodError where `spec` doesn't take the fields */
  rules(fields: unknown): EvaluatorRules;
}

export function namedKind<S extends z.ZodType>(spec: S, rules: (fields: z.output<S>) => EvaluatorRules): NamedKind {
  return { spec, rules: (fields) => rules(spec.parse(fields)) };
}

const SHOWN_CHARS_MAX = 1_500;
const EXAMPLES_MAX = 5;
const EXAMPLE_CHARS_MAX = 1_000;

export const PASSED: CaseOutcome = { verdict: 'AC', how: 'passed' };
export const WRONG: CaseOutcome = { verdict: 'WA', how: 'wrong answer' };

/** null where the code ran to its end. */
export function crashOutcome(run: RunResult, code: string): CaseOutcome | null {
  if (run.exit === 'ok' && !run.error) return null;
  const crash = crashOf(run, code);
  return crash.type === 'MemoryError' ? { verdict: 'MLE', how: 'ran out of memory' } : { verdict: 'RE', how: crash.summary };
}

/** As much of a text as one piece of feedback shows. */
export const shown = (text: string) => cutMiddle(text, SHOWN_CHARS_MAX);

/** What the code printed, and its traceback. */
export function streams(run: RunResult): string[] {
  return [`Your code printed:\n${shown(run.stdout) || '(nothing)'}`, ...traceback(run)];
}

export function traceback(run: RunResult): string[] {
  if (run.stderr.trim() !== '') return [`Error output:\n${shown(run.stderr.trimEnd())}`];
  return run.error ? [`Error: ${run.error.type}: ${shown(run.error.message)}`] : [];
}

/** A value as one example shows it. */
export const cutExample = (text: string) => cutMiddle(text, EXAMPLE_CHARS_MAX);

/** Public cases as the prompt shows them; empty where there are none. */
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

/** At most `maxChars` of a text: its head and its tail, and how much is missing between them. */
export function cutMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const head = Math.ceil(maxChars * 0.6);
  const tail = maxChars - head;
  return `${text.slice(0, head)}\n[... ${text.length - maxChars} characters left out ...]\n${text.slice(text.length - tail)}`;
}
