import { type Change, compareKeys, type MemoryRecord, type RecordFilter, type RecordStore, type StoredRecord } from '../record-store.js';
import { bodyOf, everyRecord, everyValue, parseBody, sourceField } from './records.js';
import { errorCode, type ErrorCode } from '@etude/contracts/errors';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { SkillKey, SkillOffer, SkillOwner } from '@etude/domain/ports/memory';
import { skillEntry } from '@etude/domain/retrieval/entries';
import { mayCall } from '@etude/domain/skills/life/call-graph';
import { viewOf } from '@etude/domain/skills/life/find-skill';
import { markedCode } from '@etude/domain/skills/life/carried-over';
import { IN_USE, NOT_GONE } from '@etude/domain/skills/life/skill-life';
import { requireRoom } from '@etude/domain/skills/life/register-skill';
import { afterOffers } from '@etude/domain/skills/life/usage';

const LAYER = 'procedural';
const VERSION_DIGITS = 10;

/** The key of a skill's version. Keys sort by name, agent, user (none first) and version. Versions are counted per name, agent and user. */
export function skillKey({ name, agent, user, version }: Omit<SkillKey, 'tenant' | 'digest'>): string {
  return `${name} ${agent} ${user ?? ''} ${String(version).padStart(VERSION_DIGITS, '0')}`;
}

/** Category "text.csv" is also stored as "text", so that a search in "text" finds the skill. `subject`: the digest of untrusted code. */
export function skillRecord(skill: Skill, taken: readonly string[]): MemoryRecord {
  const { name, version, scope, status, digest, fingerprints, category, dependencies = [] } = skill;
  const key = skillKey({ name, ...scope, version });
  const marked = markedCode(skill);
  const fields = {
    id: `${name}@${version}`,
    name,
    status,
    digest,
    ...sourceField('skill', skill),
    ...(fingerprints.length === 0 ? {} : { fingerprint: fingerprints }),
    ...(category === undefined ? {} : { category: pathsTo(category) }),
    ...(marked === null ? {} : { subject: marked }),
    ...(dependencies.length === 0 ? {} : { skill: [...new Set(dependencies.map((needed) => needed.name))] }),
  };
  return { ...skillEntry(skill), layer: LAYER, key, scope, shown: status === 'active', fields, body: bodyOf(skill, taken) };
}

/** The update that stores a changed skill. The record keeps its key. */
export function skillUpdate({ record, taken }: Pick<StoredSkill, 'record' | 'taken'>, skill: Skill): Extract<Change, { do: 'update' }> {
  return { do: 'update', record: { ...skillRecord(skill, taken), key: record.key }, revision: record.revision };
}

function pathsTo(category: string): readonly string[] {
  const parts = category.split('.');
  return parts.map((_, i) => parts.slice(0, i + 1).join('.'));
}

export interface StoredSkill {
  readonly record: StoredRecord;
  readonly skill: Skill;
  readonly taken: readonly string[];
}

export function openedSkill(record: StoredRecord): StoredSkill {
  const { value, taken } = parseBody<Skill>(record);
  return { record, skill: value, taken };
}

const userOf = ({ scope }: Skill) => scope.user ?? '';

/** The owner's skills, oldest version first. Without `owner.user`, skills of every user; of equal versions, the one without a user comes last. */
export async function ownedSkills(
  store: RecordStore,
  owner: SkillOwner,
  filter: Omit<RecordFilter, 'kinds'>,
): Promise<readonly StoredSkill[]> {
  const { tenant, agent, user } = owner;
  const view = user === undefined ? { tenant, agent } : viewOf(owner, user);
  const found = await Array.fromAsync(everyRecord(store, view, LAYER, { ...filter, kinds: ['skill'] }));
  return found
    .filter(({ scope }) => user === undefined || scope.user === user)
    .map(openedSkill)
    .toSorted((a, b) => a.skill.version - b.skill.version || (userOf(a.skill) < userOf(b.skill) ? 1 : -1));
}

