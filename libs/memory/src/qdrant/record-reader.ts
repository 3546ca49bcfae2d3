import type { MemoryLayer } from '@etude/contracts/task';
import type { RecordKind, StoredRecord } from '../record-store.js';
import { type BodyParts, damaged } from './body-parts.js';
import type { CollectionNames } from './collections.js';
import { compareCodePoints, decodeText, partsIn, recordId, recordOf, revisionIn } from './record-payload.js';
import type { Condition, Conditions, FoundPoint, TenantPoints } from './tenant-points.js';

/** Whole records; most are a few KiB, none in a point is above 256. */
const RECORDS_PER_PAGE = 128;
const KEYS_PER_PAGE = 2_000;
/** A record whose parts are gone is read again: somebody replaced or removed it between the two requests. */
const READS_MAX = 5;
const RECORD = ['content', 'parts', 'revision', 'kind', 'key'];

interface Named {
  readonly id: string;
  readonly key: string;
  readonly createdAt: number;
}

/** Reads records of one tenant. */
export class RecordReader {
  readonly #points: TenantPoints;
  readonly #names: CollectionNames;
  readonly #parts: BodyParts;

  constructor(points: TenantPoints, names: CollectionNames, parts: BodyParts) {
    this.#points = points;
    this.#names = names;
    this.#parts = parts;
  }

  /** In the order of the keys. */
  async load(layer: MemoryLayer, kind: RecordKind, keys: readonly string[]): Promise<StoredRecord[]> {
    const ids = [...new Set(keys.map((key) => recordId(this.#points.tenant, kind, key)))];
    return this.#byIds(layer, ids, []);
  }

  /** Newest first, then by key descending. */
  async newest(layer: MemoryLayer, must: readonly Condition[], limit: number): Promise<StoredRecord[]> {
    if (limit <= 0) return [];
    const collection = this.#names.layers[layer];
    const orderBy = { key: 'created_at', direction: 'desc' } as const;
    const { points } = await this.#points.scroll(collection, { must }, { limit, payload: ['key', 'created_at'], orderBy });
    const named = points.map(nameOf);
    const oldest = named.at(-1)?.createdAt;
    if (oldest === undefined) return [];
    // Qdrant orders by time alone, so of those at the end it may have left out the wrong ones.
    const younger = named.filter(({ createdAt }) => createdAt > oldest);
    const tied =
      named.length < limit ? [] : await this.#named(layer, [...must, { key: 'created_at', range: { gte: oldest, lte: oldest } }]);
    const best = (named.length < limit ? named : [...younger, ...tied])
      .toSorted((a, b) => b.createdAt - a.createdAt || compareCodePoints(b.key, a.key))
      .slice(0, limit);
    return this.#byIds(
      layer,
      best.map(({ id }) => id),
      must,
    );
  }

  /** By key; Qdrant has no such order, so all keys are looked at. */
  async byKey(layer: MemoryLayer, must: readonly Condition[], limit: number, afterKey: string | undefined): Promise<StoredRecord[]> {
    if (limit <= 0) return [];
    const named = await this.#named(layer, must);
    const page = named
      .filter(({ key }) => afterKey === undefined || compareCodePoints(key, afterKey) > 0)
      .toSorted((a, b) => compareCodePoints(a.key, b.key))
      .slice(0, limit);
    return this.#byIds(
      layer,
      page.map(({ id }) => id),
      must,
    );
  }

  async *each(layer: MemoryLayer, conditions: Conditions): AsyncGenerator<readonly StoredRecord[]> {
    for (let offset: string | undefined; ;) {
      const page = { limit: RECORDS_PER_PAGE, payload: RECORD, ...(offset === undefined ? {} : { offset }) };
      const { points, next } = await this.#points.scroll(this.#names.layers[layer], conditions, page);
      const records = await this.#records(layer, points);
      if (records.length > 0) yield records;
      if (next === null) return;
      offset = next;
    }
  }

  async #named(layer: MemoryLayer, must: readonly Condition[]): Promise<Named[]> {
    const named: Named[] = [];
    for (let offset: string | undefined; ;) {
      const page = { limit: KEYS_PER_PAGE, payload: ['key', 'created_at'], ...(offset === undefined ? {} : { offset }) };
      const { points, next } = await this.#points.scroll(this.#names.layers[layer], { must }, page);
      for (const point of points) named.push(nameOf(point));
      if (next === null) return named;
      offset = next;
    }
  }

  async #byIds(layer: MemoryLayer, ids: readonly string[], must: readonly Condition[]): Promise<StoredRecord[]> {
    const records: StoredRecord[] = [];
    for (let from = 0; from < ids.length; from += RECORDS_PER_PAGE) {
      const wanted = ids.slice(from, from + RECORDS_PER_PAGE);
      const conditions = { must: [{ has_id: wanted }, ...must] };
      const { points } = await this.#points.scroll(this.#names.layers[layer], conditions, { limit: wanted.length, payload: RECORD });
      const byId = new Map(points.map((point) => [point.id, point]));
      records.push(
        ...(await this.#records(
          layer,
          wanted.flatMap((id) => byId.get(id) ?? []),
        )),
      );
    }
    return records;
  }

  async #records(layer: MemoryLayer, points: readonly FoundPoint[]): Promise<StoredRecord[]> {
    const records: StoredRecord[] = [];
    for (const point of points) {
      const record = await this.#record(layer, point);
      if (record !== null) records.push(record);
    }
    return records;
  }

  async #record(layer: MemoryLayer, point: FoundPoint): Promise<StoredRecord | null> {
    let current: FoundPoint | undefined = point;
    for (let reads = 0; reads < READS_MAX && current !== undefined; reads += 1) {
      const { payload }: FoundPoint = current;
      const parts = partsIn(payload);
      const content = parts === null ? (payload['content'] as string) : await this.#parts.load(parts);
      if (content !== null) return recordOf(content, revisionIn(payload));
      const again = await this.#points.scroll(this.#names.layers[layer], { must: [{ has_id: [point.id] }] }, { limit: 1, payload: RECORD });
      current = again.points[0];
    }
    if (current === undefined) return null;
    const { payload } = current;
    throw damaged(`of ${this.#points.tenant}`, { layer, kind: payload['kind'] as RecordKind, key: decodeText(String(payload['key'])) });
  }
}

function nameOf({ id, payload }: FoundPoint): Named {
  return { id, key: decodeText(String(payload['key'])), createdAt: Number(payload['created_at']) };
}
