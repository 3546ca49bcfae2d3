import type { Skill } from '@etude/contracts/memory';
import { requireScope, wholeTenant } from '@etude/domain/retrieval/scopes';
import { codeDigest } from '@etude/domain/skills/content-digest';
import { needsRoom } from '@etude/domain/skills/life/register-skill';
import { replacedByTelling, type Telling, toldProcedure } from '@etude/domain/skills/life/told-procedure';
import type { ProceduralLayer } from '../memory.js';
import type { Change } from '../record-store.js';
import { markApplied, wasApplied } from './applied-marker.js';
import { untilTaken } from './collisions.js';
import type { LayerDeps } from './layer-deps.js';
import { ownedSkills } from './owned-skills.js';
import { insertsOf } from './record-inserts.js';
import { skillRecord, skillUpdate } from './skill-records.js';
import { placeFor } from './skill-room.js';
import type { StoredSkill } from './stored-skill.js';

const LAYER = 'procedural';

interface Write extends Telling {
  readonly writeId: string;
  readonly namesMax: number;
}

/**
 * See `ProceduralLayer.storeProcedure`. The new version comes before what it takes the place of goes, so that there is always one in use; where
 * a writer was lost between, the repeat or the next telling finishes it.
 */
export async function storeProcedure(deps: LayerDeps, ...args: Parameters<ProceduralLayer['storeProcedure']>): Promise<Skill> {
  const [writeId, scope, name, words, { namesMax = 0, by = 'told' } = {}] = args;
  const { clock, store } = deps;
  requireScope(wholeTenant(scope));
  const isRepeat = await wasApplied(store, scope.tenant, LAYER, writeId);
  const stored = await untilTaken(`procedure ${name}`, async () => {
    const versions = await versionsOf(deps, { scope, name });
    const [newest] = versions;
    if (newest !== undefined && isRepeat) return newest.skill;
    const write = { writeId, scope, name, words, by, at: clock.now(), namesMax };
    const taken = versions.find((one) => one.taken.includes(writeId));
    return taken === undefined ? storeOnce(deps, write, versions) : finished(deps, write, taken.skill, versions);
  });
  if (!isRepeat) await store.write(scope.tenant, [markApplied(LAYER, scope, writeId, stored.updatedAt)]);
  return stored;
}

/** Newest first. */
async function versionsOf({ store }: LayerDeps, { scope, name }: Pick<Write, 'scope' | 'name'>): Promise<readonly StoredSkill[]> {
  return (await ownedSkills(store, scope, { where: { name } })).toReversed();
}

/**
 * null where somebody was faster. What it takes the place of goes in a write of its own: an insert whose key was taken does not stop
 * what stands behind it, and nothing would be in use.
 */
async function storeOnce(deps: LayerDeps, write: Write, versions: readonly StoredSkill[]): Promise<Skill | null> {
  const { scope, name, writeId, namesMax } = write;
  const known = versions.map(({ skill }) => skill);
  const { version, isNew } = toldProcedure(write, known, await isMarked(deps, write));
  if (!isNew) return finished(deps, write, version, versions);
  const place = needsRoom(known) ? await placeFor(deps, { ...scope, name, version: version.version }, namesMax) : [];
  const seen = version.status === 'active' ? unchanged(versions) : [];
  const made = await insertsOf(deps.embedder, [skillRecord(version, [writeId])]);
  const done = await deps.store.write(scope.tenant, [...place, ...seen, ...made]);
  return done.includes(false) ? null : finished(deps, write, version, await versionsOf(deps, write));
}

/**
 * Moves the revisions on of what is in use, and of the oldest version, to which whatever comes into use writes (`moveSkills`): who
 * decides on the name at the same time is found, or finds what was told.
 */
function unchanged(versions: readonly StoredSkill[]): readonly Change[] {
  const oldest = versions.at(-1);
  return versions.filter((one) => one === oldest || one.skill.status === 'active').map((one) => skillUpdate(one, one.skill));
}

/** Takes out of use what was told before. null where somebody was faster. */
async function finished(deps: LayerDeps, write: Write, skill: Skill, versions: readonly StoredSkill[]): Promise<Skill | null> {
  const known = versions.map((one) => one.skill);
  const replaced = new Map(replacedByTelling(write, known).map((one) => [one.version, one]));
  const changes = versions.flatMap((one) => {
    const after = replaced.get(one.skill.version);
    return after === undefined ? [] : [skillUpdate(one, after)];
  });
  const done = changes.length === 0 ? [] : await deps.store.write(write.scope.tenant, changes);
  return done.includes(false) ? null : (replaced.get(skill.version) ?? skill);
}

/** Looked up by the digest of the words, in this tenant alone. */
async function isMarked({ store }: LayerDeps, { scope, words }: Write): Promise<boolean> {
  const subject = codeDigest({ kind: 'procedure', code: '', entryPoint: null, description: words });
  if (subject === null) return false;
  return (await store.count({ tenant: scope.tenant }, LAYER, { kinds: ['skill'], where: { subject } })) > 0;
}
