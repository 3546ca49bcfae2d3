import { createHash } from 'node:crypto';
import type { TaskSpec } from '@etude/contracts/task';
import { rulesOf } from '../evaluation/evaluators.js';

/**
 * What makes two tasks the same task: the prompt, how the answer is judged, and what it is shown. sha256 in hex.
 *
 * White space at line ends, blank lines and line break styles don't count; hidden cases don't either, since the same task may
 * come back with others. Case and inner spacing do count: "print A" is not "print a".
 */
export function fingerprintOf({ prompt, evaluator }: Pick<TaskSpec, 'prompt' | 'evaluator'>): string {
  const { entryPoint = '', visible } = rulesOf(evaluator);
  const parts = [normalised(prompt), evaluator.kind, entryPoint, visible];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
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
