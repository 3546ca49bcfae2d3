import {
  type FindPage,
  LAYERS,
  type MemoryRecord,
  newestFirst,
  RECORD_FIELDS,
  RECORD_KINDS,
  type RecordFilter,
  type RecordKind,
  type StoredRecord,
} from '../record-store.js';
import { decodeText, encodeText, pointId, vectorName } from './store-schema.js';
import { type Condition, type Conditions, type FoundPoint, NOBODY, type Payload, type TenantPoints } from './tenant-points.js';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';

export const recordId = (tenant: string, kind: RecordKind, key: string): string => pointId(tenant, kind, key);

/** All of a record but its content and revision. Fields that a record lacks are left out, which drops their earlier values. */
export function ownerPayload(record: MemoryRecord): Payload {
  const { kind, key, scope, createdAt, worth, shown, fields } = record;
  const f = Object.fromEntries(
    RECORD_FIELDS.flatMap((field) => {
      const value = fields[field];
      if (value === undefined) return [];
      return [[field, typeof value === 'string' ? encodeText(value) : value.map(encodeText)]];
    }),
  );
  return { kind, key: encodeText(key), agent: scope.agent, user: scope.user ?? NOBODY, created_at: createdAt, worth, shown, f };
}

/** Longer content is compressed, since Qdrant accepts at most 32 MiB per request. */
const PLAIN_CHARS_MAX = 256 * 1024;
const PACKED = '\u0002';
const zipped = promisify(gzip);
const unzipped = promisify<Buffer, Buffer>(gunzip);

/** A record as text: one line of JSON with everything but the body, then the body unchanged. */
export async function contentOf({ body, ...rest }: MemoryRecord): Promise<string> {
  const text = encodeText(`${JSON.stringify(rest)}\n${body}`);
  return text.length <= PLAIN_CHARS_MAX ? text : PACKED + (await zipped(text)).toString('base64');
}

async function recordOf({ payload }: FoundPoint): Promise<StoredRecord> {
  const stored = String(payload['content']);
  const plain = stored.startsWith(PACKED) ? (await unzipped(Buffer.from(stored.slice(PACKED.length), 'base64'))).toString() : stored;
  const text = decodeText(plain);
  const end = text.indexOf('\n');
  const rest = JSON.parse(text.slice(0, end)) as Omit<MemoryRecord, 'body'>;
  return { ...rest, body: text.slice(end + 1), revision: revisionIn(payload) };
}

/** How many writers' marks a point keeps; see `markOf`. */
const MARKS = 8;
const MARK_NAMES = Array.from({ length: MARKS }, (_, i) => `by${i}`);

/** Payload fields that tell who wrote which revision. */
export const STATE = ['revision', ...MARK_NAMES] as const;

/**
 * The mark that the writer of a revision leaves. Its field is reused eight revisions later. Until then a writer can see that its write took
 * place, even if other writers followed.
 */
export function markOf(revision: number, writer: string): Payload {
  return { [`by${revision % MARKS}`]: writer };
}

export function hasMark(payload: Payload | undefined, revision: number, writer: string): boolean {
  return payload?.[`by${revision % MARKS}`] === writer;
}

export function marksIn(payload: Payload): Payload {
  return Object.fromEntries(MARK_NAMES.flatMap((name) => (payload[name] === undefined ? [] : [[name, payload[name]]])));
}

export function revisionIn(payload: Payload): number {
  return typeof payload['revision'] === 'number' ? payload['revision'] : 0;
}

/** Translates a filter to Qdrant's conditions. `TenantPoints` adds the tenant and the view. */
export function filterConditions(tenant: string, filter: RecordFilter): Condition[] {
  const { keys, kinds, where = {}, shown, createdSince, createdBefore, worthMin, withoutVectorsOf: model } = filter;
  return [
    ...(kinds === undefined ? [] : [anyOf('kind', kinds)]),
    ...(keys === undefined ? [] : [{ has_id: (kinds ?? KINDS).flatMap((kind) => keys.map((key) => recordId(tenant, kind, key))) }]),
    ...(shown === undefined ? [] : [is('shown', shown)]),
    ...RECORD_FIELDS.flatMap((field) => {
      const value = where[field];
      if (value === undefined) return [];
      return [anyOf(`f.${field}`, (typeof value === 'string' ? [value] : value).map(encodeText))];
    }),
    ...rangeOf('created_at', { gte: createdSince, lt: createdBefore }),
    ...rangeOf('worth', { gte: worthMin }),
    ...(model === undefined ? [] : [is('worded', true), { must_not: [{ has_vector: vectorName(model) }, is('blank', model)] }]),
  ];
}

const KINDS = LAYERS.flatMap((layer) => RECORD_KINDS[layer]);

export function is(key: string, value: string | number | boolean): Condition {
  return { key, match: { value } };
}

