import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { MemoryWrite, Scope, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { Clock } from '../ports/clock.js';
import type { ProceduralMemory, ReadScope, SearchQuery, StoreSkillOptions } from '../ports/memory.js';
import type { ProofChecker } from '../ports/proof-signer.js';
import type { SkillKey, SkillMove, SkillOwner } from '../ports/skill-registry.js';
import { skillEntries } from '../retrieval/entries.js';
import { afterUse } from '../retrieval/reinforce.js';
import { requireScope, wholeTenant } from '../retrieval/scopes.js';
import { requireOnlyActive } from '../skills/life/one-active.js';
import { codeToLookFor, markedCode, withCarriedMarks, withMarkOfCode } from '../skills/hygiene/carried-marks.js';
import { knownVersion } from '../skills/life/known-version.js';
import { keyOf, movedSkill, newSkill, noSuchSkill } from '../skills/life/skill-life.js';
import { needsRoom, requireRoom } from '../skills/life/skill-room.js';
import { afterOffer, ownerOfUse } from '../skills/life/skill-usage.js';
import { staleEdit } from '../skills/life/stale-edit.js';
import { fakeSearch, isWithin } from './fake-search.js';

const CALLING: ReadonlySet<SkillStatus> = new Set(['active', 'pending_review']);

/** Skills in a list. Passes the conformance suite; stands in for a store in domain tests. */
export class FakeProceduralMemory implements ProceduralMemory {
  #skills: Skill[] = [];
  readonly #uses = new Set<string>();
  readonly #clock: Clock;
  readonly #checker: ProofChecker | null;

  /** Without a checker any signature is believed. */
  constructor(clock: Clock = { now: () => 0 }, checker: ProofChecker | null = null) {
    this.#clock = clock;
    this.#checker = checker;
  }

  /** Skills as they are, whatever their life was: for tests that begin in the middle of it. */
  keep(...skills: readonly Skill[]): this {
    this.#skills.push(...structuredClone(skills));
    return this;
  }

  async store(given: Skill, options: StoreSkillOptions = {}): Promise<Skill> {
    const { by, baseVersion, words, namesMax = 0 } = options;
    const { scope, name } = given;
    requireScope(wholeTenant(scope));
    const versions = this.#versions(scope, name);
    const own = versions.filter((version) => version.scope.user === scope.user);
    const known = knownVersion(given, own, words);
    if (known !== null) return known.changed === null ? known.version : this.#replace(this.#find(keyOf(known.version)), known.changed);
    const stale = baseVersion === undefined ? null : staleEdit(name, baseVersion, own);
    if (stale !== null) throw stale;
    if (needsRoom(versions) && namesMax > 0) requireRoom(scope, this.#names(scope), namesMax);
    const carried = withCarriedMarks(given, versions, options);
    const marked = withMarkOfCode(carried, this.#isMarked(carried, versions, options));
    const stored = newSkill(marked, (versions[0]?.version ?? 0) + 1, by);
    this.#skills.push(stored);
    return structuredClone(stored);
  }

  async get(scope: ReadScope, name: string, version?: number): Promise<Skill | null> {
    const found = this.#visible(scope)
      .filter((skill) => skill.name === name && (version === undefined || skill.version === version))
      .toSorted((a, b) => b.version - a.version);
    return structuredClone(found[0] ?? null);
  }

  async list(scope: ReadScope, options: Parameters<ProceduralMemory['list']>[1]): Promise<readonly Skill[]> {
    const { status, category, limit, afterName, afterAgent } = options;
    const matching = this.#visible(scope).filter(
      (skill) => (status === undefined || skill.status === status) && (category === undefined || isBelow(skill.category, category)),
    );
    return matching
      .filter((skill) => !matching.some((other) => isSameSkill(other, skill) && other.version > skill.version))
      .filter(
        ({ name, scope: owner }) =>
          afterName === undefined || name > afterName || (name === afterName && afterAgent !== undefined && owner.agent > afterAgent),
      )
      .toSorted((a, b) => compare(a.name, b.name) || compare(a.scope.agent, b.scope.agent))
      .slice(0, Math.max(0, limit))
      .map((skill) => structuredClone(skill));
  }

  async versions({ tenant, agent }: SkillOwner, name: string, status?: SkillStatus): Promise<readonly Skill[]> {
    return this.#versions({ tenant, agent }, name).filter((skill) => status === undefined || skill.status === status);
  }

  async countNames({ tenant, agent }: SkillOwner, countMax: number): Promise<number> {
    return Math.min(countMax, this.#names({ tenant, agent }));
  }

  async move(moves: readonly SkillMove[]): Promise<readonly Skill[]> {
    if (new Set(moves.map(({ key }) => key?.tenant)).size > 1)
      throw new EtudeError('INVALID_ARGUMENT', 'skills of several tenants were to be moved at once; move those of each by themselves');
    const before = this.#skills;
    try {
      const moved = moves.map((move) => {
        const known = this.#find(move.key);
        return [known, this.#replace(known, movedSkill(known, structuredClone(move), this.#checker))] as const;
      });
      for (const [known, skill] of moved)
        if (known.status !== 'active' && skill.status === 'active') requireOnlyActive(skill, this.#skills);
      return moved.map(([{ scope, name, version }]) => structuredClone(this.#find({ ...scope, name, version })));
    } catch (error) {
      this.#skills = before;
      throw error;
    }
  }

  async dependents(
    { tenant, agent, name }: Pick<SkillKey, 'tenant' | 'agent' | 'name'>,
    { all = false }: { readonly all?: boolean } = {},
  ): Promise<readonly Skill[]> {
    requireScope({ tenant, agent });
    return this.#skills
      .filter(({ scope, status }) => (tenant === GLOBAL_TENANT || scope.tenant === tenant) && (all || CALLING.has(status)))
      .filter(({ dependencies = [] }) => dependencies.some((one) => one.name === name && one.agent === agent && one.tenant === tenant))
      .map((skill) => structuredClone(skill));
  }

  async countOffers(keys: Parameters<ProceduralMemory['countOffers']>[0]): Promise<void> {
    const names = new Set(keys.map((key) => JSON.stringify([key.tenant, key.agent, key.name, key.version])));
    for (const { tenant, agent } of keys) requireScope({ tenant, agent });
    this.#skills = this.#skills.map((skill) =>
      names.has(JSON.stringify([skill.scope.tenant, skill.scope.agent, skill.name, skill.version])) ? afterOffer(skill) : skill,
    );
  }

  async search(scope: ReadScope, query: SearchQuery): ReturnType<ProceduralMemory['search']> {
    const items = this.#active(scope).flatMap((record) => skillEntries(record).map((entry) => ({ record, entry })));
    return fakeSearch(items, query, this.#clock.now()).map(({ record, similarity, score, explanation }) => {
      const found = { skill: structuredClone(record), similarity, score };
      return explanation === undefined ? found : { ...found, explanation };
    });
  }

  async byFingerprint(scope: ReadScope, fingerprint: string): Promise<readonly Skill[]> {
    return this.#active(scope)
      .filter((skill) => skill.fingerprints.includes(fingerprint))
      .toReversed()
      .toSorted((a, b) => b.successRate - a.successRate)
      .map((skill) => structuredClone(skill));
  }

  async recordUse(useId: string, use: Extract<MemoryWrite, { kind: 'skill_use' }>): Promise<void> {
    requireScope(wholeTenant(use.scope));
    const key = JSON.stringify([use.scope.tenant, useId]);
    if (this.#uses.has(key)) return;
    const used = this.#find({ ...ownerOfUse(use), name: use.name, version: use.version });
    this.#uses.add(key);
    this.#replace(used, afterUse(used, use));
  }

  #names({ tenant, agent }: SkillOwner): number {
    const kept = this.#visible({ tenant, agent }).filter((skill) => !needsRoom([skill]));
    return new Set(kept.map(({ name }) => name)).size;
  }

  #isMarked(given: Skill, versions: readonly Skill[], options: StoreSkillOptions): boolean {
    const code = codeToLookFor(given, versions, options);
    return code !== null && this.#visible({ tenant: given.scope.tenant, agent: null }).some((skill) => markedCode(skill) === code);
  }

  #versions({ tenant, agent }: SkillOwner, name: string): readonly Skill[] {
    return this.#visible({ tenant, agent })
      .filter((skill) => skill.name === name)
      .toSorted((a, b) => b.version - a.version)
      .map((skill) => structuredClone(skill));
  }

  #find({ tenant, agent, name, version }: Omit<SkillKey, 'digest'>): Skill {
    requireScope({ tenant, agent });
    const found = this.#skills.find(
      (skill) => skill.name === name && skill.version === version && skill.scope.tenant === tenant && skill.scope.agent === agent,
    );
    if (found === undefined) throw noSuchSkill({ name, version });
    return found;
  }

  #replace(old: Skill, changed: Skill): Skill {
    this.#skills = this.#skills.map((skill) => (skill === old ? changed : skill));
    return structuredClone(changed);
  }

  #visible(scope: ReadScope): Skill[] {
    requireScope(scope);
    return this.#skills.filter((skill) => isWithin(skill.scope, scope));
  }

  #active(scope: ReadScope): Skill[] {
    return this.#visible(scope).filter(({ status }) => status === 'active');
  }
}

function isSameAgent(a: Scope, b: Scope): boolean {
  return a.tenant === b.tenant && a.agent === b.agent;
}

function isBelow(category: string | undefined, wanted: string): boolean {
  return category === wanted || (category?.startsWith(`${wanted}.`) ?? false);
}

function isSameSkill(a: Skill, b: Skill): boolean {
  return a.name === b.name && isSameAgent(a.scope, b.scope);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
