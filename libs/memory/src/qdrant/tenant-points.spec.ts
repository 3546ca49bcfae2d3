import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Proxy, type SeenRequest, startProxy } from '../../test/misbehaving-proxy.js';
import { ownedBy, seenBy } from '../record-store.js';
import { QdrantServer } from './qdrant-server.js';
import { type Condition, type Conditions, TenantPoints } from './tenant-points.js';

type Call = (points: TenantPoints, conditions: Conditions) => Promise<unknown>;

const point = {
  id: '00000000-0000-8000-8000-000000000000',
  payload: { tenant: 'beta', key: 'k' },
  vector: { words: { indices: [1], values: [1] } },
};
const query = { indices: [1], values: [1] };
const search = { using: 'words', query, limit: 5, payload: ['key'] };

/** Every method that sends a request. */
const CALLS: Readonly<Record<string, Call>> = {
  scroll: (points, conditions) =>
    points.scroll('c', conditions, { limit: 5, offset: 'x', orderBy: { key: 'created_at', direction: 'desc' } }),
  count: (points, conditions) => points.count('c', conditions),
  insert: (points) => points.insert('c', [point, point]),
  replace: (points, conditions) => points.replace('c', [point], conditions),
  setPayload: (points, conditions) => points.setPayload('c', { tenant: 'beta', worth: 1 }, conditions),
  setVectors: (points, conditions) => points.setVectors('c', [point], conditions),
  deleteVectors: (points, conditions) => points.deleteVectors('c', ['words'], conditions),
  delete: (points, conditions) => points.delete('c', conditions),
  search: (points, conditions) =>
    points.search('c', conditions, { search, near: { ...search, among: { using: 'words', query, limit: 5 } } }),
};

const text = fc.string({ unit: 'binary', maxLength: 20 }).filter((value) => value.isWellFormed());
const condition: fc.Arbitrary<Condition> = fc.oneof(
  fc.record({ key: fc.constantFrom('tenant', 'agent', 'f.name'), match: fc.record({ value: fc.oneof(text, fc.integer(), fc.boolean()) }) }),
  fc.record({ key: fc.constantFrom('tenant', 'user'), match: fc.record({ any: fc.array(text, { maxLength: 3 }) }) }),
  fc.record({ key: fc.constant('worth'), range: fc.record({ gte: fc.integer() }) }),
  fc.record({ has_id: fc.array(fc.uuid(), { maxLength: 3 }) }),
  fc.record({ has_vector: text }),
);
const conditions: fc.Arbitrary<Conditions> = fc.array(condition, { maxLength: 4 });

interface Filter {
  readonly must: readonly unknown[];
}

/** Every filter in a request, at any depth. */
function filtersIn(value: unknown, name = ''): Filter[] {
  if (typeof value !== 'object' || value === null) return [];
  if (['filter', 'update_filter'].includes(name)) return [value as Filter];
  return Object.entries(value).flatMap(([key, each]) => filtersIn(each, Array.isArray(value) ? name : key));
}

const ofAnchor = ({ must }: Filter) => JSON.stringify(must) === '[{"key":"tenant","match":{"value":""}}]';

describe('points of a tenant', () => {
  let proxy: Proxy;
  let server: QdrantServer;
  beforeAll(async () => {
    proxy = await startProxy('http://127.0.0.1:9');
    server = new QdrantServer({ url: proxy.url, timeoutMs: 10_000 });
  });
  beforeEach(() => proxy.misbehave(answered));
  afterAll(() => proxy.close());

  it.each(Object.entries(CALLS))(
    'are requested with the tenant and exactly the owners of a view, for any conditions: %s',
    async (name, call) => {
      const tenant = text.filter((one) => one.trim() !== '');
      const agent = fc.constantFrom('coder', '@user', '@tenant');
      const scope = fc.record({ tenant, agent, user: text, also: fc.array(agent, { maxLength: 3 }) });
      const property = fc.asyncProperty(scope, conditions, async (seen, asked) => {
        proxy.misbehave(answered);
        await call(new TenantPoints(server, seenBy(seen)), asked);
        const body: unknown = JSON.parse(proxy.seen[0]?.body ?? '');
        const filters = filtersIn(body).filter((filter) => !ofAnchor(filter));
        expect(filters.length).toBeGreaterThanOrEqual(name === 'insert' ? 0 : 1);
        for (const { must } of filters)
          expect(must.slice(0, 3)).toEqual([
            { key: 'tenant', match: { value: seen.tenant } },
            { key: 'agent', match: { any: [seen.agent, ...seen.also] } },
            { key: 'user', match: { any: ['', seen.user] } },
          ]);
        const { points = [], payload } = body as { points?: ReadonlyArray<{ payload?: object }>; payload?: object };
        const written = [payload, ...points.map((each) => each.payload)].filter((each) => each !== undefined);
        expect(written).toEqual(written.map((each) => ({ ...each, tenant: seen.tenant })));
        expect(written.length > 0).toBe(['insert', 'replace', 'setPayload'].includes(name));
      });
      await expect(fc.assert(property, { numRuns: 40 })).resolves.toBeUndefined();
    },
  );

  it('filters each search and its prefetch', async () => {
    await CALLS['search']?.(new TenantPoints(server, ownedBy({ tenant: 'acme' })), []);
    const filters = filtersIn(JSON.parse(proxy.seen[0]?.body ?? ''));
    expect(filters).toHaveLength(4);
    expect(filters.filter(ofAnchor)).toHaveLength(1);
  });
});

function answered({ path }: SeenRequest) {
  const lists = Array.from({ length: 3 }, () => ({ points: [] }));
  const result = path.includes('/query/batch')
    ? lists
    : path.includes('/scroll')
      ? { points: [], next_page_offset: null }
      : { count: 0, status: 'completed' };
  return { status: 200, body: { result, status: 'ok', time: 0 } };
}
