import type { Scope } from '@etude/contracts/memory';
import { type ReadScope, requireScope, type SearchQuery } from '../src/ports/memory.js';
import { bm25Scores, termCounts } from '../src/retrieval/words.js';
import { cosineOf } from '../src/retrieval/calibration.js';
import type { SearchEntry } from '../src/retrieval/entries.js';
import { fusedScore } from '../src/retrieval/fuse.js';
import { LexicalEmbedder } from '../src/retrieval/lexical-embedder.js';

export interface FakeItem<T> {
  readonly record: T;
  readonly entry: SearchEntry;
}

export interface FakeFound<T> extends FakeItem<T> {
  readonly similarity: number;
  readonly score: number;
  readonly explanation?: Readonly<Record<string, number>>;
}

const embedder = new LexicalEmbedder();

/** Searches a list, with the same scores as the stores. A record with several entries is found once, by its closest entry. */
export async function fakeSearch<T>(items: readonly FakeItem<T>[], query: SearchQuery, now: number): Promise<FakeFound<T>[]> {
  const { profile } = embedder;
  const [asked = new Float32Array(), ...vectors] = await embedder.embed([query.text, ...items.map(({ entry }) => entry.indexed)]);
  const bm25 = bm25Scores(
    query.text,
    items.map(({ entry }) => termCounts([entry.indexed])),
  );
  const found = items.map((item, at) => {
    const cosine = cosineOf(asked, vectors[at] ?? asked);
    const { createdAt, worth } = item.entry;
    const score = fusedScore({ createdAt, worth, cosine, bm25: bm25[at] ?? 0 }, { ...profile, now });
    const similarity = profile.calibrate(cosine);
    return { ...item, similarity, score: score.score, explanation: { similarity, bm25: bm25[at] ?? 0, worth, ...score } };
  });
  const near = found
    .filter(({ similarity, explanation }) => similarity >= (query.similarityMin ?? 0) && similarity + explanation.bm25 > 0)
    .toSorted((a, b) => b.similarity - a.similarity);
  return near
    .filter((item, at) => near.findIndex(({ record }) => record === item.record) === at)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, Math.max(0, query.limit))
    .map(({ explanation, ...item }) => (query.explain ? { ...item, explanation } : item));
}

/** Whether a search in this scope may see a record of this owner. */
export function isWithin(owner: Scope, scope: ReadScope): boolean {
  const { tenant, agent, user, also = [] } = requireScope(scope);
  const mayUser = typeof user !== 'string' || owner.user === null || owner.user === user;
  return owner.tenant === tenant && (agent === null || owner.agent === agent || also.includes(owner.agent)) && mayUser;
}
