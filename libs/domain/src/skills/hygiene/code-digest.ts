import type { Skill } from '@etude/contracts/memory';
import { createHash } from 'node:crypto';

/**
 * The same for code that is the same but for comments, blank lines, and what its entry point is called; of a procedure without code, for the
 * same words. null where there is neither.
 *
 * Two texts with the same strings may look alike here, too, where they hold a "#": one mark too many, never one too few.
 */
export function codeDigest({
  code,
  entryPoint,
  kind,
  description,
}: Pick<Skill, 'code' | 'entryPoint' | 'kind' | 'description'>): string | null {
  const lines = code.split(/\r?\n/).map((line) => line.replace(/#.*$/, '').trimEnd());
  const bare = lines.filter((line) => line !== '').join('\n');
  if (bare !== '') return digestOf(`code\n${entryPoint === null ? bare : withoutName(bare, entryPoint)}`);
  const words = kind === 'procedure' ? description.replaceAll(/\s+/g, ' ').trim() : '';
  return words === '' ? null : digestOf(`words\n${words}`);
}

/** Under another name it is no other code. A name of Python's holds nothing that a pattern would take for more than itself. */
function withoutName(code: string, name: string): string {
  return /^\w+$/.test(name) ? code.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), '_') : code;
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
