import { QdrantClient } from '@qdrant/js-client-rest';
import { type DataQuery, type DataRecord, DIMENSION, tenantName } from './memory-data.js';

const LIMIT = 10;
/** Number of hits in each of the two fused lists. Etude asks for as many. */
const PLACES = 40;

/**
 * A baseline: the store that one would write with Qdrant's client, without compression. It has one collection with the tenant as
 * `is_tenant`, a plain dense vector, a sparse vector with IDF, and the texts as payload.
 */
export class BareQdrant {
  readonly #client: QdrantClient;
  readonly #collection: string;

  private constructor(client: QdrantClient, collection: string) {
    this.#client = client;
    this.#collection = collection;
  }

  static async open(place: { url: string; apiKey: string | null }, collection: string): Promise<BareQdrant> {
    const headers = { 'accept-encoding': 'identity' };
    const key = place.apiKey === null ? {} : { apiKey: place.apiKey };
    const client = new QdrantClient({ url: place.url, ...key, headers, checkCompatibility: false, timeout: 120_000 });
    await client.createCollection(collection, {
      vectors: { dense: { size: DIMENSION, distance: 'Cosine' } },
      sparse_vectors: { words: { modifier: 'idf' } },
      hnsw_config: { m: 0, payload_m: 16 },
    });
    await client.createPayloadIndex(collection, { field_name: 'tenant', field_schema: { type: 'keyword', is_tenant: true }, wait: true });
    return new BareQdrant(client, collection);
  }

  async insert(records: readonly DataRecord[]): Promise<void> {
    const points = records.map(({ id, tenant, text, vector, worth, createdAt }) => ({
      id,
      vector: { dense: Array.from(vector), words: countsOf(text) },
      payload: { tenant: tenantName(tenant), text, worth, created_at: createdAt },
    }));
    await this.#client.upsert(this.#collection, { points, wait: true });
  }

  searchDense({ vector, tenant }: DataQuery): Promise<unknown> {
    const filter = filterOf(tenant);
    const search = { query: Array.from(vector), using: 'dense', filter, limit: LIMIT, with_payload: true };
    return this.#client.queryBatch(this.#collection, { searches: [search] });
  }

  searchHybrid({ vector, tenant, text }: DataQuery): Promise<unknown> {
    const filter = filterOf(tenant);
    const prefetch = [
      { query: Array.from(vector), using: 'dense', filter, limit: PLACES },
      { query: countsOf(text), using: 'words', filter, limit: PLACES },
    ];
    const search = { prefetch, query: { fusion: 'rrf' as const }, limit: LIMIT, with_payload: true };
    return this.#client.queryBatch(this.#collection, { searches: [search] });
  }
}

function filterOf(tenant: number) {
  return { must: [{ key: 'tenant', match: { value: tenantName(tenant) } }] };
}

function countsOf(text: string): { indices: number[]; values: number[] } {
  const counts = new Map<number, number>();
  for (const word of text.split(' ')) {
    let hash = 0x811c_9dc5;
    for (let i = 0; i < word.length; i += 1) hash = Math.imul(hash ^ word.charCodeAt(i), 0x0100_0193);
    counts.set(hash >>> 0, (counts.get(hash >>> 0) ?? 0) + 1);
  }
  return { indices: [...counts.keys()], values: [...counts.values()] };
}
