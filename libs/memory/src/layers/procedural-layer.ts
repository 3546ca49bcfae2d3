import type { LayerQuery } from '../memory.js';
import type { Fields, RecordStore } from '../record-store.js';
import { everyValue, insertsOf, type LayerDeps, rewriteOf, untilTaken, withTaken } from './records.js';
import { searchLayer } from './memory-search.js';
import { markApplied, wasApplied } from './repeats.js';
import { inTurn, moveSkills } from './skill-moves.js';
import {
  countNames,
  countOffers,
  dependentsOf,
  narrowestNewest,
  openedSkill,
  ownedSkills,
  requireRoomFor,
  skillRecord,
  skillUpdate,
  type StoredSkill,
  versionsOfKeys,
} from './skill-records.js';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, ReadScope, SkillMove, SkillOwner, CountedUse, StoreSkillOptions } from '@etude/domain/ports/memory';
import { afterUse, ownersOfUse } from '@etude/domain/skills/life/usage';
import { codeDigest } from '@etude/domain/skills/content-digest';
import { knownVersion, nextVersion } from '@etude/domain/skills/life/carried-over';
import { needsRoom } from '@etude/domain/skills/life/register-skill';
import { noSuchSkill } from '@etude/domain/skills/life/skill-life';
import { replacedByTelling, type Telling, toldProcedure } from '@etude/domain/skills/life/told-procedure';

const LAYER = 'procedural';
const SAME_TASK_MAX = 100;

/** Skills with their versions. Search finds active ones by name, description and cues (texts of tasks). */
export function proceduralLayer(deps: LayerDeps) {
  const { store } = deps;
  return {
    async store(given: Skill, options: StoreSkillOptions = {}): Promise<Skill> {
      const stored = () => untilTaken(`skill ${given.name}`, () => storeOnce(deps, given, options));
      return (options.namesMax ?? 0) === 0 ? stored() : inTurn(deps, given.scope.tenant, stored);
    },
    /**
     * Stores a procedure in words, active at once. Its success rate begins at 0.5, or at the rate of the learned skill. New words under a
     * known name become the next version, which keeps the counts. This version is only a candidate if a person decided on that name, or the
     * tenant has marked these words as untrusted (`toldProcedure`).
     *
     * @throws EtudeError FAILED_PRECONDITION for the name of a skill with code, for words that a person took out of use, and for a new name
     *   beyond `namesMax` (see `StoreSkillOptions`)
     */
    storeProcedure: (...args: ProcedureArgs) => inTurn(deps, args[1].tenant, () => storeProcedure(deps, ...args)),
    async get(scope: ReadScope, name: string, version?: number): Promise<Skill | null> {
      const where = version === undefined ? { name } : { id: `${name}@${version}` };
      return narrowestNewest(await Array.fromAsync(skillsIn(store, scope, where)), scope.user);
    },
    async versions(owner: SkillOwner, name: string, status?: SkillStatus): Promise<readonly Skill[]> {
      const found = await ownedSkills(store, owner, { where: { name, ...(status === undefined ? {} : { status }) } });
      return found.map(({ skill }) => skill).toReversed();
    },
    // `fromName` can be the key to start after, since a name sorts before the keys of its versions.
    every: (scope: ReadScope, statuses?: readonly SkillStatus[], fromName?: string) =>
      skillsIn(store, scope, statuses === undefined ? {} : { status: statuses }, fromName),
    countNames: (owner) => countNames(store, owner),
    move: (moves: readonly SkillMove[]) => moveSkills(deps, moves),
    dependents: (...args: Parameters<ProceduralMemory['dependents']>) => dependentsOf(store, ...args),
    countOffers: (offers) => countOffers(store, offers),
    async search(scope: ReadScope, query: LayerQuery): ReturnType<ProceduralMemory['search']> {
      const ranked = await searchLayer(deps, scope, LAYER, query);
      return ranked.map(({ record, similarity, score, explanation, why = [] }) => {
        const found = { skill: openedSkill(record).skill, similarity, score };
        return query.explain || 'rerankFailed' in explanation ? { ...found, explanation, why } : found;
      });
    },
    async byFingerprint(scope, fingerprint) {
      const filter = { kinds: ['skill'], shown: true, where: { fingerprint, status: 'active' } } as const;
      const found = await store.find(scope, LAYER, filter, { order: 'newest', limit: SAME_TASK_MAX });
      return found.map((record) => openedSkill(record).skill).toSorted((a, b) => b.successRate - a.successRate);
    },
    applyUse: (useId, use) => applyUse(deps, useId, use),
  } satisfies ProceduralMemory & Record<string, unknown>;
}

const skillsIn = (store: RecordStore, scope: ReadScope, where: Fields, afterKey?: string) =>
  everyValue<Skill>(store, scope, LAYER, { kinds: ['skill'], where }, afterKey);

