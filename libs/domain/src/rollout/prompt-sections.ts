import type { RecalledItem } from '@etude/contracts/memory';
import type { Evaluator, TaskSpec } from '@etude/contracts/task';
import { cutMiddle } from '../evaluation/cut-middle.js';
import { endsWithStub } from '../evaluation/function-stub.js';
import { pythonCall, pythonLiteral } from '../evaluation/python-literal.js';
import type { Attempt } from './attempt-record.js';

const PUBLIC_CASES_MAX = 5;
const CASE_CHARS_MAX = 1_000;
const CODE_CHARS_MAX = 12_000;
const FEEDBACK_CHARS_MAX = 4_000;
/** All earlier attempts together; the newest come first. */
const ATTEMPTS_CHARS_MAX = 40_000;

const cut = (text: string) => cutMiddle(text, CASE_CHARS_MAX);

/** What all prompts of one task share. */
export interface PromptTask {
  readonly spec: Pick<TaskSpec, 'prompt' | 'evaluator' | 'files'>;
  /**
   * Ends the names of the tags; letters and digits. Fixed by the task, so that prompts can be replayed; whoever knows the task can reckon it, so no text
   * between the tags is left with it.
   */
  readonly boundary: string;
}

/** What characters without a look of their own can hide between. */
const UNSEEN = '[\\s\\p{Cf}]*';

/** Data between tags: never an instruction. */
export function block({ boundary }: PromptTask, tag: string, text: string, attributes = ''): string {
  return `<${tag}-${boundary}${attributes}>\n${withoutBoundary(text, boundary)}\n</${tag}-${boundary}>`;
}

/** The boundary out of a text, however it is written: no tag in it can pass for one of the prompt's. */
function withoutBoundary(text: string, boundary: string): string {
  return text.replaceAll(new RegExp(boundary.split('').join(UNSEEN), 'giu'), '[boundary]');
}

/** The task's text, whole. */
export function taskSection(task: PromptTask): string {
  const files = task.spec.files.map(({ path, contentBase64 }) => `- ${path} (${Math.floor((contentBase64.length * 3) / 4)} bytes)`);
  const listed = files.length === 0 ? '' : `\n\nFiles in the working directory:\n${block(task, 'files', files.join('\n'))}`;
  return `# Task\n\n${block(task, 'task', task.spec.prompt)}${listed}`;
}

/** Everything that is public about what is wanted and how it is judged. */
export function expectationSection(task: PromptTask): string {
  return `# What to answer\n\n${expectation(task)}`;
}

/** The same, and the form of the answer. */
export function answerSection(task: PromptTask): string {
  return `${expectationSection(task)}\n\nAnswer with one fenced \`\`\`python block that holds all of your code.`;
}

function expectation(task: PromptTask): string {
  const { evaluator } = task.spec;
  switch (evaluator.kind) {
    case 'io_cases':
      return `A complete program that reads standard input and writes standard output. It is run on ${evaluator.cases.length} inputs.${publicCases(task, evaluator)}`;
    case 'function_cases':
      return `Code that defines \`${evaluator.entryPoint}\` at its top level. It is called with arguments and what it returns is compared.${publicCases(task, evaluator)}`;
    case 'python_tests':
      return testsExpectation(task, evaluator);
    case 'command':
      return `Your code is saved as \`${evaluator.answerPath}\`. Then this command is run and must exit with ${evaluator.expectedExitCode}:\n${block(task, 'command', evaluator.command)}`;
    default:
      return 'A complete program. What it prints is the final answer to the task.';
  }
}

function testsExpectation(
  task: PromptTask,
  { entryPoint, setup, tests, public: shown }: Extract<Evaluator, { kind: 'python_tests' }>,
): string {
  const lines = [`Code that defines \`${entryPoint}\` at its top level. Tests call it.`];
  if (setup.trim() !== '') {
    lines.push(
      task.spec.prompt.includes(setup.trim())
        ? 'The code in the task is already in place before yours.'
        : `This code is already in place before yours:\n${block(task, 'setup', setup)}`,
    );
  }
  if (endsWithStub(setup, entryPoint)) lines.push('Repeat the whole function, or answer with its indented body alone.');
  if (shown) lines.push(`The tests:\n${block(task, 'tests', cutMiddle(tests, CODE_CHARS_MAX))}`);
  return lines.join('\n');
}

function publicCases(task: PromptTask, evaluator: Extract<Evaluator, { kind: 'io_cases' | 'function_cases' }>): string {
  const cases =
    evaluator.kind === 'io_cases'
      ? evaluator.cases
          .filter((given) => given.public)
          .map(({ stdin, expectedStdout }) => `Input:\n${cut(stdin)}\nExpected output:\n${cut(expectedStdout)}`)
      : evaluator.cases
          .filter((given) => given.public)
          .map(({ args, kwargs, expected }) => `${cut(pythonCall(evaluator.entryPoint, args, kwargs))} == ${cut(pythonLiteral(expected))}`);
  if (cases.length === 0) return '';
  return `\nExamples:\n${cases
    .slice(0, PUBLIC_CASES_MAX)
    .map((text) => block(task, 'example', text))
    .join('\n')}`;
}

export function memorySection(task: PromptTask, recalled: readonly RecalledItem[]): string {
  const items = recalled.map((item) => block(task, 'memory', `${item.title}\n${item.text}`, ` kind="${item.kind}"`));
  return `# From earlier work\n\nThis may or may not fit the task; judge for yourself.\n\n${items.join('\n')}`;
}

/** Attempts in order; where they are too long together, the oldest keep only their verdict. */
export function attemptsSection(task: PromptTask, attempts: readonly Attempt[]): string {
  let left = ATTEMPTS_CHARS_MAX;
  const texts = attempts.toReversed().map((attempt) => {
    const full = describeAttempt(attempt);
    left -= full.length;
    return block(task, 'attempt', left >= 0 ? full : verdictLine(attempt), ` number="${attempt.attempt}"`);
  });
  return `# Attempts so far\n\n${texts.toReversed().join('\n')}`;
}

function describeAttempt(attempt: Attempt): string {
  const code = attempt.code === '' ? '(no code)' : cutMiddle(attempt.code, CODE_CHARS_MAX);
  return `Code:\n${code}\n\n${verdictLine(attempt)}\nFeedback:\n${cutMiddle(attempt.judgement.feedback, FEEDBACK_CHARS_MAX)}`;
}

function verdictLine({ judgement }: Attempt): string {
  return `Verdict: ${judgement.verdict} (${judgement.reason})`;
}
