import type { MemoryWrite, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ReadScope, StoreSkillOptions } from '@etude/domain/ports/memory';
import type { SkillMove, SkillOwner } from '@etude/domain/ports/skill-registry';
import { afterUse } from '@etude/domain/retrieval/reinforce';
import { requireScope, wholeTenant } from '@etude/domain/retrieval/scopes';
import { codeToLookFor, withCarriedMarks, withMarkOfCode } from '@etude/domain/skills/hygiene/carried-marks';
import { type KnownVersion, knownVersion } from '@etude/domain/skills/life/known-version';
import { newSkill, noSuchSkill } from '@etude/domain/skills/life/skill-life';
import { needsRoom } from '@etude/domain/skills/life/skill-room';
import { ownerOfUse } from '@etude/domain/skills/life/skill-usage';
import { staleEdit } from '@etude/domain/skills/life/stale-edit';
import type { LayerQuery, ProceduralLayer } from '../memory.js';
import type { Change, Fields, RecordFilter } from '../record-store.js';
import { markApplied, wasApplied } from './applied-marker.js';
import { untilTaken } from './collisions.js';
import { everyRecord } from './every-record.js';
import type { LayerDeps } from './layer-deps.js';
import { searchLayer } from './memory-search.js';
import { insertsOf } from './record-inserts.js';
import { indexedTextsOf } from './record-texts.js';
import { moveSkills } from './skill-moves.js';
import { keyBehind, skillKey, skillRecord } from './skill-records.js';
import { placeFor } from './skill-room.js';
import { countNames, countOffers, dependentsOf } from './skill-registry-reads.js';
import { withTaken } from './stored-body.js';
import { openedSkill, type StoredSkill } from './stored-skill.js';
import { embedTexts } from './text-vectors.js';
import { rewordedProcedure, wordedProcedure } from './worded-procedure.js';

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
    const { by, baseVersion, words, namesMax = 0 } = options;
    const { scope, name } = given;
    const { tenant, agent } = scope;
    const { embedder, store } = this.#deps;
    const stored = (await this.#stored({ tenant, agent }, { where: { name } })).toReversed();
    const versions = stored.map(({ skill }) => skill);
    const own = versions.filter((version) => version.scope.user === scope.user);
    const known = knownVersion(given, own, words);
    if (known !== null) return this.#withChange(stored, known);
    const stale = baseVersion === undefined ? null : staleEdit(name, baseVersion, own);
    if (stale !== null) throw stale;
    const version = (versions[0]?.version ?? 0) + 1;
    const place = needsRoom(versions) ? await placeFor(this.#deps, { tenant, agent, name, version }, namesMax) : [];
    const carried = withCarriedMarks(given, versions, options);
    const marked = withMarkOfCode(carried, await this.#isMarked(carried, versions, options));
    const made = newSkill(marked, version, by);
    const done = await store.write(tenant, [...place, ...(await insertsOf(embedder, [skillRecord(made, [])]))]);
    return done.at(-1) === true ? made : null;
  }

  async #withChange(stored: readonly StoredSkill[], { version, changed }: KnownVersion): Promise<Skill | null> {
    const known = stored.find(({ skill }) => skill === version);
    if (known === undefined || changed === null) return version;
    const record = skillRecord(changed, known.taken);
    const [taken] = await this.#deps.store.write(version.scope.tenant, [{ do: 'update', record, revision: known.record.revision }]);
    return taken ? changed : null;
  }

  /** Looked up by the code's digest, in this tenant alone. */
  async #isMarked(given: Skill, versions: readonly Skill[], options: StoreSkillOptions): Promise<boolean> {
    const code = codeToLookFor(given, versions, options);
    if (code === null) return false;
    return (await this.#deps.store.count({ tenant: given.scope.tenant }, LAYER, { kinds: ['skill'], where: { subject: code } })) > 0;
  }

  async storeProcedure(...[writeId, scope, name, prompt, { namesMax = 0 } = {}]: Parameters<ProceduralLayer['storeProcedure']>) {
    const { clock, store } = this.#deps;
    requireScope(wholeTenant(scope));
    const isRepeat = await wasApplied(store, scope.tenant, LAYER, writeId);
    const stored = await untilTaken(`procedure ${name}`, async () => {
      const versions = await this.#stored({ tenant: scope.tenant, agent: scope.agent }, { where: { name } });
      const known = versions.findLast(({ skill }) => skill.scope.user === scope.user);
      if (known === undefined) return this.#newProcedure(writeId, { scope, name, prompt, namesMax }, versions);
      if (isRepeat || known.taken.includes(writeId)) return known.skill;
      const changed = rewordedProcedure(known.skill, prompt, clock.now());
      const [taken] = await store.write(scope.tenant, [await this.#change(known, changed, writeId)]);
      return taken ? changed : null;
    });
    if (!isRepeat) await store.write(scope.tenant, [markApplied(LAYER, scope, writeId, stored.updatedAt)]);
    return stored;
  }

  async #newProcedure(
    writeId: string,
    { scope, name, prompt, namesMax }: Pick<Skill, 'scope' | 'name'> & { readonly prompt: string; readonly namesMax: number },
    versions: readonly StoredSkill[],
  ): Promise<Skill | null> {
    const { clock, embedder, store } = this.#deps;
    const { tenant, agent } = scope;
    const version = (versions.at(-1)?.skill.version ?? 0) + 1;
    const isNew = needsRoom(versions.map(({ skill }) => skill));
    const place = isNew ? await placeFor(this.#deps, { tenant, agent, name, version }, namesMax) : [];
    const made = wordedProcedure({ scope, name, version }, prompt, clock.now());
    const done = await store.write(tenant, [...place, ...(await insertsOf(embedder, [skillRecord(made, [writeId])]))]);
    return done.at(-1) === true ? made : null;
  }

  async get(scope: ReadScope, name: string, version?: number): Promise<Skill | null> {
    const where = version === undefined ? { name } : { id: `${name}@${version}` };
    const found = await this.#versions(scope, { where });
    return found.reduce<Skill | null>((newest, skill) => (newest === null || skill.version > newest.version ? skill : newest), null);
  }

  /** Keys sort by name, agent and version, so that the last of its kind is the newest. */
  async list(scope: ReadScope, { status, category, limit, afterName, afterAgent }: ListOptions): Promise<readonly Skill[]> {
    requireScope(scope);
    if (!(limit > 0)) return [];
    const page = { size: Math.min(limit * 2, PAGE), ...(afterName === undefined ? {} : { afterKey: keyBehind(afterName, afterAgent) }) };
    const newest = new Map<string, Skill>();
    for await (const record of everyRecord(
      this.#deps.store,
      scope,
      LAYER,
      { kinds: ['skill'], where: whereOf({ status, category }) },
      page,
    )) {
      const { skill } = openedSkill(record);
      const name = `${skill.name} ${skill.scope.agent}`;
      if (newest.size === limit && !newest.has(name)) break;
      newest.set(name, skill);
    }
    return [...newest.values()];
  }

  async versions({ tenant, agent }: SkillOwner, name: string, status?: SkillStatus): Promise<readonly Skill[]> {
    const found = await this.#versions({ tenant, agent }, { where: { name, ...(status === undefined ? {} : { status }) } });
    return found.toReversed();
  }

  countNames(owner: SkillOwner, countMax: number): Promise<number> {
    return countNames(this.#deps.store, owner, countMax);
  }

  move(moves: readonly SkillMove[]): Promise<readonly Skill[]> {
    return moveSkills(this.#deps, moves);
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
    const owner = ownerOfUse(use);
    if (await wasApplied(store, tenant, LAYER, useId)) return false;
    const isOwn = owner.tenant === tenant;
    const takenId = isOwn ? useId : `${tenant} ${useId}`;
    const marker = markApplied(LAYER, use.scope, useId, use.at);
    return untilTaken(`skill ${use.name}@${use.version}`, async () => {
      const [record] = await store.load({ tenant: owner.tenant, agent: null }, LAYER, 'skill', [skillKey({ ...use, agent: owner.agent })]);
      if (record === undefined) throw noSuchSkill(use);
      const known = openedSkill(record);
      const isKnown = known.taken.includes(takenId);
      const changes = isKnown ? [] : [await this.#change(known, afterUse(known.skill, use), takenId)];
      const [taken = true] = await store.write(owner.tenant, isOwn ? [...changes, marker] : changes);
      if (!isKnown && !taken) return null;
      if (!isOwn) await store.write(tenant, [marker]);
      return !isKnown;
    });
  }

  /** Texts are embedded again only where they changed. */
  async #change({ record, skill, taken }: StoredSkill, changed: Skill, writeId: string): Promise<Change> {
    const { revision } = record;
    const next = skillRecord(changed, withTaken(taken, writeId));
    if (changed.description === skill.description && changed.cues.length === skill.cues.length)
      return { do: 'update', record: next, revision };
    return { do: 'replace', record: next, indexed: await embedTexts(this.#deps.embedder, indexedTextsOf(next)), revision };
  }

  async #versions(scope: ReadScope, filter: RecordFilter): Promise<readonly Skill[]> {
    return (await this.#stored(scope, filter)).map(({ skill }) => skill);
  }

  /** By name, agent and version. Versions are counted per agent, whoever the user was. */
  async #stored(scope: ReadScope, filter: RecordFilter): Promise<readonly StoredSkill[]> {
    requireScope(scope);
    const found: StoredSkill[] = [];
    const skills = everyRecord(this.#deps.store, scope, LAYER, { ...filter, kinds: ['skill'] }, { size: PAGE });
    for await (const record of skills) found.push(openedSkill(record));
    return found;
  }
}

function whereOf(wanted: { readonly status: SkillStatus | undefined; readonly category: string | undefined }): Fields {
  return Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined));
}
