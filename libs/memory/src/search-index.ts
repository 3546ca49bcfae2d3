import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { ReadScope, SearchQuery } from '@etude/domain/ports/memory';
import type { SearchEntry } from '@etude/domain/retrieval/entries';
import type { Score } from '@etude/domain/retrieval/rank';
import { scoreOf } from '@etude/domain/retrieval/rank';
import type { MemoryFile } from './memory-file.js';
import type { Owner, TenantRows } from './tenant-rows.js';
import type { VectorBytes } from './vector-index.js';
import { cosineOf, embedAll, insertVector, searchVectors, showVector } from './vector-index.js';
import { bm25Of, insertWords, matchWords } from './word-index.js';

export type Layer = 'episodic' | 'semantic' | 'procedural';

export interface EmbeddedEntry {
  readonly entry: SearchEntry;
  readonly vector: VectorBytes;
}

/** An entry that was found; of several of one record, the one that counts. */
export interface Found {
  readonly id: number;
  readonly record: number;
  readonly similarity: number;
  readonly score: number;
  readonly explanation: Readonly<Record<string, number>>;
}

interface Ranked extends RankableRow {
  readonly denseRank: number | null;
  readonly wordsRank: number | null;
  readonly cosine: number;
  readonly bm25: number;
}

interface RankableRow {
  readonly id: number;
  readonly record: number;
  readonly kind: string;
  readonly createdAt: number;
  readonly worth: number;
  readonly words: number;
}

const CANDIDATES_MIN = 24;
const CANDIDATES_PER_HIT = 4;
/** Vectors are of single precision. */
const TIE = 1e-6;

/** Searchable rows with their vectors and words; see `docs/memory.md` for how the two searches become one. */
export class SearchIndex {
  readonly #embedder: Embedder;
  readonly #clock: Clock;

  constructor(embedder: Embedder, clock: Clock) {
    this.#embedder = embedder;
    this.#clock = clock;
  }

  /** Before the transaction, since an embedder may be far away. */
  async embed(entries: readonly SearchEntry[]): Promise<EmbeddedEntry[]> {
    const vectors = await embedAll(
      this.#embedder,
      entries.map((entry) => entry.indexed),
    );
    return entries.map((entry, i) => ({ entry, vector: vectors[i] ?? null }));
  }

  insert(rows: TenantRows, layer: Layer, owner: Owner, record: number, embedded: readonly EmbeddedEntry[], shown = true): void {
    for (const { entry, vector } of embedded) {
      const id = insertEntry(rows, layer, owner, record, entry, shown);
      insertWords(rows, layer, id, entry.indexed);
      insertVector(rows, layer, id, owner, shown, vector);
    }
  }

  /** Whether search finds a record, what it is worth, and how old it counts as. */
  update(
    rows: TenantRows,
    layer: Layer,
    record: number,
    change: { shown: boolean; worth: number; createdAt: number; sources: readonly string[] },
  ): void {
    const of = { layer, record };
    const entries = rows.all<{ id: number; shown: number }>(
      'SELECT id, shown FROM entry WHERE tenant = :tenant AND layer = :layer AND record = :record',
      of,
    );
    for (const { id, shown } of entries) {
      if ((shown === 1) !== change.shown) showVector(rows, id, change.shown);
      rows.run('UPDATE entry_text SET sources = :sources WHERE tenant = :tenant AND id = :id', {
        id,
        sources: JSON.stringify(change.sources),
      });
    }
    rows.run(
      `UPDATE entry SET shown = :shown, worth = :worth, created_at = :createdAt
       WHERE tenant = :tenant AND layer = :layer AND record = :record`,
      { ...of, worth: change.worth, createdAt: change.createdAt, shown: change.shown ? 1 : 0 },
    );
  }

