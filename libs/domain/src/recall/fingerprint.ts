import { hash } from 'node:crypto';
import type { TaskSpec } from '@etude/contracts/task';
import { rulesOf } from '../evaluation/evaluators.js';

/**
 * The sha256 in hex that decides whether two tasks are the same: made from the prompt, how the answer is judged, and public data.
 *
 * Ignored are white space at line ends, blank lines, the style of line breaks, and hidden cases, since a task may return with other ones.
 * Case and inner spacing count: "print A" is not "print a".
 */
export function fingerprintOf({ prompt, evaluator }: Pick<TaskSpec, 'prompt' | 'evaluator'>): string {
  const { entryPoint = '', visible } = rulesOf(evaluator);
  const parts = [normalised(prompt), evaluator.kind, entryPoint, visible];
  return hash('sha256', JSON.stringify(parts));
}

function normalised(text: string): string {
  const lines = text
    .normalize('NFC')
    .split(/\r\n|\r|\n/)
    .map((line) => line.trimEnd());
  return lines
    .filter((line) => line !== '')
    .join('\n')
    .trim();
}
