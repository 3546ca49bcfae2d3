import type { MemoryWrite, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ReadScope, StoreSkillOptions } from '@etude/domain/ports/memory';
import type { SkillKey, SkillMove, SkillOwner } from '@etude/domain/ports/skill-registry';
import { afterUse } from '@etude/domain/retrieval/reinforce';
import { requireScope, wholeTenant } from '@etude/domain/retrieval/scopes';
import { withCarriedMarks } from '@etude/domain/skills/hygiene/carried-marks';
import { newSkill, noSuchSkill } from '@etude/domain/skills/life/skill-life';
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
    const { by, baseVersion } = options;
    const { embedder, store } = this.#deps;
    const { scope, name } = given;
    requireScope(wholeTenant(scope));
    const { digest } = newSkill(given, 1);
    return untilTaken(`skill ${name}`, async () => {
      const versions = await this.versions(scope, name);
      const own = versions.filter((version) => version.scope.user === scope.user);
      const same = own.find((version) => version.digest === digest);
      if (same !== undefined) return same;
      const stale = baseVersion === undefined ? null : staleEdit(name, baseVersion, own);
      if (stale !== null) throw stale;
      const stored = newSkill(withCarriedMarks(given, versions, options), (versions[0]?.version ?? 0) + 1, by);
      const [taken] = await store.write(scope.tenant, await insertsOf(embedder, [skillRecord(stored, [])]));
      return taken ? stored : null;
    });
  }

  async storeProcedure(writeId: string, scope: Skill['scope'], name: string, prompt: string): Promise<Skill> {
    const { clock, embedder, store } = this.#deps;
    requireScope(wholeTenant(scope));
    const isRepeat = await wasApplied(store, scope.tenant, LAYER, writeId);
    const stored = await untilTaken(`procedure ${name}`, async () => {
      const versions = await this.#stored({ tenant: scope.tenant, agent: scope.agent }, { where: { name } });
      const known = versions.findLast(({ skill }) => skill.scope.user === scope.user);
      if (known !== undefined && (isRepeat || known.taken.includes(writeId))) return known.skill;
      const changed = known
        ? rewordedProcedure(known.skill, prompt, clock.now())
        : wordedProcedure({ scope, name, version: (versions.at(-1)?.skill.version ?? 0) + 1 }, prompt, clock.now());
      const changes = known ? [await this.#change(known, changed, writeId)] : await insertsOf(embedder, [skillRecord(changed, [writeId])]);
      return (await store.write(scope.tenant, changes))[0] ? changed : null;
    });
    if (!isRepeat) await store.write(scope.tenant, [markApplied(LAYER, scope, writeId, stored.updatedAt)]);
    return stored;
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

  dependents(key: Pick<SkillKey, 'tenant' | 'agent' | 'name'>): Promise<readonly Skill[]> {
    return dependentsOf(this.#deps.store, key);
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
