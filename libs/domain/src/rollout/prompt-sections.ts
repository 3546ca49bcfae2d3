import type { RecalledItem } from '@etude/contracts/memory';
import { type TaskSpec, verdictText } from '@etude/contracts/task';
import { cutMiddle } from '../evaluation/evaluator.js';
import { rulesOf } from '../evaluation/evaluators.js';
import type { Attempt } from './attempt-record.js';

const CODE_CHARS_MAX = 12_000;
const FEEDBACK_CHARS_MAX = 4_000;
/** Limit for all earlier attempts together. The newest are kept in full first. */
const ATTEMPTS_CHARS_MAX = 40_000;

export interface PromptTask {
  readonly spec: Pick<TaskSpec, 'prompt' | 'evaluator' | 'files'>;
  /**
   * Ending of the tags' names, in letters and digits. It is made from the task, so that prompts can be replayed. Since anyone who knows the
   * task can compute it, it is removed from every text between tags.
   */
  readonly boundary: string;
}

/** Invisible characters that may stand between the boundary's characters. */
const UNSEEN = '[\\s\\p{Cf}]*';

/** Puts data between tags; the model is told never to follow instructions there. */
export function block({ boundary }: PromptTask, tag: string, text: string, attributes = ''): string {
  return `<${tag}-${boundary}${attributes}>\n${withoutBoundary(text, boundary)}\n</${tag}-${boundary}>`;
}

/** Removes the boundary from a text, in any case and with invisible characters in it, so that the text can't fake a tag. */
function withoutBoundary(text: string, boundary: string): string {
  return text.replaceAll(new RegExp(boundary.split('').join(UNSEEN), 'giu'), '[boundary]');
}

export function taskSection(task: PromptTask): string {
  const files = task.spec.files.map(({ path, contentBase64 }) => `- ${path} (${Math.floor((contentBase64.length * 3) / 4)} bytes)`);
  const listed = files.length === 0 ? '' : `\n\nFiles in the working directory:\n${block(task, 'files', files.join('\n'))}`;
  return `# Task\n\n${block(task, 'task', task.spec.prompt)}${listed}`;
}

/** All public information about the expected answer and how it is judged. */
export function expectationSection(task: PromptTask): string {
  const { evaluator, prompt } = task.spec;
  const parts = { prompt, block: (tag: string, text: string) => block(task, tag, text) };
  return `# What to answer\n\n${rulesOf(evaluator).expectation(parts)}`;
}

export function answerSection(task: PromptTask): string {
  return `${expectationSection(task)}\n\nAnswer with one fenced \`\`\`python block that holds all of your code.`;
}

/** The title of many records is the beginning of their text. */
const titled = ({ title, text }: RecalledItem) => (text.startsWith(title) ? text : `${title}\n${text}`);

const FROM_MEMORY = 'From earlier work';

/** The records behind the section of memories, as "kind id". */
export function sourcesOf(recalled: readonly RecalledItem[]): Readonly<Record<string, readonly string[]>> {
  return recalled.length === 0 ? {} : { [FROM_MEMORY]: recalled.map(({ kind, id }) => `${kind} ${id}`) };
}

export function memorySection(task: PromptTask, recalled: readonly RecalledItem[]): string {
  const items = recalled.map((item) => block(task, 'memory', titled(item), ` kind="${item.kind}"`));
  const isImportable = recalled.some(({ kind }) => kind === 'skill');
  const how = isImportable
    ? ' The code of a skill with a function can be used: `from skills import NAME`, with its name before the @.'
    : '';
  return `# ${FROM_MEMORY}\n\nThis may or may not fit the task; judge for yourself.${how}\n\n${items.join('\n')}`;
}

/** Attempts in order. Where they are too long together, the oldest show only their verdict. */
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
  return `Verdict: ${verdictText(judgement)} (${judgement.reason})`;
}
