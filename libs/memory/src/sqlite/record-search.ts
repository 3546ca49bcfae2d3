import type { MemoryLayer } from '@etude/contracts/task';
import type { Candidate, Candidates, StoreQuery } from '../record-store.js';
import { kindCodes, kindName, layerCode } from './record-codes.js';
import type { Condition } from './record-conditions.js';
import { filterCondition, kindCondition, looksUp } from './record-conditions.js';
import { TEXTS_MAX, vectorTable } from './store-schema.js';
import type { TenantRows, Value } from './tenant-rows.js';
import type { VectorBytes } from './vectors.js';
import { cosineOf, distanceOf, recordOfVector } from './vectors.js';
import { searchWords } from './words.js';

/** Of sqlite-vec. */
const NEIGHBOURS_MAX = 4_096;
const WIDER = 4;

export interface VectorQuery {
  /** Number of the reading model. */
  readonly model: number;
  readonly vector: VectorBytes;
}

/** Both lists of one snapshot. */
export function searchRecords(rows: TenantRows, layer: MemoryLayer, query: StoreQuery, { model, vector }: VectorQuery): Candidates {
  const { limit } = query;
  if (limit <= 0 || kindCodes(layer, query.kinds).length === 0) return { dense: [], words: [] };
  const table = vectorTable(model);
  const worded = searchWords(rows, layer, query.text, wordsCondition(rows, layer, query), limit);
  const ids = worded.map(({ id }) => id);
  const cosinesIn = (records: readonly number[]) => (vector === null ? new Map<number, number>() : cosinesOf(rows, table, vector, records));
  const texts = textsPerRecord(rows, layer);
  // Where each record has one vector, too few neighbours are picked for it to be worth knowing how far away they can be.
  const known = texts === 1 ? new Map<number, number>() : cosinesIn(ids);
  const asked = { layer, query, table, texts, reach: reachOf(known, limit) };
  const cosines = vector === null ? known : nearest(rows, { ...asked, vector });
  const unknown = ids.filter((id) => !cosines.has(id));
  const others = texts === 1 ? cosinesIn(unknown) : known;
  const bm25s = new Map(worded.map(({ id, bm25 }) => [id, bm25]));
  const loaded = loadCandidates(rows, [...cosines.keys(), ...unknown]);
  const candidates = new Map(
    loaded.map(({ id, kind, ...row }) => {
      const found = { kind: kindName(kind), ...row, cosine: cosines.get(id) ?? others.get(id) ?? 0, bm25: bm25s.get(id) ?? 0 };
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

interface NearestQuery {
  readonly layer: MemoryLayer;
  readonly query: StoreQuery;
  readonly vector: Uint8Array;
  readonly table: string;
  /** Of a record. */
  readonly texts: number;
  /** See `reachOf`. */
  readonly reach: number;
}

/** Distances of single precision, told twice. */
const DISTANCE_ERROR = 1e-5;
const ANYWHERE = Infinity;

/**
 * How far away the last place can be at most: as many records are known to be no further. sqlite-vec picks its neighbours by going
 * through a chunk once for each, which takes as long as all the distances; so it is told what it need not pick.
 */
function reachOf(known: ReadonlyMap<number, number>, limit: number): number {
  const last = [...known.values()][limit - 1];
  return last === undefined ? ANYWHERE : distanceOf(last) + DISTANCE_ERROR;
}

/**
 * Cosines of the nearest records, by record, at least as many as there are places. A record may have several vectors, and several
 * records may be equally near, so more neighbours are asked for until one is beyond the last place.
 */
function nearest(rows: TenantRows, asked: NearestQuery): Map<number, number> {
  const { limit } = asked.query;
  for (let k = limit * asked.texts + 1; k <= NEIGHBOURS_MAX; k = k === NEIGHBOURS_MAX ? k + 1 : Math.min(k * WIDER, NEIGHBOURS_MAX)) {
    const neighbours = neighboursOf(rows, asked, k);
    const records = closestPerRecord(neighbours);
    const last = [...records.values()][limit - 1];
    const beyond = last !== undefined && cosineOf(neighbours.at(-1)?.distance ?? 0) < last;
    if (neighbours.length < k || beyond) return records;
  }
  return closestPerRecord(everyNeighbour(rows, asked));
}

/** Rounded up; of a skill with cues, each is a vector. */
function textsPerRecord(rows: TenantRows, layer: MemoryLayer): number {
  const size = rows.all<{ records: number; texts: number }>(
    'SELECT records, texts FROM layer_size WHERE tenant = :tenant AND layer = :layer',
    {
      layer: layerCode(layer),
    },
  )[0];
  return Math.max(1, Math.ceil((size?.texts ?? 0) / Math.max(1, size?.records ?? 0)));
}

interface Neighbour {
  readonly id: number;
  readonly distance: number;
}

function neighboursOf(rows: TenantRows, { layer, query, vector, table, reach }: NearestQuery, k: number): Neighbour[] {
  const { sql, values } = vectorCondition(layer, query);
  const near = reach === ANYWHERE ? '' : ' AND distance <= :reach';
  return rows.all<Neighbour>(
    `SELECT id, distance FROM ${table}
     WHERE embedding MATCH :vector AND k = :k${near} AND tenant = :tenant AND layer = :layer${sql}${rows.within}`,
    { ...values, vector, k, layer: layerCode(layer), ...(near === '' ? {} : { reach }) },
  );
}

/** On the columns beside the vectors; what is not there is looked up first, so that nothing is filtered behind the limit. */
function vectorCondition(layer: MemoryLayer, query: StoreQuery): Condition {
  const { createdSince, createdBefore, worthMin, where } = query;
  const values: Record<string, Value> = {};
  const sign = query.shown === false ? -1 : 1;
  let sql = ` AND kind IN (${kindCodes(layer, query.kinds)
    .map((code) => sign * code)
    .join(', ')})`;
  if (worthMin !== undefined) sql += ' AND worth >= CAST(:worthMin AS REAL)';
  if (createdSince !== undefined) sql += ' AND created_at >= :createdSince';
  if (createdBefore !== undefined) sql += ' AND created_at < :createdBefore';
  Object.entries({ worthMin, createdSince, createdBefore }).forEach(([name, value]) => {
    if (value !== undefined) values[name] = value;
  });
  if (!looksUp(query)) return { sql, values };
  const looked = filterCondition({ where });
  const ids = `SELECT record.id * ${TEXTS_MAX} + place.n FROM record CROSS JOIN place ON place.n < record.texts WHERE +record.tenant = :tenant${looked.sql}`;
  return { sql: `${sql} AND id IN (${ids})`, values: { ...values, ...looked.values } };
}

/** One by one: slow, and only for more places than sqlite-vec has. */
function everyNeighbour(rows: TenantRows, { layer, query, vector, table }: NearestQuery): Neighbour[] {
  const { sql, values } = wordsCondition(rows, layer, query);
  return rows.all<Neighbour>(
    `SELECT near.id AS id, vec_distance_l2(embedding, :vector) AS distance
     FROM record CROSS JOIN place ON place.n < record.texts CROSS JOIN ${table} AS near ON near.id = record.id * ${TEXTS_MAX} + place.n
     WHERE record.tenant = :tenant${sql} ORDER BY distance`,
    { ...values, vector },
  );
}

/** Nearest first. */
function closestPerRecord(neighbours: readonly Neighbour[]): Map<number, number> {
  const closest = new Map<number, number>();
  for (const { id, distance } of neighbours) {
    const record = recordOfVector(id);
    if (!closest.has(record)) closest.set(record, cosineOf(distance));
  }
  return closest;
}

function wordsCondition(rows: TenantRows, layer: MemoryLayer, query: StoreQuery): Condition {
  const { sql, values } = filterCondition({ ...query, shown: query.shown ?? true });
  const within = rows.within.replaceAll(' AND agent', ' AND record.agent').replaceAll(' AND user', ' AND record.user');
  return { sql: `${kindCondition(layer, query.kinds)}${sql}${within}`, values };
}

/** Of the closest vector of each of these records. */
function cosinesOf(rows: TenantRows, table: string, vector: Uint8Array, records: readonly number[]): Map<number, number> {
  if (records.length === 0) return new Map();
  const found = rows.all<Neighbour>(
    `SELECT near.id AS id, vec_distance_l2(embedding, :vector) AS distance
     FROM json_each(:records) CROSS JOIN record ON record.id = value CROSS JOIN place ON place.n < record.texts
     CROSS JOIN ${table} AS near ON near.id = record.id * ${TEXTS_MAX} + place.n WHERE record.tenant = :tenant ORDER BY distance`,
    { vector, records: JSON.stringify(records) },
  );
  return closestPerRecord(found);
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
