import { EtudeError } from '@etude/contracts/errors';
import type { Schemas } from '@qdrant/js-client-rest';
import type { TenantView } from '../record-store.js';
import { ANCHOR_TENANT, ANCHOR_WORD, WORDS } from './store-schema.js';
import type { QdrantServer } from './qdrant-server.js';

/** Values come from callers. They are only compared, never used as operators. */
export type Condition =
  | { readonly key: string; readonly match: { readonly value: string | number | boolean } | { readonly any: readonly string[] } }
  | { readonly key: string; readonly range: { readonly gte?: number; readonly lt?: number; readonly lte?: number } }
  | { readonly has_id: readonly string[] }
  | { readonly has_vector: string }
  | { readonly must_not: readonly Condition[] };

/** A list of conditions, all of which must be met. */
export type Conditions = readonly Condition[];

export type Payload = Readonly<Record<string, unknown>>;

export interface Point {
  readonly id: string;
  readonly payload: Payload;
  readonly vector: Readonly<Record<string, unknown>>;
}

export type FoundPoint = Pick<Point, 'id' | 'payload'>;

export interface ScoredPoint extends FoundPoint {
  readonly score: number;
}

export interface Page {
  readonly limit: number;
  readonly offset?: string | null;
  /** Payload fields to read. Absent: all. */
  readonly payload?: readonly string[];
  readonly orderBy?: { readonly key: string; readonly direction: 'asc' | 'desc' } | null;
}

/** One list of a search, by the vector named `using`. `among` limits it to the results of another search. */
export interface Search {
  readonly using: string;
  readonly query: unknown;
  readonly limit: number;
  readonly payload: readonly string[];
  readonly among?: { readonly using: string; readonly query: unknown; readonly limit: number };
}

type Filter = Schemas['Filter'];

/** The user field of records without a user. No real user has this name. */
export const NOBODY = '';

const DURABLE = { wait: true, ordering: 'strong' } as const;

/**
 * The only access to a tenant's points. It adds the tenant, and the agents and users of the view, to every request.
 * @throws EtudeError TENANT_MISSING without a tenant; then no request is sent
 */
export class TenantPoints {
  readonly tenant: string;
  readonly #server: QdrantServer;
  readonly #view: readonly Condition[];

  constructor(server: QdrantServer, { tenant, agents, users }: TenantView) {
    this.tenant = tenant;
    this.#server = server;
    this.#view = [...conditionOf('agent', agents), ...conditionOf('user', users?.map((user) => user ?? NOBODY) ?? null)];
  }

  async *pages(collection: string, conditions: Conditions, page: Page): AsyncGenerator<FoundPoint[]> {
    let offset: string | null = null;
    do {
      const { points, next } = await this.scroll(collection, conditions, { ...page, offset });
      yield points;
      offset = next;
    } while (offset !== null);
  }

