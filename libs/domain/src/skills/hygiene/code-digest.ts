import type { Skill } from '@etude/contracts/memory';
import { createHash } from 'node:crypto';

/**
 * The same for code that is the same but for comments, white space and line ends, and what its entry point is called; of a procedure without
 * code, for the same words. null where there is neither.
 *
 * Texts that differ more may look alike here, too, as where a string holds a "#" or lines are indented otherwise: one mark too many, never one
 * too few.
 */
export function codeDigest({
  code,
  entryPoint,
  kind,
  description,
}: Pick<Skill, 'code' | 'entryPoint' | 'kind' | 'description'>): string | null {
  // A line ends where Python ends it: U+2028 is part of a comment, a carriage return is not.
  const bare = code.replaceAll(/#[^\r\n]*/g, '');
  const dense = (entryPoint === null ? bare : withoutName(bare, entryPoint)).replaceAll(/\s|\\(?=[\r\n])/g, '');
  if (dense !== '') return digestOf(`code\n${dense}`);
  const words = kind === 'procedure' ? description.replaceAll(/\s+/g, ' ').trim() : '';
  return words === '' ? null : digestOf(`words\n${words}`);
}

/** Under another name it is no other code. A name of Python's holds nothing that a pattern would take for more than itself. */
function withoutName(code: string, name: string): string {
  return /^\w+$/.test(name) ? code.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), '_') : code;
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
