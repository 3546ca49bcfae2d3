import type { MemoryLayer } from '@etude/contracts/task';
import type { Candidate, Candidates, StoreQuery } from '../record-store.js';
import { cosinesOf, nearest } from './nearest-records.js';
import { kindCodes, kindName } from './record-codes.js';
import { searchCondition } from './record-conditions.js';
import type { TenantRows } from './tenant-rows.js';
import type { VectorBytes } from './vectors.js';
import { searchWords } from './words.js';

export interface VectorQuery {
  /** Number of the reading model. */
  readonly model: number;
  /** null: only words are searched. */
  readonly vector: VectorBytes | null;
}

/** Both lists of one snapshot. */
export function searchRecords(rows: TenantRows, layer: MemoryLayer, query: StoreQuery, { model, vector }: VectorQuery): Candidates {
  const { limit } = query;
  if (limit <= 0 || kindCodes(layer, query.kinds).length === 0) return { dense: [], words: [] };
  const worded = searchWords(rows, layer, query.text, searchCondition(rows, layer, query), limit);
  const ids = worded.map(({ id }) => id);
  const known = vector === null ? new Map<number, number>() : cosinesOf(rows, model, vector, ids);
  const cosines = vector === null ? known : nearest(rows, { layer, query, model, vector, known });
  const unknown = ids.filter((id) => !cosines.has(id));
  const bm25s = new Map(worded.map(({ id, bm25 }) => [id, bm25]));
  const loaded = loadCandidates(rows, [...cosines.keys(), ...unknown]);
  const candidates = new Map(
    loaded.map(({ id, kind, ...row }) => {
      const found = { kind: kindName(kind), ...row, cosine: cosines.get(id) ?? known.get(id) ?? 0, bm25: bm25s.get(id) ?? 0 };
      return [id, found] as const;
    }),
  );
  const words = ordered(bm25s.keys(), candidates, 'bm25', limit);
  const inWords = new Set(words);
  const dense = ordered(cosines.keys(), candidates, 'cosine', limit);
  return { words, dense: dense.map((candidate) => (inWords.has(candidate) ? candidate : { ...candidate, bm25: 0 })) };
}

function ordered(ids: Iterable<number>, candidates: ReadonlyMap<number, Candidate>, by: 'cosine' | 'bm25', limit: number): Candidate[] {
  return [...ids]
    .flatMap((id) => candidates.get(id) ?? [])
    .toSorted((a, b) => b[by] - a[by] || b.createdAt - a.createdAt || Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)))
    .slice(0, limit);
}

interface CandidateRow {
  readonly id: number;
  readonly kind: number;
  readonly key: string;
  readonly createdAt: number;
  readonly worth: number;
}

function loadCandidates(rows: TenantRows, ids: readonly number[]): CandidateRow[] {
  return rows.all<CandidateRow>(
    `SELECT record.id AS id, record.kind AS kind, record_key AS key, created_at AS createdAt, worth
     FROM json_each(:ids) CROSS JOIN record ON record.id = value WHERE record.tenant = :tenant`,
    { ids: JSON.stringify(ids) },
  );
}
