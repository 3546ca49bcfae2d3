import type { MemoryWrite, Skill } from '@etude/contracts/memory';
import type { MemoryOutbox, ProceduralMemory } from '../../ports/memory.js';
import { contentDigest, isInWords } from '../content-digest.js';
import { findSkill, type SkillReader } from './find-skill.js';

export interface WordsUse {
  /** "moor_boat" or "moor_boat@2". */
  readonly names: readonly string[];
  readonly success: boolean;
  /** Accepted code, of which a shown skill may have become a part; absent: none. */
  readonly code?: string;
  /** Identifies the use, such as the id of an episode: each procedure is counted once for it. */
  readonly useId: string;
  /** ms since 1970 */
  readonly at: number;
}

/**
 * Counts a use of each named procedure in words that the reader sees, and of each snippet or function that the code has copied. Other names
 * are passed over: functions count their own runs.
 */
export async function countWordsUsed(
  { procedural, outbox }: { readonly procedural: Pick<ProceduralMemory, 'versions'>; readonly outbox: MemoryOutbox },
  reader: SkillReader,
  { names, success, code = '', useId, at }: WordsUse,
): Promise<void> {
  for (const name of new Set(names.map((one) => one.replace(/^skills\//, '')))) {
    const [, bare = '', version] = /^([a-z][a-z0-9_]{0,79})(?:@(\d{1,9}))?$/.exec(name) ?? [];
    const found = bare === '' ? null : await findSkill(procedural, reader, bare, version === undefined ? {} : { version: Number(version) });
    const isUsed = found !== null && (isInWords(found) || isPartOf(found, code));
    if (!isUsed) continue;
    const { tenant, agent, user } = reader;
    await outbox.put(tenant, `words-${contentDigest({ tenant, agent, user, useId, bare })}`, useOfWords(found, reader, success, at));
  }
}

const dense = (text: string) => text.replaceAll(/\s+/g, '');

/** Whether accepted code has a class of the snippet's name, or a whole copy of the function. */
function isPartOf({ kind, entryPoint, code: own }: Skill, code: string): boolean {
  if (kind === 'snippet') return entryPoint !== null && new RegExp(`^class[ \\t]+${entryPoint}\\b`, 'm').test(code);
  return kind === 'function' && own.trim() !== '' && dense(code).includes(dense(own));
}

function useOfWords(
  { name, version, scope: { user, ...owner } }: Skill,
  reader: SkillReader,
  success: boolean,
  at: number,
): Extract<MemoryWrite, { kind: 'skill_use' }> {
  const owned = { ...owner, ...(user === null ? {} : { user }) };
  const { tenant, agent } = reader;
  return {
    kind: 'skill_use',
    scope: { tenant, agent, user: reader.user },
    owner: owned,
    name,
    version,
    success,
    fingerprint: '',
    cue: '',
    at,
  };
}
