import { requireScope } from '@etude/domain/retrieval/scopes';
import type { SkillOwner } from '@etude/domain/ports/skill-registry';
import { requireRoom } from '@etude/domain/skills/life/skill-room';
import { createHash } from 'node:crypto';
import type { Change, StoredRecord } from '../record-store.js';
import { markApplied } from './applied-marker.js';
import type { LayerDeps } from './layer-deps.js';
import { everyRecord } from './every-record.js';
import { KEPT } from './skill-registry-reads.js';
import { skillKey } from './skill-records.js';

const LAYER = 'procedural';
const PAGE = 64;
/** A version whose place was taken and that is not there after this was lost with its writer. */
const PLACE_KEPT_MS = 60_000;

export interface NewName extends SkillOwner {
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
  if (namesMax === 0) return [];
  const owner = { tenant: next.tenant, agent: next.agent };
  const at = clock.now();
  const record = await placesOf(store, owner, at);
  const places = recentPlaces(record, at);
  const own = { at, name: digestOf(next.name), key: digestOf(skillKey(next)) };
  const openIn = ({ keys }: Found) => places.filter(({ key }) => !keys.has(key) && key !== own.key);
  const kept = await found(store, owner, namesMax);
  // One that is not among them is being written, or was archived since.
  const all = openIn(kept).length === 0 ? kept : await found(store, owner, Infinity);
  const open = openIn(all);
  const taken = new Set([...all.names, ...open.map(({ name }) => name)]);
  taken.delete(own.name);
  requireRoom(owner, taken.size, namesMax);
  return [{ do: 'update', record: { ...record, sources: [[...open, own].map(textOf).join(';')] }, revision: record.revision }];
}

type Store = LayerDeps['store'];

/** Made where it is not there yet. */
async function placesOf(store: Store, { tenant, agent }: SkillOwner, at: number): Promise<StoredRecord> {
  const { record } = markApplied(LAYER, { tenant, agent, user: null }, `places ${agent}`, at);
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
}

/** Digests of what an owner has, in one pass, so that what arrives meanwhile is in both or in neither; until there are so many names. */
async function found(store: Store, owner: SkillOwner, namesMax: number): Promise<Found> {
  const [names, keys] = [new Set<string>(), new Set<string>()];
  const where = namesMax === Infinity ? {} : { where: { status: KEPT } };
  for await (const { key, fields } of everyRecord(store, owner, LAYER, { kinds: ['skill'], ...where }, { size: PAGE })) {
    keys.add(digestOf(key));
    const isKept = KEPT.some((status) => status === fields.status);
    if (isKept && typeof fields.name === 'string') names.add(digestOf(fields.name));
    if (names.size >= namesMax) break;
  }
  return { names, keys };
}

function recentPlaces({ sources }: StoredRecord, at: number): readonly Place[] {
  const places = (sources[0] ?? '').split(';').flatMap(placeOf);
  return places.filter((place) => place.at > at - PLACE_KEPT_MS);
}

const textOf = ({ at, name, key }: Place) => `${at} ${name} ${key}`;

function placeOf(text: string): Place[] {
  const [at = '', name = '', key = ''] = text.split(' ');
  return key === '' ? [] : [{ at: Number(at), name, key }];
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
