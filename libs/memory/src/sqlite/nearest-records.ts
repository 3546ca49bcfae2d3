import type { MemoryLayer } from '@etude/contracts/task';
import { RECORD_TEXTS_MAX, type StoreQuery } from '../record-store.js';
import { type Condition, filterCondition, kindCodes, layerCode, looksUp } from './record-rows.js';
import { codeTable, vectorTable } from './store-schema.js';
import type { TenantRows, Value } from './tenant-rows.js';
import { chanceDistanceOf, CODE_BITS, codeDistanceOf } from './vector-code.js';
import { cosineOf, recordOfVector, type VectorBytes } from './vectors.js';

/** Maximum number of neighbours that sqlite-vec returns. */
const NEIGHBOURS_MAX = 4_096;
const WIDER = 4;
/** The first search looks for this many codes per wanted record, plus the average number of texts per record; see `firstLook`. */
const CODES_PER_PLACE = 4;
/** If a tenant has at most this many vectors in a layer, all are compared. */
const COMPARED_MAX = 512;
/** Tolerances of a code's distance, in standard deviations: `leftOut` for the first search, `seen` for the last search. */
const DEVIATIONS = { leftOut: 2, seen: 1 };
/** A distance below every code's: nothing was searched yet. */
const NOT_YET = -1;
/** The lowest possible cosine. */
const ANYWHERE = -1;

export interface NearestQuery {
  readonly layer: MemoryLayer;
  readonly query: StoreQuery;
  /** Number of the store's model. */
  readonly model: number;
  readonly vector: VectorBytes;
  readonly size: LayerSize;
  /** Cosines of already known records, nearest first. */
  readonly known: ReadonlyMap<number, number>;
}

interface Near {
  readonly record: number;
  readonly cosine: number;
  /** Number of bits that differ between the vector's code and the query's code. */
  readonly differing: number;
}

/**
 * Cosines by record, for the `limit` nearest records and all others that are as near as the last of these.
 *
 * Searches codes first, then compares the vectors of the nearest codes. A code tells an angle only roughly. So the search widens until it
 * likely covers the codes of all vectors that are as near as the last record wanted. Decision 23 measures the misses. If there are few
 * vectors, all are compared.
 */
export function nearest(rows: TenantRows, asked: NearestQuery): Map<number, number> {
  const { limit } = asked.query;
  let { k, within } = firstLook(asked);
  let beyond = NOT_YET;
  let before: readonly Near[] = [];
  for (;;) {
    const codesMax = Math.min(k, NEIGHBOURS_MAX);
    const codes = nearestCodes(rows, asked, codesMax, { beyond, within });
    const found = closestPerRecord([...before, ...codes]);
    const last = found[limit - 1];
    const needed = last === undefined ? CODE_BITS : codeDistanceOf(last.cosine, DEVIATIONS.seen);
    if (codes.length < codesMax) {
      if (within >= needed) return placed(found, limit);
      before = [...before, ...codes];
      beyond = within;
      within = needed;
      continue;
    }
    const seen = Math.max(...codes.map(({ differing }) => differing));
    // At the farthest distance seen, there may be more codes that weren't returned.
    const isBeyond = last !== undefined && seen > last.differing;
    if (codesMax < k || (isBeyond && seen >= needed)) return placed(found, limit);
    k *= WIDER;
    within = Math.max(needed, last?.differing ?? 0);
  }
}

/**
 * The number of codes to take, and the distance within which to take them. Half of that number is expected within that distance by chance.
 * Known records can make the distance smaller.
 */
function firstLook({ size: { records, texts }, query: { limit }, known }: NearestQuery): { k: number; within: number } {
  if (texts <= COMPARED_MAX) return { k: COMPARED_MAX + 1, within: CODE_BITS };
  const wanted = limit * (CODES_PER_PLACE + Math.ceil(texts / Math.max(1, records)));
  const reach = [...known.values()][limit - 1] ?? ANYWHERE;
  const within = Math.min(codeDistanceOf(reach, DEVIATIONS.leftOut), chanceDistanceOf(wanted / texts));
  return { k: 2 * wanted, within };
}

