import type { MemoryLayer } from '@etude/contracts/task';
import type { StoreQuery } from '../record-store.js';
import { kindCodes, layerCode } from './record-codes.js';
import type { Condition } from './record-conditions.js';
import { filterCondition, looksUp, searchCondition } from './record-conditions.js';
import { codeTable, TEXTS_MAX, vectorTable } from './store-schema.js';
import type { TenantRows, Value } from './tenant-rows.js';
import { codeDistanceOf } from './vector-code.js';
import type { VectorBytes } from './vectors.js';
import { cosineOf, recordOfVector } from './vectors.js';

/** Of sqlite-vec. */
const NEIGHBOURS_MAX = 4_096;
const WIDER = 4;
/** Codes that are asked for at first per place, and one more for each text of a record. */
const CODES_PER_PLACE = 7;
/** Of a tenant in a layer: up to so many vectors are all compared. */
const COMPARED_MAX = 512;
/** The cosine that every vector has at least. */
const ANYWHERE = -1;

export interface NearestQuery {
  readonly layer: MemoryLayer;
  readonly query: StoreQuery;
  /** Number of the reading model. */
  readonly model: number;
  readonly vector: VectorBytes;
  /** Cosines of records that are known already, nearest first. */
  readonly known: ReadonlyMap<number, number>;
}

/** The closest vector of a record. */
interface Near {
  readonly record: number;
  readonly id: number;
  readonly cosine: number;
}

interface Neighbour {
  readonly id: number;
  readonly distance: number;
}

/**
 * Cosines of the nearest records, by record: of as many as there are places, and of those as near as the last.
 *
 * Codes are looked through first, and the vectors of the nearest codes compared. A code tells an angle but roughly, so more of them are
 * asked for until all were seen that a vector as near as the last place may have; about one in a hundred is overlooked there, fewer
 * before (decision 260). All vectors are compared where there are few.
 */
export function nearest(rows: TenantRows, asked: NearestQuery): Map<number, number> {
  const { limit } = asked.query;
  const { records, texts } = layerSize(rows, asked.layer);
  const isSmall = texts <= COMPARED_MAX;
  const perPlace = CODES_PER_PLACE + Math.ceil(texts / Math.max(1, records));
  let reach = isSmall ? ANYWHERE : ([...asked.known.values()][limit - 1] ?? ANYWHERE);
  for (let k = isSmall ? COMPARED_MAX + 1 : limit * perPlace; ; k *= WIDER) {
    const codesMax = Math.min(k, NEIGHBOURS_MAX);
    const codes = nearestCodes(rows, asked, codesMax, reach);
    const found = closestPerRecord(vectorsAt(rows, asked, codes));
    if (codes.length < codesMax) return placed(found, limit);
    const last = found[limit - 1];
    const seen = codes.at(-1)?.distance ?? 0;
    // Where it is not beyond the last place, others that are equally near may not have been seen.
    const isBeyond = last !== undefined && seen > (codes.find(({ id }) => id === last.id)?.distance ?? 0);
    if (isBeyond && (seen >= codeDistanceOf(last.cosine) || codesMax < k)) return placed(found, limit);
    if (codesMax < k) return placed(closestPerRecord(everyVector(rows, asked)), limit);
    reach = Math.max(reach, last?.cosine ?? ANYWHERE);
  }
}

/** Of the closest vector of each of these records, nearest first. */
export function cosinesOf(rows: TenantRows, model: number, { direction }: VectorBytes, records: readonly number[]): Map<number, number> {
  if (records.length === 0) return new Map();
  const found = rows.all<Neighbour>(
    `SELECT near.id AS id, vec_distance_l2(embedding, :direction) AS distance
     FROM json_each(:records) CROSS JOIN ${vectorTable(model)} AS near ON ${ofRecord('value')}
     WHERE near.tenant = :tenant ORDER BY distance`,
    { direction, records: JSON.stringify(records) },
  );
  return new Map(closestPerRecord(found).map(({ record, cosine }) => [record, cosine]));
}

/** A condition on the id of a vector, `near`. */
function ofRecord(id: string): string {
  return `near.id BETWEEN ${id} * ${TEXTS_MAX} AND ${id} * ${TEXTS_MAX} + ${TEXTS_MAX - 1}`;
}

function layerSize(rows: TenantRows, layer: MemoryLayer): { readonly records: number; readonly texts: number } {
  const sizes = rows.all<{ records: number; texts: number }>(
    'SELECT records, texts FROM layer_size WHERE tenant = :tenant AND layer = :layer',
    { layer: layerCode(layer) },
  );
  return sizes[0] ?? { records: 0, texts: 0 };
}

/**
 * Nearest first, by how many bits differ. sqlite-vec picks them by going through a chunk once for each, which takes longer than to
 * compare them; so it is told how far away they can be.
 */
function nearestCodes(rows: TenantRows, { layer, query, vector, model }: NearestQuery, k: number, reach: number): Neighbour[] {
  const { sql, values } = codeCondition(layer, query, model);
  const near = reach === ANYWHERE ? '' : ' AND distance <= :differing';
  return rows.all<Neighbour>(
    `SELECT id, distance FROM ${codeTable(model)}
     WHERE code MATCH vec_bit(:code) AND k = :k${near} AND tenant = :tenant AND layer = :layer${sql}${rows.within}`,
    { ...values, code: vector.code, k, layer: layerCode(layer), ...(near === '' ? {} : { differing: codeDistanceOf(reach) }) },
  );
}

/** On the columns beside the codes; what is not there is looked up first, so that nothing is filtered behind the limit. */
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
  return { sql: `${sql} AND id IN (${ids})`, values: { ...values, ...looked.values } };
}

function vectorsAt(rows: TenantRows, { model, vector: { direction } }: NearestQuery, codes: readonly Neighbour[]): Neighbour[] {
  return rows.all<Neighbour>(
    `SELECT near.id AS id, vec_distance_l2(embedding, :direction) AS distance
     FROM json_each(:ids) CROSS JOIN ${vectorTable(model)} AS near ON near.id = value WHERE near.tenant = :tenant ORDER BY distance`,
    { direction, ids: JSON.stringify(codes.map(({ id }) => id)) },
  );
}

/** One by one: slow, and only for more places than sqlite-vec has. */
function everyVector(rows: TenantRows, { layer, query, model, vector: { direction } }: NearestQuery): Neighbour[] {
  const { sql, values } = searchCondition(rows, layer, query);
  return rows.all<Neighbour>(
    `SELECT near.id AS id, vec_distance_l2(embedding, :direction) AS distance
     FROM record CROSS JOIN ${vectorTable(model)} AS near ON ${ofRecord('record.id')} WHERE record.tenant = :tenant${sql} ORDER BY distance`,
    { ...values, direction },
  );
}

/** Nearest first, as they come. */
function closestPerRecord(neighbours: readonly Neighbour[]): Near[] {
  const closest = new Map<number, Near>();
  for (const { id, distance } of neighbours) {
    const record = recordOfVector(id);
    if (!closest.has(record)) closest.set(record, { record, id, cosine: cosineOf(distance) });
  }
  return [...closest.values()];
}

function placed(found: readonly Near[], limit: number): Map<number, number> {
  const last = found[limit - 1]?.cosine ?? ANYWHERE;
  return new Map(found.filter(({ cosine }, place) => place < limit || cosine === last).map(({ record, cosine }) => [record, cosine]));
}