/** A condition that one of the values matches. Without values, no point matches. */
function anyOf(key: string, values: readonly string[]): Condition {
  return values.length === 0 ? { has_id: [] } : { key, match: { any: values } };
}

/** Omits infinite bounds, which JSON can't express. A range without bounds needs no condition. */
function rangeOf(key: string, range: { gte?: number | undefined; lt?: number | undefined }): Condition[] {
  const bounded = Object.fromEntries(Object.entries(range).filter(([, value]) => Number.isFinite(value)));
  return Object.keys(bounded).length === 0 ? [] : [{ key, range: bounded }];
}

const madeAt = (time: number): Condition => ({ key: 'created_at', range: { gte: time, lte: time } });

const RECORDS_PER_PAGE = 64;
const KEYS_PER_PAGE = 2_000;
const RECORD = ['content', 'revision'];
const NAME = ['key', 'created_at'];

interface Named {
  readonly id: string;
  readonly key: string;
  readonly createdAt: number;
}

export function loadRecords(points: TenantPoints, collection: string, kind: RecordKind, keys: readonly string[]): Promise<StoredRecord[]> {
  const ids = [...new Set(keys.map((key) => recordId(points.tenant, kind, key)))];
  return recordsOf(points, collection, ids, []);
}

export async function newestRecords(points: TenantPoints, collection: string, must: Conditions, { limit, after }: Omit<FindPage, 'order'>) {
  if (limit <= 0) return [];
  const tied = after === undefined ? [] : await allNamed(points, collection, [...must, madeAt(after.createdAt)]);
  const behind = tied.filter((one) => newestFirst(one, after!) > 0).toSorted(newestFirst);
  const older = await newestNamed(points, collection, [...must, ...rangeOf('created_at', { lt: after?.createdAt })], limit);
  return recordsOf(points, collection, idsOf([...behind, ...older].slice(0, limit)), must);
}

async function newestNamed(points: TenantPoints, collection: string, must: Conditions, limit: number): Promise<readonly Named[]> {
  const orderBy = { key: 'created_at', direction: 'desc' } as const;
  const named = (await points.scroll(collection, must, { limit, payload: NAME, orderBy })).points.map(namedPoint);
  const oldest = named.at(-1)?.createdAt;
  if (oldest === undefined) return [];
  // Qdrant orders by time alone, so at its oldest time the page may have the wrong records.
  const younger = named.filter(({ createdAt }) => createdAt > oldest);
  const isWhole = named.length < limit;
  const tied = isWhole ? [] : await allNamed(points, collection, [...must, madeAt(oldest)]);
  return (isWhole ? named : [...younger, ...tied]).toSorted(newestFirst).slice(0, limit);
}

/** Reads all keys, because Qdrant can't order by key. */
export async function recordsByKey(
  points: TenantPoints,
  collection: string,
  must: Conditions,
  { limit, afterKey }: Omit<FindPage, 'order'>,
): Promise<StoredRecord[]> {
  if (limit <= 0) return [];
  const after = afterKey === undefined ? null : Buffer.from(afterKey);
  const named = (await allNamed(points, collection, must)).map(({ id, key }) => ({ id, bytes: Buffer.from(key) }));
  const page = named
    .filter(({ bytes }) => after === null || Buffer.compare(bytes, after) > 0)
    .toSorted((a, b) => Buffer.compare(a.bytes, b.bytes))
    .slice(0, limit);
  return recordsOf(points, collection, idsOf(page), must);
}

export async function* eachRecord(
  points: TenantPoints,
  collection: string,
  conditions: Conditions,
): AsyncGenerator<readonly StoredRecord[]> {
  for await (const page of points.pages(collection, conditions, { limit: RECORDS_PER_PAGE, payload: RECORD }))
    if (page.length > 0) yield await Promise.all(page.map(recordOf));
}

async function allNamed(points: TenantPoints, collection: string, must: Conditions): Promise<Named[]> {
  const named: Named[] = [];
  for await (const page of points.pages(collection, must, { limit: KEYS_PER_PAGE, payload: NAME })) named.push(...page.map(namedPoint));
  return named;
}

async function recordsOf(points: TenantPoints, collection: string, ids: readonly string[], must: Conditions) {
  const records: StoredRecord[] = [];
  for (let from = 0; from < ids.length; from += RECORDS_PER_PAGE) {
    const wanted = ids.slice(from, from + RECORDS_PER_PAGE);
    const { points: found } = await points.scroll(collection, [{ has_id: wanted }, ...must], { limit: wanted.length, payload: RECORD });
    const byId = new Map(found.map((point) => [point.id, point]));
    records.push(...(await Promise.all(wanted.flatMap((id) => byId.get(id) ?? []).map(recordOf))));
  }
  return records;
}

const idsOf = (named: ReadonlyArray<{ readonly id: string }>) => named.map(({ id }) => id);

function namedPoint({ id, payload }: FoundPoint): Named {
  return { id, key: decodeText(String(payload['key'])), createdAt: Number(payload['created_at']) };
}