/** The cosine of each record's closest vector, nearest first. */
export function cosinesOf(rows: TenantRows, model: number, { direction }: VectorBytes, records: readonly number[]): Map<number, number> {
  if (records.length === 0) return new Map();
  const closest = rows.all<{ record: number; distance: number }>(
    `SELECT value AS record, min(vec_distance_l2(embedding, :direction)) AS distance
     FROM json_each(:records) CROSS JOIN ${vectorTable(model)} AS near ON ${ofRecord('value')}
     WHERE near.tenant = :tenant GROUP BY value ORDER BY distance`,
    { direction, records: JSON.stringify(records) },
  );
  return new Map(closest.map(({ record, distance }) => [record, cosineOf(distance)]));
}

/** A condition that the vector `near` belongs to a record. */
function ofRecord(id: string): string {
  return `near.id BETWEEN ${id} * ${RECORD_TEXTS_MAX} AND ${id} * ${RECORD_TEXTS_MAX} + ${RECORD_TEXTS_MAX - 1}`;
}

/** How many searchable records a tenant has in a layer, how many of them have words, and how many texts they have. */
export interface LayerSize {
  readonly records: number;
  readonly worded: number;
  readonly texts: number;
}

/** null if the layer never had a searchable record. */
export function layerSize(rows: TenantRows, layer: MemoryLayer): LayerSize | null {
  const sql = 'SELECT records, worded, texts FROM layer_size WHERE tenant = :tenant AND layer = :layer';
  return rows.all<LayerSize>(sql, { layer: layerCode(layer) })[0] ?? null;
}

/** For each code that it picks, sqlite-vec scans a whole chunk. That costs more than comparing codes, so a distance limit keeps the picks few. */
function nearestCodes(
  rows: TenantRows,
  { layer, query, vector, model }: NearestQuery,
  k: number,
  { beyond, within }: Record<'beyond' | 'within', number>,
): Near[] {
  const { sql, values } = codeCondition(layer, query, model);
  const far = beyond === NOT_YET ? '' : ' AND codes.distance > :beyond';
  const near = within >= CODE_BITS ? far : `${far} AND codes.distance <= :within`;
  const found = rows.tuples<readonly [id: number, differing: number, distance: number]>(
    `SELECT codes.id, codes.distance, vec_distance_l2(embedding, :direction)
     FROM ${codeTable(model)} AS codes CROSS JOIN ${vectorTable(model)} AS near ON near.id = codes.id
     WHERE code MATCH vec_bit(:code) AND k = :k${near} AND codes.tenant = :tenant AND layer = :layer${sql}${rows.within}
       AND near.tenant = :tenant`,
    { ...values, ...vector, k, layer: layerCode(layer), beyond, within },
  );
  return found.map(([id, differing, distance]) => ({ record: recordOfVector(id), differing, cosine: cosineOf(distance) }));
}

/** Filters on columns stored with the codes. Other fields are looked up first, so that nothing is filtered after the limit. */
function codeCondition(layer: MemoryLayer, query: StoreQuery, model: number): Condition {
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
  const ids = `SELECT near.id FROM record CROSS JOIN ${vectorTable(model)} AS near ON ${ofRecord('record.id')} WHERE +record.tenant = :tenant${looked.sql}`;
  return { sql: `${sql} AND codes.id IN (${ids})`, values: { ...values, ...looked.values } };
}

function closestPerRecord(seen: readonly Near[]): Near[] {
  const closest = new Map<number, Near>();
  for (const near of seen.toSorted((a, b) => b.cosine - a.cosine)) if (!closest.has(near.record)) closest.set(near.record, near);
  return [...closest.values()];
}

function placed(found: readonly Near[], limit: number): Map<number, number> {
  const last = found[limit - 1]?.cosine ?? ANYWHERE;
  return new Map(found.filter(({ cosine }, place) => place < limit || cosine === last).map(({ record, cosine }) => [record, cosine]));
}