  /** `rowsPerRecord`: how many entries a record has at most. `collect` runs in the snapshot that was searched. */
  async search<T>(
    target: { file: MemoryFile; layer: Layer; rowsPerRecord: number },
    scope: ReadScope,
    query: SearchQuery,
    collect: (rows: TenantRows, found: readonly Found[]) => T,
  ): Promise<T> {
    const [vector = null] = await embedAll(this.#embedder, [query.text]);
    const candidates = Math.max(CANDIDATES_MIN, query.limit * CANDIDATES_PER_HIT, query.limit * target.rowsPerRecord);
    return target.file.read(scope, (rows) => {
      const ranked = candidatesOf(rows, target.layer, query.text, vector, candidates);
      return collect(rows, this.#best(ranked, query));
    });
  }

  #best(ranked: readonly Ranked[], { similarityMin = 0, limit }: SearchQuery): Found[] {
    const { denseWeight } = this.#embedder.profile;
    const now = this.#clock.now();
    return ranked
      .map((row) => this.#found(row, scoreOf(row, { denseWeight, now })))
      .filter((found) => found.similarity >= similarityMin && (found.similarity > 0 || (found.explanation.bm25 ?? 0) > 0))
      .toSorted((a, b) => b.score - a.score || b.similarity - a.similarity || b.id - a.id)
      .slice(0, Math.max(0, limit));
  }

  #found({ id, record, cosine, bm25, denseRank, wordsRank, worth }: Ranked, { fused, recency, score }: Score): Found {
    const similarity = this.#embedder.profile.calibrate(cosine);
    const ranks = { ...(denseRank === null ? {} : { denseRank }), ...(wordsRank === null ? {} : { wordsRank }) };
    return { id, record, similarity, score, explanation: { similarity, cosine, bm25, ...ranks, fused, recency, worth, score } };
  }
}

function insertEntry(rows: TenantRows, layer: Layer, owner: Owner, record: number, entry: SearchEntry, shown: boolean): number {
  const { kind, title, text, sources, createdAt, worth } = entry;
  const { row: id } = rows.run(
    `INSERT INTO entry (tenant, layer, agent, user, shown, kind, record, created_at, worth, word_count)
     VALUES (:tenant, :layer, :agent, :user, :shown, :kind, :record, :createdAt, :worth, 0)`,
    { layer, record, ...owner, shown: shown ? 1 : 0, kind, createdAt, worth },
  );
  const shownText = { id, title, text, sources: JSON.stringify(sources) };
  rows.run('INSERT INTO entry_text (id, tenant, title, text, sources) VALUES (:id, :tenant, :title, :text, :sources)', shownText);
  return id;
}

function candidatesOf(rows: TenantRows, layer: Layer, text: string, vector: VectorBytes, limit: number): Ranked[] {
  const cosines = searchVectors(rows, layer, vector, limit);
  const matches = matchWords(rows, layer, text);
  const byId = new Map(loadRankable(rows, [...cosines.keys(), ...matches.byEntry.keys()]).map((row) => [row.id, row]));
  const bm25s = new Map([...matches.byEntry.keys()].map((id) => [id, bm25Of(matches, id, byId.get(id)?.words ?? 0)]));
  const dense = bestPerRecord(cosines, byId);
  const words = bestPerRecord(new Map([...bm25s].toSorted((a, b) => b[1] - a[1] || b[0] - a[0])), byId, limit);
  return [...new Map([...words, ...dense])].map(([key, { row }]) => ({
    ...row,
    denseRank: dense.get(key)?.rank ?? null,
    wordsRank: words.get(key)?.rank ?? null,
    cosine: dense.get(key)?.value ?? cosineOf(rows, row.id, vector),
    bm25: words.get(key)?.value ?? 0,
  }));
}

interface Place {
  readonly row: RankableRow;
  readonly rank: number;
  readonly value: number;
}

/**
 * Ranks count records: of several entries of one record, the best counts. Equal values share a rank, so that age and worth
 * decide between them. `values` are ordered, best first.
 */
function bestPerRecord(
  values: ReadonlyMap<number, number>,
  byId: ReadonlyMap<number, RankableRow>,
  placesMax = Infinity,
): Map<string, Place> {
  const places = new Map<string, Place>();
  let last: Place | undefined;
  for (const [id, value] of values) {
    const row = byId.get(id);
    const key = `${row?.kind}:${row?.record}`;
    if (row === undefined || places.has(key)) continue;
    if (places.size >= placesMax) break;
    const rank = last !== undefined && last.value - value < TIE ? last.rank : places.size + 1;
    last = { row, value, rank };
    places.set(key, last);
  }
  return places;
}

/** Of the entries with these ids, those that the scope may see. */
function loadRankable(rows: TenantRows, ids: readonly number[]): RankableRow[] {
  return rows.all<RankableRow>(
    `SELECT id, record, kind, created_at AS createdAt, worth, word_count AS words
     FROM (SELECT DISTINCT value FROM json_each(:ids)) CROSS JOIN entry ON id = value
     WHERE tenant = :tenant AND shown = 1${rows.within}`,
    { ids: JSON.stringify(ids) },
  );
}
