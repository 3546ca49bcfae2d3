import type { Skill } from '@etude/contracts/memory';
import { skillEntry } from '@etude/domain/retrieval/entries';
import { markedCode } from '@etude/domain/skills/life/marks';
import type { Change, MemoryRecord } from '../record-store.js';
import { bodyOf } from './stored-body.js';
import type { StoredSkill } from './stored-skill.js';

/** Enough for any version, so that keys sort as versions do. */
const VERSION_DIGITS = 10;
/** Sorts before all that is in a name or an agent's id, and behind the space. */
const BEHIND = '!';

interface OwnedName {
  readonly name: string;
  readonly agent: string;
}

/** Sorts by name, agent, user (nobody's first) and version, each of which is counted for those before it. */
export function skillKey({ name, agent, user, version }: OwnedName & { readonly user: string | null; readonly version: number }): string {
  return `${name} ${agent} ${user ?? ''} ${digitsOf(version)}`;
}

const digitsOf = (version: number) => String(version).padStart(VERSION_DIGITS, '0');

/** Behind every version of a name, or of what one agent, or one user of it, calls so. */
export const keyBehind = (...names: readonly string[]): string => `${names.join(' ')}${BEHIND}`;

/** Categories hold those below them: what is in "text.csv" is found by "text" too. The subject of what is marked is its code. */
export function skillRecord(skill: Skill, taken: readonly string[]): MemoryRecord {
  const { name, version, scope, status, digest, fingerprints, category, dependencies = [] } = skill;
  const { title, text, sources, createdAt, worth } = skillEntry(skill, '');
  const key = skillKey({ name, ...scope, version });
  const marked = markedCode(skill);
  const fields = {
    id: `${name}@${version}`,
    name,
    status,
    digest,
    ...(fingerprints.length === 0 ? {} : { fingerprint: fingerprints }),
    ...(category === undefined ? {} : { category: pathsTo(category) }),
    ...(marked === null ? {} : { subject: marked }),
    ...(dependencies.length === 0 ? {} : { skill: [...new Set(dependencies.map((needed) => needed.name))] }),
  };
  const named = { layer: 'procedural', kind: 'skill', key, scope } as const;
  return { ...named, createdAt, worth, shown: status === 'active', fields, title, text, sources, body: bodyOf(skill, taken) };
}

/** The change of a record to what its skill became. It keeps its key, whichever that is. */
export function skillUpdate({ record, taken }: Pick<StoredSkill, 'record' | 'taken'>, skill: Skill): Extract<Change, { do: 'update' }> {
  return { do: 'update', record: { ...skillRecord(skill, taken), key: record.key }, revision: record.revision };
}

function pathsTo(category: string): readonly string[] {
  const parts = category.split('.');
  return parts.map((_, i) => parts.slice(0, i + 1).join('.'));
}
