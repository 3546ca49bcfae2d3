import type { Fact } from '@etude/contracts/memory';
import type { Clock } from '../src/ports/clock.js';
import type { MemoryHit, ReadScope, SearchQuery, SemanticMemory } from '../src/ports/memory.js';
import { factEntry } from '../src/retrieval/entries.js';
import { reinforce } from '../src/retrieval/reinforce.js';
import { requireOwn, requireScope } from '../src/retrieval/scopes.js';
import { fakeHit } from './fake-episodic-memory.js';
import { fakeSearch, isWithin } from './fake-search.js';

/** Facts in a list. Passes the conformance suite; stands in for a store in domain tests. */
export class FakeSemanticMemory implements SemanticMemory {
  #facts: Fact[] = [];
  readonly #applied = new Set<string>();
  readonly #clock: Clock;

  constructor(clock: Clock = { now: () => 0 }) {
    this.#clock = clock;
  }

  async applyFacts(tenant: string, unitId: string, facts: readonly Fact[]): Promise<{ added: number; reinforced: number }> {
    if (await this.wasApplied(tenant, unitId)) return { added: 0, reinforced: 0 };
    facts.forEach((fact) => requireOwn(tenant, fact.scope));
    const added = facts.filter((fact) => this.#apply(structuredClone(fact))).length;
    this.#applied.add(JSON.stringify([tenant, unitId]));
    return { added, reinforced: facts.length - added };
  }

  async wasApplied(tenant: string, unitId: string): Promise<boolean> {
    requireScope({ tenant, agent: null });
    return this.#applied.has(JSON.stringify([tenant, unitId]));
  }

  async search(scope: ReadScope, query: SearchQuery): Promise<readonly MemoryHit[]> {
    const items = this.#visible(scope).map((record) => ({ record, entry: factEntry(record) }));
    return fakeSearch(items, query, this.#clock.now()).map((found) => fakeHit('semantic', found));
  }

  async list(scope: ReadScope, limit: number): Promise<readonly Fact[]> {
    return this.#visible(scope)
      .toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
      .slice(0, Math.max(0, limit));
  }

  /** Whether the fact is new. */
  #apply(fact: Fact): boolean {
    const known = this.#facts.find((other) => other.id === fact.id && isSameOwner(other, fact));
    if (known === undefined) this.#facts.push(fact);
    else this.#facts = this.#facts.map((other) => (other === known ? reinforce(known, fact) : other));
    return known === undefined;
  }

  #visible(scope: ReadScope): Fact[] {
    requireScope(scope);
    return this.#facts.filter((fact) => isWithin(fact.scope, scope)).map((fact) => structuredClone(fact));
  }
}

function isSameOwner(a: Fact, b: Fact): boolean {
  return a.scope.tenant === b.scope.tenant && a.scope.agent === b.scope.agent && a.scope.user === b.scope.user;
}
