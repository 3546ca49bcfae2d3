import type { Skill } from '@etude/contracts/memory';
import type { SkillKey, SkillOwner } from '@etude/domain/ports/skill-registry';
import { requireScope } from '@etude/domain/retrieval/scopes';
import { viewOf } from '@etude/domain/skills/life/find-skill';
import type { RecordFilter, RecordStore, StoredRecord } from '../record-store.js';
import { everyRecord } from './every-record.js';
import { skillKey } from './skill-records.js';
import { openedSkill, type StoredSkill } from './stored-skill.js';

const LAYER = 'procedural';
const PAGE = 64;

type VersionName = Omit<SkillKey, 'digest'>;

const userOf = ({ scope }: Skill) => scope.user ?? '';

type SkillFilter = Omit<RecordFilter, 'kinds'>;

/** What exactly this owner has; of every user where the owner names none. In the order of their keys. */
export async function* ownedRecords(store: RecordStore, owner: SkillOwner, filter: SkillFilter): AsyncGenerator<StoredRecord> {
  const { tenant, agent, user } = owner;
  const view = requireScope(user === undefined ? { tenant, agent } : viewOf(owner, user));
  for await (const record of everyRecord(store, view, LAYER, { ...filter, kinds: ['skill'] }, { size: PAGE }))
    if (user === undefined || record.scope.user === user) yield record;
}

/** The same at once, oldest first, and of equal numbers nobody's last. */
export async function ownedSkills(store: RecordStore, owner: SkillOwner, filter: SkillFilter): Promise<readonly StoredSkill[]> {
  const found: StoredSkill[] = [];
  for await (const record of ownedRecords(store, owner, filter)) found.push(openedSkill(record));
  return found.toSorted((a, b) => a.skill.version - b.skill.version || (userOf(a.skill) < userOf(b.skill) ? 1 : -1));
}

/** The newest of the reader's own; where there are none, of nobody's, and then of any user. */
export function narrowestNewest(skills: readonly Skill[], reader: string | null | undefined): Skill | null {
  const placeOf = ({ scope: { user } }: Skill) => (user === null ? 1 : user === reader ? 0 : 2);
  const isBefore = (a: Skill, b: Skill) => {
    if (placeOf(a) !== placeOf(b)) return placeOf(a) < placeOf(b);
    return userOf(a) === userOf(b) ? a.version > b.version : userOf(a) < userOf(b);
  };
  return skills.reduce<Skill | null>((first, skill) => (first === null || isBefore(skill, first) ? skill : first), null);
}

/** The versions that these keys of one tenant name, in the order of the keys; undefined where there is none. A key without a user is nobody's. */
export async function versionsOfKeys(
  store: RecordStore,
  tenant: string,
  keys: readonly VersionName[],
): Promise<ReadonlyArray<StoredSkill | undefined>> {
  const scope = requireScope({ tenant, agent: null });
  const names = keys.map((key) => skillKey({ ...key, user: key.user ?? null }));
  const stored = new Map((await store.load(scope, LAYER, 'skill', [...new Set(names)])).map((record) => [record.key, openedSkill(record)]));
  return names.map((name) => stored.get(name));
}
