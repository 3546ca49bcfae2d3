import type { RecalledItem } from '@etude/contracts/memory';
import type { TaskSpec } from '@etude/contracts/task';
import { cutMiddle } from '../evaluation/evaluator.js';
import { rulesOf } from '../evaluation/evaluators.js';
import type { Attempt } from './attempt-record.js';

const CODE_CHARS_MAX = 12_000;
const FEEDBACK_CHARS_MAX = 4_000;
/** All earlier attempts together; the newest come first. */
const ATTEMPTS_CHARS_MAX = 40_000;

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
  const { evaluator, prompt } = task.spec;
  const parts = { prompt, block: (tag: string, text: string) => block(task, tag, text) };
  return `# What to answer\n\n${rulesOf(evaluator).expectation(parts)}`;
}

/** The same, and the form of the answer. */
export function answerSection(task: PromptTask): string {
  return `${expectationSection(task)}\n\nAnswer with one fenced \`\`\`python block that holds all of your code.`;
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
