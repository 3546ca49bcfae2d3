import type { MemoryWrite, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ReadScope } from '@etude/domain/ports/memory';
import { afterUse } from '@etude/domain/retrieval/reinforce';
import { requireScope, wholeTenant } from '@etude/domain/retrieval/scopes';
import { notFound, withStatus } from '@etude/domain/retrieval/skill-status';
import type { SkillKey } from '@etude/domain/retrieval/skill-status';
import type { LayerQuery, ProceduralLayer } from '../memory.js';
import type { Change, RecordFilter, StoredRecord } from '../record-store.js';
import { markApplied, wasApplied } from './applied-marker.js';
import { untilTaken } from './collisions.js';
import { everyRecord } from './every-record.js';
import type { LayerDeps } from './layer-deps.js';
import { searchLayer } from './memory-search.js';
import { insertsOf } from './record-inserts.js';
import { indexedTextsOf } from './record-texts.js';
import { keyBehind, skillKey, skillRecord } from './skill-records.js';
import { parseBody, withTaken } from './stored-body.js';
import { embedTexts } from './text-vectors.js';
import { rewordedProcedure, wordedProcedure } from './worded-procedure.js';

type SkillUse = Extract<MemoryWrite, { kind: 'skill_use' }>;
type ListOptions = { status?: SkillStatus; limit: number; afterName?: string; afterAgent?: string };

interface StoredSkill {
  readonly record: StoredRecord;
  readonly skill: Skill;
  readonly taken: readonly string[];
}

const LAYER = 'procedural';
const PAGE = 64;
const SAME_TASK_MAX = 100;

/** Skills with their versions, found by name, description and cues while they are active. */
export class RecordProceduralLayer implements ProceduralLayer {
  readonly #deps: LayerDeps;

  constructor(deps: LayerDeps) {
    this.#deps = deps;
  }

  async store(skill: Skill): Promise<Skill> {
    const { embedder, store } = this.#deps;
    const { scope, name, digest } = skill;
    requireScope(wholeTenant(scope));
    return untilTaken(`skill ${name}`, async () => {
      const versions = await this.#versions({ tenant: scope.tenant, agent: scope.agent }, { where: { name } });
      const same = versions.find((version) => version.digest === digest && version.scope.user === scope.user);
      if (same !== undefined) return same;
      const stored = { ...skill, version: (versions.at(-1)?.version ?? 0) + 1 };
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
  async list(scope: ReadScope, { status, limit, afterName, afterAgent }: ListOptions): Promise<readonly Skill[]> {
    requireScope(scope);
    if (!(limit > 0)) return [];
    const page = { size: Math.min(limit * 2, PAGE), ...(afterName === undefined ? {} : { afterKey: keyBehind(afterName, afterAgent) }) };
    const newest = new Map<string, Skill>();
    for await (const record of everyRecord(this.#deps.store, scope, LAYER, { kinds: ['skill'], ...withStatusOf(status) }, page)) {
      const { skill } = opened(record);
      const name = `${skill.name} ${skill.scope.agent}`;
      if (newest.size === limit && !newest.has(name)) break;
      newest.set(name, skill);
    }
    return [...newest.values()];
  }

  async setStatus(
    scope: ReadScope,
    key: SkillKey,
    from: readonly SkillStatus[],
    to: SkillStatus,
    reason: string,
    evidence: readonly string[],
    at: number,
  ): Promise<Skill> {
    return untilTaken(`skill ${key.name}@${key.version}`, async () => {
      const found = await this.#stored(scope, { where: { id: `${key.name}@${key.version}` } });
      const meant = found.find(({ skill }) => skill.digest === key.digest) ?? found[0];
      if (meant === undefined) throw notFound(key);
      const changed = withStatus(meant.skill, key, from, { to, reason, evidence, at });
      const { revision } = meant.record;
      const change: Change = { do: 'update', record: skillRecord(changed, meant.taken), revision };
      return (await this.#deps.store.write(scope.tenant, [change]))[0] ? changed : null;
    });
  }

  async search(scope: ReadScope, query: LayerQuery): ReturnType<ProceduralLayer['search']> {
    const ranked = await searchLayer(this.#deps, scope, LAYER, query);
    return ranked.map(({ record, similarity, score, explanation }) => {
      const found = { skill: opened(record).skill, similarity, score };
      return query.explain || 'rerankFailed' in explanation ? { ...found, explanation } : found;
    });
  }

  async byFingerprint(scope: ReadScope, fingerprint: string): Promise<readonly Skill[]> {
    requireScope(scope);
    const filter = { kinds: ['skill'], shown: true, where: { fingerprint, status: 'active' } } as const;
    const found = await this.#deps.store.find(scope, LAYER, filter, { order: 'newest', limit: SAME_TASK_MAX });
    return found.map((record) => opened(record).skill).toSorted((a, b) => b.successRate - a.successRate);
  }

  async recordUse(useId: string, use: SkillUse): Promise<void> {
    await this.applyUse(useId, use);
  }

  /** Whether it was counted now. */
  async applyUse(useId: string, use: SkillUse): Promise<boolean> {
    const { store } = this.#deps;
    const { tenant, agent } = use.scope;
    const whole = requireScope(wholeTenant(use.scope));
    if (await wasApplied(store, tenant, LAYER, useId)) return false;
    const marker = markApplied(LAYER, use.scope, useId, use.at);
    return untilTaken(`skill ${use.name}@${use.version}`, async () => {
      const [record] = await store.load(whole, LAYER, 'skill', [skillKey({ ...use, agent })]);
      if (record === undefined) throw notFound(use);
      const known = opened(record);
      const isKnown = known.taken.includes(useId);
      const changes = isKnown ? [marker] : [await this.#change(known, afterUse(known.skill, use), useId), marker];
      const [taken] = await store.write(tenant, changes);
      if (isKnown) return false;
      return taken ? true : null;
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
    for await (const record of skills) found.push(opened(record));
    return found;
  }
}

function withStatusOf(status: SkillStatus | undefined): RecordFilter {
  return status === undefined ? {} : { where: { status } };
}

function opened(record: StoredRecord): StoredSkill {
  const { value, taken } = parseBody<Skill>(record);
  return { record, skill: value, taken };
}
