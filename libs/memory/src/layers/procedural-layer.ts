import type { MemoryWrite, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ReadScope, StoreSkillOptions } from '@etude/domain/ports/memory';
import type { MoveOptions, SkillMove, SkillOwner } from '@etude/domain/ports/skill-registry';
import { afterUse } from '@etude/domain/retrieval/reinforce';
import { requireScope, wholeTenant } from '@etude/domain/retrieval/scopes';
import { codeToLookFor, withCarriedMarks, withMarkOfCode } from '@etude/domain/skills/life/marks';
import { type KnownVersion, knownVersion, staleEdit } from '@etude/domain/skills/life/known-version';
import { newSkill, noSuchSkill } from '@etude/domain/skills/life/skill-life';
import { needsRoom } from '@etude/domain/skills/life/register-skill';
import { ownersOfUse } from '@etude/domain/skills/life/usage';
import type { LayerQuery, ProceduralLayer } from '../memory.js';
import type { Change, RecordFilter } from '../record-store.js';
import { markApplied, wasApplied } from './applied-marker.js';
import { untilTaken } from './collisions.js';
import { everyRecord } from './every-record.js';
import type { LayerDeps } from './layer-deps.js';
import { searchLayer } from './memory-search.js';
import { insertsOf } from './record-inserts.js';
import { indexedTextsOf } from './record-texts.js';
import { moveSkills } from './skill-moves.js';
import { narrowestNewest, ownedSkills, versionsOfKeys } from './owned-skills.js';
import { listedSkills } from './listed-skills.js';
import { skillRecord, skillUpdate } from './skill-records.js';
import { placeFor } from './skill-room.js';
import { countNames, countOffers, dependentsOf } from './skill-registry-reads.js';
import { withTaken } from './stored-body.js';
import { openedSkill, type StoredSkill } from './stored-skill.js';
import { embedTexts } from './text-vectors.js';
import { storeProcedure } from './told-procedures.js';

type SkillUse = Extract<MemoryWrite, { kind: 'skill_use' }>;
type ListOptions = Parameters<ProceduralLayer['list']>[1];

const LAYER = 'procedural';
const PAGE = 64;
const SAME_TASK_MAX = 100;

/** Skills with their versions, found by name, description and cues while they are active. */
export class RecordProceduralLayer implements ProceduralLayer {
  readonly #deps: LayerDeps;

  constructor(deps: LayerDeps) {
    this.#deps = deps;
  }

  async store(given: Skill, options: StoreSkillOptions = {}): Promise<Skill> {
    requireScope(wholeTenant(given.scope));
    return untilTaken(`skill ${given.name}`, () => this.#storeOnce(given, options));
  }

  async #storeOnce(given: Skill, options: StoreSkillOptions): Promise<Skill | null> {
    const { baseVersion, words, namesMax = 0, setAside } = options;
    const { scope, name } = given;
    const { embedder, store } = this.#deps;
    const stored = (await ownedSkills(store, scope, { where: { name } })).toReversed();
    const versions = stored.map(({ skill }) => skill);
    const known = knownVersion(given, versions, words);
    if (known !== null) return this.#withChange(stored, known);
    const stale = baseVersion === undefined ? null : staleEdit(name, baseVersion, versions);
    if (stale !== null) throw stale;
    const version = (versions[0]?.version ?? 0) + 1;
    const takesRoom = setAside === undefined && needsRoom(versions);
    const place = takesRoom ? await placeFor(this.#deps, { ...scope, name, version }, namesMax) : [];
    const carried = withCarriedMarks(given, versions, options);
    const marked = withMarkOfCode(carried, await this.#isMarked(carried, versions, options));
    const made = newSkill(marked, version, options);
    const done = await store.write(scope.tenant, [...place, ...(await insertsOf(embedder, [skillRecord(made, [])]))]);
    return done.at(-1) === true ? made : null;
  }

  async #withChange(stored: readonly StoredSkill[], { version, changed }: KnownVersion): Promise<Skill | null> {
    const known = stored.find(({ skill }) => skill === version);
    if (known === undefined || changed === null) return version;
    const [taken] = await this.#deps.store.write(version.scope.tenant, [skillUpdate(known, changed)]);
    return taken ? changed : null;
  }

  /** Looked up by the code's digest, in this tenant alone. */
  async #isMarked(given: Skill, versions: readonly Skill[], options: StoreSkillOptions): Promise<boolean> {
    const code = codeToLookFor(given, versions, options);
    if (code === null) return false;
    return (await this.#deps.store.count({ tenant: given.scope.tenant }, LAYER, { kinds: ['skill'], where: { subject: code } })) > 0;
  }

  storeProcedure(...args: Parameters<ProceduralLayer['storeProcedure']>): Promise<Skill> {
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

  dependents(...[key, options]: Parameters<ProceduralLayer['dependents']>): Promise<readonly Skill[]> {
    return dependentsOf(this.#deps.store, key, options);
  }

  countOffers(keys: Parameters<ProceduralLayer['countOffers']>[0]): Promise<void> {
    return countOffers(this.#deps.store, keys);
  }

  async search(scope: ReadScope, query: LayerQuery): ReturnType<ProceduralLayer['search']> {
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
