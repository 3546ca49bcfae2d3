import { requireScope } from '@etude/domain/retrieval/scopes';
import type { SkillOwner } from '@etude/domain/ports/skill-registry';
import { requireRoom } from '@etude/domain/skills/life/register-skill';
import { NOT_GONE } from '@etude/domain/skills/life/skill-life';
import { createHash } from 'node:crypto';
import type { Change, StoredRecord } from '../record-store.js';
import { markApplied } from './repeats.js';
import type { LayerDeps } from './records.js';
import { ownedRecords, skillKey, type StoredSkill } from './skill-records.js';

const LAYER = 'procedural';
/** A version whose place was taken and that is not there after this was lost with its writer. */
const PLACE_KEPT_MS = 60_000;

/** Whose a new name is. */
type Owner = Required<SkillOwner>;

export interface NewName extends Owner {
  readonly name: string;
  readonly version: number;
}

/** A version that is being written; names are digests, so that nothing is left of whoever is erased. */
interface Place {
  readonly at: number;
  readonly name: string;
  readonly key: string;
}

/**
 * The change that has to stand before the insert of a new name, so that an owner never has more than `namesMax`: whoever takes a place
 * does so in the owner's one record of places, and of two at once one is refused its revision and looks again. Where the store has no
 * transactions the place is taken before the version is there, so places count until their versions are found, or are given up.
 *
 * @throws EtudeError FAILED_PRECONDITION where there is no room
 */
export async function placeFor(
  { store, clock }: Pick<LayerDeps, 'store' | 'clock'>,
  next: NewName,
  namesMax: number,
): Promise<readonly Change[]> {
  const owner = { tenant: next.tenant, agent: next.agent, user: next.user };
  return placeOfName({ store, clock }, owner, { name: next.name, key: digestOf(skillKey(next)), namesMax });
}

/**
 * The same before a version that is there takes up room again, as the first of its name. Its place counts until it has changed.
 *
 * @throws EtudeError FAILED_PRECONDITION where there is no room
 */
export function placeToReturn(
  deps: Pick<LayerDeps, 'store' | 'clock'>,
  { record, skill: { scope, name } }: StoredSkill,
  namesMax: number,
): Promise<readonly Change[]> {
  return placeOfName(deps, scope, { name, key: asItIs(record), namesMax });
}

async function placeOfName(
  { store, clock }: Pick<LayerDeps, 'store' | 'clock'>,
  owner: Owner,
  { name, key, namesMax }: { readonly name: string; readonly key: string; readonly namesMax: number },
): Promise<readonly Change[]> {
  if (namesMax === 0) return [];
  const at = clock.now();
  const record = await placesOf(store, owner, at);
  const places = recentPlaces(record, at);
  const own = { at, name: digestOf(name), key };
  const others = places.filter((place) => place.key !== key);
  const kept = await found(store, owner, namesMax);
  // One that is not among them is being written or restored, or was archived since.
  const all = others.every((place) => kept.keys.has(place.key)) ? kept : await found(store, owner, Infinity);
  const open = others.filter((place) => isOpen(place, all));
  const taken = new Set([...all.names, ...open.map((place) => place.name)]);
  taken.delete(own.name);
  requireRoom(owner, taken.size, namesMax);
  return [{ do: 'update', record: { ...record, sources: [[...open, own].map(textOf).join(';')] }, revision: record.revision }];
}

type Store = LayerDeps['store'];

/** Made where it is not there yet. */
async function placesOf(store: Store, owner: Owner, at: number): Promise<StoredRecord> {
  const { tenant, agent, user } = owner;
  const { record } = markApplied(LAYER, owner, `places ${agent}${user === null ? '' : ` ${user}`}`, at);
  const scope = requireScope({ tenant, agent: null });
  const [known] = await store.load(scope, LAYER, 'applied', [record.key]);
  if (known !== undefined) return known;
  await store.write(tenant, [{ do: 'insert', record, indexed: [] }]);
  const [made] = await store.load(scope, LAYER, 'applied', [record.key]);
  return made ?? { ...record, revision: 1 };
}

interface Found {
  /** Of those that take up room. */
  readonly names: ReadonlySet<string>;
  /** Of all versions, also of what was archived or rejected since. */
  readonly keys: ReadonlySet<string>;
  /** What is out of use, as `asItIs`. */
  readonly unchanged: ReadonlySet<string>;
}

/** Digests of what an owner has, in one pass, so that what arrives meanwhile is in both or in neither; until there are so many names. */
async function found(store: Store, owner: Owner, namesMax: number): Promise<Found> {
  const [names, keys, unchanged] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const filter = namesMax === Infinity ? {} : { where: { status: NOT_GONE } };
  for await (const record of ownedRecords(store, owner, filter)) {
    const { key, fields } = record;
    keys.add(digestOf(key));
    const isKept = NOT_GONE.some((status) => status === fields.status);
    if (!isKept) unchanged.add(asItIs(record));
    if (isKept && typeof fields.name === 'string') names.add(digestOf(fields.name));
    if (names.size >= namesMax) break;
  }
  return { names, keys, unchanged };
}

function recentPlaces({ sources }: StoredRecord, at: number): readonly Place[] {
  const places = (sources[0] ?? '').split(';').flatMap(placeOf);
  return places.filter((place) => place.at > at - PLACE_KEPT_MS);
}

/** Whether what it was taken for is still to come. */
const isOpen = (place: Place, { keys, unchanged }: Found) => (isReturn(place) ? unchanged.has(place.key) : !keys.has(place.key));

const textOf = ({ at, name, key }: Place) => `${at} ${name} ${key}`;

function placeOf(text: string): Place[] {
  const [at = '', name = '', key = ''] = text.split(' ');
  return key === '' ? [] : [{ at: Number(at), name, key }];
}

const RETURN = 'return:';
const isReturn = ({ key }: Place) => key.startsWith(RETURN);
/** A version until its next change. */
const asItIs = ({ key, revision }: Pick<StoredRecord, 'key' | 'revision'>) => `${RETURN}${digestOf(`${key} ${revision}`)}`;
const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
