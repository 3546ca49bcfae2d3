import type { LayerQuery } from '../memory.js';
import type { Change, RecordFilter } from '../record-store.js';
import { embedTexts, indexedTextsOf, insertsOf } from './indexed-texts.js';
import { searchLayer } from './memory-search.js';
import { everyRecord, type LayerDeps, untilTaken, withTaken } from './records.js';
import { markApplied, wasApplied } from './repeats.js';
import { moveSkills } from './skill-moves.js';
import {
  countNames,
  countOffers,
  dependentsOf,
  listedSkills,
  narrowestNewest,
  openedSkill,
  ownedSkills,
  requireRoomFor,
  skillRecord,
  skillUpdate,
  type StoredSkill,
  versionsOfKeys,
} from './skill-records.js';
import { inTurn } from './skill-turns.js';
import type { MemoryWrite, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, ReadScope, StoreSkillOptions } from '@etude/domain/ports/memory';
import type { MoveOptions, SkillMove, SkillOwner } from '@etude/domain/ports/skill-registry';
import { afterUse } from '@etude/domain/retrieval/reinforce';
import { requireScope, wholeTenant } from '@etude/domain/retrieval/scopes';
import { codeDigest } from '@etude/domain/skills/content-digest';
import { type KnownVersion, knownVersion, staleEdit } from '@etude/domain/skills/life/known-version';
import { codeToLookFor, withCarriedMarks, withMarkOfCode } from '@etude/domain/skills/life/marks';
import { needsRoom } from '@etude/domain/skills/life/register-skill';
import { newSkill, noSuchSkill } from '@etude/domain/skills/life/skill-life';
import { replacedByTelling, type Telling, toldProcedure } from '@etude/domain/skills/life/told-procedure';
import { ownersOfUse } from '@etude/domain/skills/life/usage';

type SkillUse = Extract<MemoryWrite, { kind: 'skill_use' }>;

type ListOptions = Parameters<ProceduralMemory['list']>[1];
const LAYER = 'procedural';
const PAGE = 64;
const SAME_TASK_MAX = 100;

/** Skills with their versions, found by name, description and cues while they are active. */
export class RecordProceduralLayer implements ProceduralMemory {
  readonly #deps: LayerDeps;

  constructor(deps: LayerDeps) {
    this.#deps = deps;
  }

