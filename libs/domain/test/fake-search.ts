import type { Scope } from '@etude/contracts/memory';
import type { ReadScope, SearchQuery } from '../src/ports/memory.js';
import type { SearchEntry } from '../src/retrieval/entries.js';
import { scoreOf } from '../src/retrieval/rank.js';
import { requireScope } from '../src/retrieval/scopes.js';
import { queryWordsOf, STOP_WORDS, wordsOf } from '../src/retrieval/words.js';

export interface FakeItem<T> {
  readonly record: T;
  readonly entry: SearchEntry;
}

export interface FakeFound<T> extends FakeItem<T> {
  readonly similarity: number;
  readonly score: number;
  readonly explanation?: Readonly<Record<string, number>>;
}

const DENSE_WEIGHT = 0.5;

/** Search over a list: similarity is the share of words in common, so 1 for the same words and 0 for none. */
export function fakeSearch<T>(items: readonly FakeItem<T>[], query: SearchQuery, now: number): FakeFound<T>[] {
  const { text, limit, similarityMin = 0 } = query;
  const near = items
    .map((item) => ({ ...item, similarity: similarityOf(text, item.entry.indexed) }))
    .filter(({ similarity }) => similarity > 0 && similarity >= similarityMin)
    .toSorted((a, b) => b.similarity - a.similarity);
  const best = near.filter((item, i) => near.findIndex((other) => isSameRow(other, item)) === i);
  return best
    .map((item) => {
      const { createdAt, worth } = item.entry;
      const rank = best.findIndex(({ similarity }) => similarity === item.similarity) + 1;
      const score = scoreOf({ denseRank: rank, wordsRank: rank, createdAt, worth }, { denseWeight: DENSE_WEIGHT, now });
      const explanation = { similarity: item.similarity, worth, ...score };
      return { ...item, score: score.score, ...(query.explain ? { explanation } : {}) };
    })
    .toSorted((a, b) => b.score - a.score)
    .slice(0, Math.max(0, limit));
}

/** Whether a record of this owner may be seen in this scope. */
export function isWithin(owner: Scope, scope: ReadScope): boolean {
  const { tenant, agent, user, also = [] } = requireScope(scope);
  const mayUser = typeof user !== 'string' || owner.user === null || owner.user === user;
  return owner.tenant === tenant && (agent === null || owner.agent === agent || also.includes(owner.agent)) && mayUser;
}

function isSameRow<T>(a: FakeItem<T>, b: FakeItem<T>): boolean {
  return a.record === b.record && a.entry.kind === b.entry.kind;
}

function similarityOf(left: string, right: string): number {
  const a = tellingWords(queryWordsOf(left).map((word) => word.text));
  const b = tellingWords(wordsOf(right).map((word) => word.text));
  const common = [...a].filter((word) => b.has(word)).length;
  return common === 0 ? 0 : common / Math.sqrt(a.size * b.size);
}

function tellingWords(words: readonly string[]): Set<string> {
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return new Set(telling.length > 0 ? telling : words);
}