  /** Points in the order of ids or of `orderBy`. `next` is the offset of the next page; null at the end and with `orderBy`. */
  async scroll(collection: string, conditions: Conditions, { limit, offset = null, payload, orderBy = null }: Page) {
    const { points, next_page_offset: next } = await this.#server.ask(`read ${collection}`, (client) =>
      client.scroll(collection, {
        filter: this.#filter(conditions),
        limit,
        with_payload: payload === undefined ? true : [...payload],
        offset,
        order_by: orderBy,
      }),
    );
    return { points: points.map(foundPoint), next: typeof next === 'string' ? next : null };
  }

  async count(collection: string, conditions: Conditions): Promise<number> {
    const request = { filter: this.#filter(conditions), exact: true };
    return (await this.#server.ask(`count in ${collection}`, (client) => client.count(collection, request))).count;
  }

  /** Inserts points. Existing points stay as they are. */
  async insert(collection: string, points: readonly Point[]): Promise<void> {
    const request = { points: points.map((point) => this.#own(point)), update_mode: 'insert_only' as const, ...DURABLE };
    await this.#server.ask(`write to ${collection}`, (client) => client.upsert(collection, request));
  }

  /** Replaces whole points that exist and meet the conditions. Creates no points. */
  async replace(collection: string, points: readonly Point[], conditions: Conditions): Promise<void> {
    const update_filter = this.#filter(conditions);
    const request = { points: points.map((point) => this.#own(point)), update_mode: 'update_only' as const, update_filter, ...DURABLE };
    await this.#server.ask(`write to ${collection}`, (client) => client.upsert(collection, request));
  }

  /** Sets these payload fields. Other fields and the vectors stay; null removes a field. */
  async setPayload(collection: string, payload: Payload, conditions: Conditions): Promise<void> {
    const own = { ...payload, tenant: this.tenant };
    const filter = this.#filter(conditions);
    await this.#server.ask(`write to ${collection}`, (client) => client.setPayload(collection, { payload: own, filter, ...DURABLE }));
  }

  /** Bypasses the client's `updateVectors`, which drops the conditions. @throws EtudeError NOT_FOUND if a point is gone */
  async setVectors(collection: string, points: ReadonlyArray<Pick<Point, 'id' | 'vector'>>, conditions: Conditions): Promise<void> {
    const update_filter = this.#filter(conditions);
    const vectors = points.map(({ id, vector }) => ({ id, vector })) as Schemas['PointVectors'][];
    const request = { collection_name: collection, points: vectors, update_filter, ...DURABLE };
    await this.#server.ask(`write to ${collection}`, (client) => client.api().updateVectors(request));
  }

  async deleteVectors(collection: string, names: readonly string[], conditions: Conditions): Promise<void> {
    const request = { filter: this.#filter(conditions), vector: [...names], ...DURABLE };
    await this.#server.ask(`write to ${collection}`, (client) => client.deleteVectors(collection, request));
  }

  async delete(collection: string, conditions: Conditions): Promise<void> {
    const request = { filter: this.#filter(conditions), ...DURABLE };
    await this.#server.ask(`delete from ${collection}`, (client) => client.delete(collection, request));
  }

  /** Runs all searches in one request. Returns their results by name, and as `anchor` the anchor with its score; see `surplusOf`. */
  async search(collection: string, conditions: Conditions, searches: Readonly<Record<string, Search>>) {
    const filter = this.#filter(conditions);
    const anchor = {
      query: { indices: [ANCHOR_WORD], values: [1] },
      using: WORDS,
      filter: { must: [{ key: 'tenant', match: { value: ANCHOR_TENANT } }] },
      limit: 1,
    };
    const names = [...Object.keys(searches), 'anchor'];
    const requests = [...Object.values(searches).map((search) => this.#query(search, filter)), anchor] as Schemas['QueryRequest'][];
    const answers = await this.#server.ask(`search ${collection}`, (client) => client.queryBatch(collection, { searches: requests }));
    if (answers.length !== requests.length)
      throw new EtudeError('INTERNAL', `Qdrant answered ${requests.length} searches of ${collection} with ${answers.length} results`);
    return new Map(answers.map(({ points }, i) => [names[i], points.map((point) => ({ ...foundPoint(point), score: point.score }))]));
  }

  #query({ using, query, limit, payload, among }: Search, filter: Filter) {
    return {
      query,
      using,
      filter,
      limit,
      with_payload: payload.length === 0 ? false : payload,
      ...(among === undefined ? {} : { prefetch: { ...among, filter } }),
    };
  }

  #filter(conditions: Conditions): Filter {
    return { must: [{ key: 'tenant', match: { value: this.tenant } }, ...this.#view, ...conditions] } as Filter;
  }

  #own({ id, payload, vector }: Point): Schemas['PointStruct'] {
    return { id, payload: { ...payload, tenant: this.tenant }, vector: vector as Schemas['VectorStruct'] };
  }
}

function conditionOf(key: 'agent' | 'user', values: readonly string[] | null): Condition[] {
  return values === null ? [] : [{ key, match: { any: values } }];
}

function foundPoint({ id, payload }: { id: string | number; payload?: object | null }): FoundPoint {
  return { id: String(id), payload: (payload ?? {}) as Payload };
}