  async store(given: Skill, options: StoreSkillOptions = {}): Promise<Skill> {
    requireScope(wholeTenant(given.scope));
    const store = () => untilTaken(`skill ${given.name}`, () => this.#storeOnce(given, options));
    return (options.namesMax ?? 0) === 0 ? store() : inTurn(this.#deps, given.scope.tenant, store);
  }

  async #storeOnce(given: Skill, options: StoreSkillOptions): Promise<Skill | null> {
    const { baseVersion, words, namesMax = 0, setAside } = options;
    const { scope, name } = given;
    const { embedder, store } = this.#deps;
    const stored = await versionsOf(this.#deps, { scope, name });
    const versions = stored.map(({ skill }) => skill);
    const known = knownVersion(given, versions, words);
    if (known !== null) return this.#withChange(stored, known);
    const stale = baseVersion === undefined ? null : staleEdit(name, baseVersion, versions);
    if (stale !== null) throw stale;
    if (setAside === undefined && needsRoom(versions)) await requireRoomFor(store, { ...scope, name }, namesMax);
    const version = (versions[0]?.version ?? 0) + 1;
    const carried = withCarriedMarks(given, versions, options);
    const marked = withMarkOfCode(carried, await isMarkedIn(this.#deps, scope.tenant, codeToLookFor(carried, versions, options)));
    const made = newSkill(marked, version, options);
    const [done] = await store.write(scope.tenant, await insertsOf(embedder, [skillRecord(made, [])]));
    return done ? made : null;
  }

  async #withChange(stored: readonly StoredSkill[], { version, changed }: KnownVersion): Promise<Skill | null> {
    const known = stored.find(({ skill }) => skill === version);
    if (known === undefined || changed === null) return version;
    const [taken] = await this.#deps.store.write(version.scope.tenant, [skillUpdate(known, changed)]);
    return taken ? changed : null;
  }

  /**
   * A procedure in words, in use at once. Other words under its name are the next version, which goes on with its counts. It is a candidate
   * where a person decided on that name, and for words that are marked in the tenant (`toldProcedure`). Starts at a success rate of 0.5.
   *
   * @throws EtudeError FAILED_PRECONDITION for the name of a skill with code, for words that a person took out of use, and for a new name
   *   beyond `namesMax` (see `StoreSkillOptions`)
   */
  storeProcedure(...args: ProcedureArgs): Promise<Skill> {
    return storeProcedure(this.#deps, ...args);
  }

  async get(scope: ReadScope, name: string, version?: number): Promise<Skill | null> {
    const where = version === undefined ? { name } : { id: `${name}@${version}` };
    return narrowestNewest(await this.#stored(scope, { where }), scope.user);
  }

  list(scope: ReadScope, options: ListOptions): Promise<readonly Skill[]> {
    return listedSkills(this.#deps.store, scope, options);
  }

  async versions(owner: SkillOwner, name: string, status?: SkillStatus): Promise<readonly Skill[]> {
    const found = await ownedSkills(this.#deps.store, owner, { where: { name, ...(status === undefined ? {} : { status }) } });
    return found.map(({ skill }) => skill).toReversed();
  }

  async *every({ tenant, agent }: Pick<ReadScope, 'tenant' | 'agent'>, statuses?: readonly SkillStatus[]): AsyncGenerator<Skill> {
    const filter = { kinds: ['skill'], ...(statuses === undefined ? {} : { where: { status: statuses } }) } as const;
    const records = everyRecord(this.#deps.store, requireScope({ tenant, agent }), LAYER, filter, { size: PAGE });
    for await (const record of records) yield openedSkill(record).skill;
  }

  countNames(owner: SkillOwner, countMax: number): Promise<number> {
    return countNames(this.#deps.store, owner, countMax);
  }

  move(moves: readonly SkillMove[], options: MoveOptions = {}): Promise<readonly Skill[]> {
    return moveSkills(this.#deps, moves, options);
  }

  dependents(...[key, options]: Parameters<ProceduralMemory['dependents']>): Promise<readonly Skill[]> {
    return dependentsOf(this.#deps.store, key, options);
  }

  countOffers(keys: Parameters<ProceduralMemory['countOffers']>[0]): Promise<void> {
    return countOffers(this.#deps.store, keys);
  }

  /** `worthMin`: the lowest success rate. */
  async search(scope: ReadScope, query: LayerQuery): ReturnType<ProceduralMemory['search']> {
    const ranked = await searchLayer(this.#deps, scope, LAYER, query);
    return ranked.map(({ record, similarity, score, explanation }) => {
      const found = { skill: openedSkill(record).skill, similarity, score };
      return query.explain || 'rerankFailed' in explanation ? { ...found, explanation } : found;
    });
  }

  async byFingerprint(scope: ReadScope, fingerprint: string): Promise<readonly Skill[]> {
    requireScope(scope);
    const filter = { kinds: ['skill'], shown: true, where: { fingerprint, status: 'active' } } as const;
    const found = await this.#deps.store.find(scope, LAYER, filter, { order: 'newest', limit: SAME_TASK_MAX });
    return found.map((record) => openedSkill(record).skill).toSorted((a, b) => b.successRate - a.successRate);
  }

  async recordUse(useId: string, use: SkillUse): Promise<void> {
    await this.applyUse(useId, use);
  }

  /** Whether it was counted now. The skill may be another tenant's: then its record and the note of the use are two writes. */
  async applyUse(useId: string, use: SkillUse): Promise<boolean> {
    const { store } = this.#deps;
    const { tenant } = use.scope;
    requireScope(wholeTenant(use.scope));
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
      const changes = isKnown ? [] : [await this.#change(known, afterUse(known.skill, use), takenId)];
      const [taken = true] = await store.write(ownersTenant, isOwn ? [...changes, marker] : changes);
      if (!isKnown && !taken) return null;
      if (!isOwn) await store.write(tenant, [marker]);
      return !isKnown;
    });
  }

  /** Texts are embedded again only where they changed. */
  async #change({ record, skill, taken }: StoredSkill, changed: Skill, writeId: string): Promise<Change> {
    const update = skillUpdate({ record, taken: withTaken(taken, writeId) }, changed);
    if (changed.description === skill.description && changed.cues.length === skill.cues.length) return update;
    return { ...update, do: 'replace', indexed: await embedTexts(this.#deps.embedder, indexedTextsOf(update.record)) };
  }

  async #stored(scope: ReadScope, filter: RecordFilter): Promise<readonly Skill[]> {
    requireScope(scope);
    const found: Skill[] = [];
    const skills = everyRecord(this.#deps.store, scope, LAYER, { ...filter, kinds: ['skill'] }, { size: PAGE });
    for await (const record of skills) found.push(openedSkill(record).skill);
    return found;
  }
}

type ProcedureArgs = [
  writeId: string,
  scope: Skill['scope'],
  name: string,
  words: string,
  options?: Pick<StoreSkillOptions, 'namesMax' | 'by'>,
];

/**
 * The new version is stored before the earlier one goes out of use, so that one is always in use.
 * After a crash in between, the repeat or the next telling finishes it.
 */
async function storeProcedure(deps: LayerDeps, ...args: ProcedureArgs): Promise<Skill> {
  const [writeId, scope, name, words, { namesMax = 0, by = 'told' } = {}] = args;
  const { clock, store } = deps;
  requireScope(wholeTenant(scope));
  return inTurn(deps, scope.tenant, async () => {
    const isRepeat = await wasApplied(store, scope.tenant, LAYER, writeId);
    const stored = await untilTaken(`procedure ${name}`, async () => {
      const versions = await versionsOf(deps, { scope, name });
      const [newest] = versions;
      if (newest !== undefined && isRepeat) return newest.skill;
      return storeWords(deps, { writeId, namesMax, telling: { scope, name, words, by, at: clock.now() } }, versions);
    });
    if (!isRepeat) await store.write(scope.tenant, [markApplied(LAYER, scope, writeId, stored.updatedAt)]);
    return stored;
  });
}

/** Newest first. */
async function versionsOf({ store }: LayerDeps, { scope, name }: Pick<Skill, 'scope' | 'name'>): Promise<readonly StoredSkill[]> {
  return (await ownedSkills(store, scope, { where: { name } })).toReversed();
}

interface Write {
  readonly writeId: string;
  readonly namesMax: number;
  readonly telling: Telling;
}

/** null where another writer was faster. */
async function storeWords(deps: LayerDeps, { writeId, namesMax, telling }: Write, versions: readonly StoredSkill[]): Promise<Skill | null> {
  const { store, embedder } = deps;
  const { scope, name, words } = telling;
  const taken = versions.find((one) => one.taken.includes(writeId));
  if (taken !== undefined) return withoutReplaced(deps, telling, taken.skill, versions);
  const known = versions.map(({ skill }) => skill);
  const digest = codeDigest({ kind: 'procedure', code: '', entryPoint: null, description: words });
  const { version, isNew } = toldProcedure(telling, known, await isMarkedIn(deps, scope.tenant, digest));
  if (!isNew) return withoutReplaced(deps, telling, version, versions);
  if (needsRoom(known)) await requireRoomFor(store, { ...scope, name }, namesMax);
  const [done] = await store.write(scope.tenant, await insertsOf(embedder, [skillRecord(version, [writeId])]));
  return done ? withoutReplaced(deps, telling, version, await versionsOf(deps, telling)) : null;
}

/** Deprecates the versions that were told before. null where another writer was faster. */
async function withoutReplaced(
  { store }: LayerDeps,
  telling: Telling,
  skill: Skill,
  versions: readonly StoredSkill[],
): Promise<Skill | null> {
  const known = versions.map((one) => one.skill);
  const replaced = new Map(replacedByTelling(telling, known).map((one) => [one.version, one]));
  const changes = versions.flatMap((one) => {
    const after = replaced.get(one.skill.version);
    return after === undefined ? [] : [skillUpdate(one, after)];
  });
  const done = changes.length === 0 ? [] : await store.write(telling.scope.tenant, changes);
  return done.includes(false) ? null : (replaced.get(skill.version) ?? skill);
}

/** Looks in this tenant alone. `code`: the digest of code or words; null for neither. */
async function isMarkedIn({ store }: LayerDeps, tenant: string, code: string | null): Promise<boolean> {
  return code !== null && (await store.count({ tenant }, LAYER, { kinds: ['skill'], where: { subject: code } })) > 0;
}