/** The reader's newest version, else the newest version without a user, else any user's newest version. */
export function narrowestNewest(skills: readonly Skill[], reader: string | null | undefined): Skill | null {
  const placeOf = ({ scope: { user } }: Skill) => (user === null ? 1 : user === reader ? 0 : 2);
  const [first] = skills.toSorted((a, b) => placeOf(a) - placeOf(b) || compareKeys(userOf(a), userOf(b)) || b.version - a.version);
  return first ?? null;
}

/** The versions with these keys, in the order of `keys`; undefined for a missing version. A key without a user means a skill without a user. */
export async function versionsOfKeys(
  store: RecordStore,
  tenant: string,
  keys: ReadonlyArray<Omit<SkillKey, 'digest'>>,
): Promise<ReadonlyArray<StoredSkill | undefined>> {
  const names = keys.map(skillKey);
  const loaded = await store.load({ tenant, agent: null }, LAYER, 'skill', [...new Set(names)]);
  const stored = new Map(loaded.map((record) => [record.key, openedSkill(record)]));
  return names.map((name) => stored.get(name));
}

/** Skills in use that call this skill; with `all`, skills of any status. If this skill is global, callers of every tenant are included. */
export async function dependentsOf(
  store: RecordStore,
  key: Pick<SkillKey, 'tenant' | 'agent' | 'user' | 'name'>,
  { all = false }: { readonly all?: boolean } = {},
): Promise<readonly Skill[]> {
  const found: Skill[] = [];
  const filter = { kinds: ['skill'], where: { skill: key.name, ...(all ? {} : { status: [...IN_USE] }) } } as const;
  for (const tenant of key.tenant === GLOBAL_TENANT ? await store.tenants() : [key.tenant])
    for await (const skill of everyValue<Skill>(store, { tenant, agent: null }, LAYER, filter)) if (mayCall(skill, key)) found.push(skill);
  return found;
}

/** Counts the names of skills that are neither rejected nor archived. The name `except` isn't counted. */
export async function countNames(store: RecordStore, owner: SkillOwner, except?: string): Promise<number> {
  const living = await ownedSkills(store, owner, { where: { status: NOT_GONE } });
  return new Set(living.map(({ skill }) => skill.name).filter((name) => name !== except)).size;
}

/** @param namesMax 0: no limit. @throws EtudeError FAILED_PRECONDITION if the owner has no room for a new name */
export async function requireRoomFor(store: RecordStore, next: SkillOwner & { readonly name: string }, namesMax: number): Promise<void> {
  if (namesMax > 0) requireRoom(next, await countNames(store, next, next.name), namesMax);
}

/** Counts offers in one write per tenant. Offers are lost if a skill changes meanwhile or the store can't be written. */
export async function countOffers(store: RecordStore, offers: readonly SkillOffer[]): Promise<void> {
  for (const [tenant, ofTenant] of Map.groupBy(offers, (offer) => offer.tenant)) {
    const found = await versionsOfKeys(store, tenant, ofTenant);
    const byVersion = Map.groupBy(ofTenant.keys(), (at) => found[at]?.record.key);
    const changes = [...byVersion.values()].flatMap((places) => {
      const stored = found[places[0]!];
      const offered = places.map((at) => ofTenant[at]!);
      return stored === undefined ? [] : [skillUpdate(stored, afterOffers(stored.skill, offered))];
    });
    if (changes.length > 0) await store.write(tenant, changes).catch(unlessUnwritable);
  }
}

const UNWRITABLE: ReadonlySet<ErrorCode> = new Set(['MEMORY_FULL', 'MEMORY_UNAVAILABLE']);

/** Showing or loading a skill is a read, so it must work while the store can't be written. */
function unlessUnwritable(error: unknown): void {
  if (!UNWRITABLE.has(errorCode(error))) throw error;
}
