import type { MemoryWrite, Scope, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { Clock } from '../ports/clock.js';
import type { ProceduralMemory, ReadScope, SearchQuery } from '../ports/memory.js';
import { skillEntries } from '../retrieval/entries.js';
import { afterUse } from '../retrieval/reinforce.js';
import { requireScope, wholeTenant } from '../retrieval/scopes.js';
import type { SkillKey } from '../retrieval/skill-status.js';
import { notFound, withStatus } from '../retrieval/skill-status.js';
import { fakeSearch, isWithin } from './fake-search.js';

/** Skills in a list. Passes the conformance suite; stands in for a store in domain tests. */
export class FakeProceduralMemory implements ProceduralMemory {
  #skills: Skill[] = [];
  readonly #uses = new Set<string>();
  readonly #clock: Clock;

  constructor(clock: Clock = { now: () => 0 }) {
    this.#clock = clock;
  }

  async store(skill: Skill): Promise<Skill> {
    requireScope(wholeTenant(skill.scope));
    const versions = this.#skills.filter((other) => other.name === skill.name && isSameAgent(other.scope, skill.scope));
    const same = versions.find(({ digest, scope }) => digest === skill.digest && scope.user === skill.scope.user);
    const stored = same ?? { ...structuredClone(skill), version: Math.max(0, ...versions.map(({ version }) => version)) + 1 };
    if (same === undefined) this.#skills.push(stored);
    return structuredClone(stored);
  }

  async get(scope: ReadScope, name: string, version?: number): Promise<Skill | null> {
    const found = this.#visible(scope)
      .filter((skill) => skill.name === name && (version === undefined || skill.version === version))
      .toSorted((a, b) => b.version - a.version);
    return structuredClone(found[0] ?? null);
  }

  async list(
    scope: ReadScope,
    options: { status?: SkillStatus; limit: number; afterName?: string; afterAgent?: string },
  ): Promise<readonly Skill[]> {
    const { status, limit, afterName, afterAgent } = options;
    const matching = this.#visible(scope).filter((skill) => status === undefined || skill.status === status);
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

  async setStatus(
    scope: ReadScope,
    key: SkillKey,
    from: readonly SkillStatus[],
    to: SkillStatus,
    reason: string,
    evidence: readonly string[],
    at: number,
  ): Promise<Skill> {
    const found = this.#visible(scope).filter(({ name, version }) => name === key.name && version === key.version);
    const meant = found.find(({ digest }) => digest === key.digest) ?? found[0];
    if (meant === undefined) throw notFound(key);
    return this.#replace(meant, withStatus(meant, key, from, { to, reason, evidence, at }));
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
    const used = this.#skills.find(
      ({ name, version, scope }) => name === use.name && version === use.version && isSameAgent(scope, use.scope),
    );
    if (used === undefined) throw notFound(use);
    this.#uses.add(key);
    this.#replace(used, afterUse(used, use));
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

function isSameSkill(a: Skill, b: Skill): boolean {
  return a.name === b.name && isSameAgent(a.scope, b.scope);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
