import type { Episode, Scope, Transition } from '@etude/contracts/memory';
import type { Clock } from '../src/ports/clock.js';
import type { EpisodicMemory, MemoryHit, ReadScope, SearchQuery } from '../src/ports/memory.js';
import { episodeEntry, transitionEntry } from '../src/retrieval/entries.js';
import { requireScope, wholeTenant } from '../src/retrieval/scopes.js';
import type { FakeFound } from './fake-search.js';
import { fakeSearch, isWithin } from './fake-search.js';

/** Episodes in lists. Passes the conformance suite; stands in for a store in domain tests. */
export class FakeEpisodicMemory implements EpisodicMemory {
  readonly #transitions: Transition[] = [];
  readonly #episodes: Episode[] = [];
  readonly #clock: Clock;

  constructor(clock: Clock = { now: () => 0 }) {
    this.#clock = clock;
  }

  async storeTransition(transition: Transition): Promise<void> {
    addOnce(this.#transitions, transition);
  }

  async storeEpisode(episode: Episode): Promise<void> {
    addOnce(this.#episodes, episode);
  }

  async search(scope: ReadScope, query: SearchQuery): Promise<readonly MemoryHit[]> {
    const items = [
      ...visible(this.#transitions, scope).map((record) => ({ record, entry: transitionEntry(record) })),
      ...visible(this.#episodes, scope).map((record) => ({ record, entry: episodeEntry(record) })),
    ];
    return fakeSearch<Transition | Episode>(items, query, this.#clock.now()).map((found) => fakeHit('episodic', found));
  }

  async recent(scope: ReadScope, sinceMs: number, limit: number): Promise<readonly Episode[]> {
    return visible(this.#episodes, scope)
      .filter((episode) => episode.createdAt >= sinceMs)
      .toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1))
      .slice(0, Math.max(0, limit));
  }

  async transitions(scope: ReadScope, rolloutId: string): Promise<readonly Transition[]> {
    return visible(this.#transitions, scope)
      .filter((transition) => transition.rolloutId === rolloutId)
      .toSorted((a, b) => a.attempt - b.attempt);
  }
}

export function fakeHit<T extends { readonly id: string; readonly scope: Scope }>(
  layer: MemoryHit['layer'],
  found: FakeFound<T>,
): MemoryHit {
  const { record, entry, similarity, score, explanation } = found;
  const { kind, title, text, sources, createdAt } = entry;
  const hit = { id: record.id, layer, kind, title, text, sources, createdAt, agent: record.scope.agent, similarity, score };
  return explanation === undefined ? hit : { ...hit, explanation };
}

function addOnce<T extends { readonly id: string; readonly scope: Scope }>(records: T[], record: T): void {
  requireScope(wholeTenant(record.scope));
  const known = records.some(({ id, scope }) => id === record.id && scope.tenant === record.scope.tenant);
  if (!known) records.push(structuredClone(record));
}

function visible<T extends { readonly scope: Scope }>(records: readonly T[], scope: ReadScope): T[] {
  requireScope(scope);
  return records.filter((record) => isWithin(record.scope, scope)).map((record) => structuredClone(record));
}