async function storeOnce(deps: LayerDeps, given: Skill, options: StoreSkillOptions): Promise<Skill | null> {
  const { words, namesMax = 0, setAside } = options;
  const { scope, name } = given;
  const { embedder, store } = deps;
  const stored = await versionsOf(deps, { scope, name });
  const versions = stored.map(({ skill }) => skill);
  const known = knownVersion(given, versions, words);
  if (known !== null) {
    const { version, changed } = known;
    const before = stored.find(({ skill }) => skill === version);
    if (before === undefined || changed === null) return version;
    const [taken] = await store.write(scope.tenant, [skillUpdate(before, changed)]);
    return taken ? changed : null;
  }
  const made = nextVersion(given, versions, await isMarkedIn(deps, scope.tenant, codeDigest(given)), options);
  if (setAside === undefined && needsRoom(versions)) await requireRoomFor(store, { ...scope, name }, namesMax);
  const [done] = await store.write(scope.tenant, await insertsOf(embedder, [skillRecord(made, [])]));
  return done ? made : null;
}

/** Counts one use. Returns false for a repeat. If the skill belongs to another tenant, the skill and the note of the use are written separately. */
async function applyUse(deps: LayerDeps, useId: string, use: CountedUse): Promise<boolean> {
  const { store } = deps;
  const { tenant } = use.scope;
  const owners = ownersOfUse(use).map((owner) => ({ ...owner, name: use.name, version: use.version }));
  if (await wasApplied(store, tenant, LAYER, useId)) return false;
  const [{ tenant: ownersTenant } = use.scope] = owners;
  const isOwn = ownersTenant === tenant;
  const takenId = isOwn ? useId : `${tenant} ${useId}`;
  const marker = markApplied(LAYER, use.scope, useId, use.at);
  return untilTaken(`skill ${use.name}@${use.version}`, async () => {
    const known = (await versionsOfKeys(store, ownersTenant, owners)).find((one) => one !== undefined);
    if (known === undefined) throw noSuchSkill(use);
    const isKnown = known.taken.includes(takenId);
    const { record } = skillUpdate({ ...known, taken: withTaken(known.taken, takenId) }, afterUse(known.skill, use));
    const changes = isKnown ? [] : [await rewriteOf(deps.embedder, known.record, record)];
    const [taken = true] = await store.write(ownersTenant, isOwn ? [...changes, marker] : changes);
    if (!isKnown && !taken) return null;
    if (!isOwn) await store.write(tenant, [marker]);
    return !isKnown;
  });
}

type ProcedureArgs = [
  writeId: string,
  scope: Skill['scope'],
  name: string,
  words: string,
  options?: Pick<StoreSkillOptions, 'namesMax' | 'by'> & Pick<Telling, 'learned'>,
];

/**
 * Stores the new version before it deprecates the earlier version, so that one of them is always active. After a crash between these writes
 * (Qdrant has no transactions), the repeat or the next words for this name deprecate the earlier version.
 */
async function storeProcedure(deps: LayerDeps, ...args: ProcedureArgs): Promise<Skill> {
  const [writeId, scope, name, words, { namesMax = 0, by = 'told', learned } = {}] = args;
  const { clock, store } = deps;
  const isRepeat = await wasApplied(store, scope.tenant, LAYER, writeId);
  const stored = await untilTaken(`procedure ${name}`, async () => {
    const versions = await versionsOf(deps, { scope, name });
    const [newest] = versions;
    if (newest !== undefined && isRepeat) return newest.skill;
    return storeWords(deps, writeId, { scope, name, words, learned, by, at: clock.now() }, namesMax, versions);
  });
  if (!isRepeat) await store.write(scope.tenant, [markApplied(LAYER, scope, writeId, stored.updatedAt)]);
  return stored;
}

/** The owner's versions of a skill, newest first. */
async function versionsOf({ store }: LayerDeps, { scope, name }: Pick<Skill, 'scope' | 'name'>): Promise<readonly StoredSkill[]> {
  return (await ownedSkills(store, scope, { where: { name } })).toReversed();
}

/** Returns null if another writer was faster. A repeat deprecates the versions that its first try left active. */
async function storeWords(
  deps: LayerDeps,
  writeId: string,
  telling: Telling,
  namesMax: number,
  versions: readonly StoredSkill[],
): Promise<Skill | null> {
  const { store, embedder } = deps;
  const { scope, name, words } = telling;
  const known = versions.map(({ skill }) => skill);
  const taken = versions.find((one) => one.taken.includes(writeId))?.skill;
  const digest = codeDigest({ kind: 'procedure', code: '', entryPoint: null, description: words });
  const { version, isNew } =
    taken === undefined ? toldProcedure(telling, known, await isMarkedIn(deps, scope.tenant, digest)) : { version: taken, isNew: false };
  if (isNew && needsRoom(known)) await requireRoomFor(store, { ...scope, name }, namesMax);
  const inserts = isNew ? await insertsOf(embedder, [skillRecord(version, [writeId])]) : [];
  const replaced = new Map(replacedByTelling(telling, isNew ? [version, ...known] : known).map((one) => [one.version, one]));
  const updates = versions.flatMap((one) => {
    const after = replaced.get(one.skill.version);
    return after === undefined ? [] : [skillUpdate(one, after)];
  });
  const changes = [...inserts, ...updates];
  const done = changes.length === 0 ? [] : await store.write(scope.tenant, changes);
  return done.includes(false) ? null : (replaced.get(version.version) ?? version);
}

/** Whether this tenant has marked a skill with code or words of this digest as untrusted. False for the digest null. */
async function isMarkedIn({ store }: LayerDeps, tenant: string, code: string | null): Promise<boolean> {
  return code !== null && (await store.count({ tenant }, LAYER, { kinds: ['skill'], where: { subject: code } })) > 0;
}
