import * as fc from 'fast-check';
import { afterAll, expect } from 'vitest';
import type { Candidate, IndexedText, MemoryRecord, Owners, RecordFilter, RecordStore, StoreQuery } from '../src/record-store.js';
import { compareKeys, nameOf } from '../src/record-store.js';
import { modelStore } from './model-store.js';
import type { ItOfStore } from './record-store-conformance.js';
import { collect, recordOf, vectorOf } from './record-store-samples.js';

const TIMEOUT_MS = 300_000;
/** Tolerance, because vectors have single precision and databases sum in different orders. */
const CLOSE = 2e-4;

const TENANTS = ['acme', 'acme2', 'Acme', '@global'];
const AGENTS = ['coder', 'coder2', '@tenant', '@user'];
const USERS = ['ann', 'ann2', 'Ann'];
const KEYS = ['k1', 'k2', 'k3', 'K1', 'k1 '];
const KINDS = ['fact', 'summary'] as const;
const WORDS = ['csv', 'parse', 'sort', 'numbers', 'json', 'parse_csv', 'the'];
const CATEGORIES = ['a', 'b', 'A'];

const tenant = fc.constantFrom(...TENANTS);
const agent = fc.constantFrom(...AGENTS);
const user = fc.constantFrom(...USERS);
const kind = fc.constantFrom(...KINDS);
const key = fc.constantFrom(...KEYS);
const text = fc.array(fc.constantFrom(...WORDS), { maxLength: 6 }).map((words) => words.join(' '));
const vector = fc
  .record({ axis: fc.nat(7), other: fc.nat(7), part: fc.constantFrom(0, 0.25, 0.5) })
  .map(({ axis, other, part }) => vectorOf({ [other]: part, [axis]: 1 }));
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const record: fc.Arbitrary<MemoryRecord> = fc
  .record({
    tenant,
    agent,
    user: fc.option(user),
    kind,
    key,
    createdAt: fc.nat(5),
    worth: fc.constantFrom(0, 0.25, 0.5, 1),
    shown: fc.boolean(),
    category: maybe(fc.constantFrom(...CATEGORIES)),
  })
  .map(({ tenant: of, agent: by, user: whose, category, ...part }) =>
    recordOf({
      ...part,
      scope: { tenant: of, agent: by, user: whose },
      fields: category === undefined ? {} : { category },
      text: `${of} ${by} ${whose}`,
    }),
  );
const indexed: fc.Arbitrary<IndexedText[]> = fc.array(fc.record({ text, vector: fc.option(vector) }), { maxLength: 3 });
const filter: fc.Arbitrary<RecordFilter> = fc.record({
  kinds: maybe(fc.uniqueArray(kind, { minLength: 1 })),
  keys: maybe(fc.uniqueArray(key)),
  where: maybe(fc.record({ category: fc.constantFrom(...CATEGORIES) })),
  shown: maybe(fc.boolean()),
  createdSince: maybe(fc.nat(5)),
  createdBefore: maybe(fc.nat(5)),
  worthMin: maybe(fc.constantFrom(0.25, 0.5)),
});
const scope = fc.oneof(
  fc.record({ tenant, agent: fc.option(agent), user: maybe(fc.option(user)) }),
  fc.record({ tenant, agent, user, also: fc.array(fc.constantFrom(...AGENTS, 'acme', 'unknown'), { maxLength: 3 }) }),
);
const owners: fc.Arbitrary<Owners> = fc.record({ tenant, agent: maybe(agent), user: maybe(fc.option(user)) });

const operation = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('insert' as const), record, indexed }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('replace' as const, 'update' as const),
      record,
      indexed,
      stale: fc.nat(3).map((n) => n === 0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), owners, filter }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('load' as const), scope, kind }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('find' as const),
      scope,
      filter,
      order: fc.constantFrom('newest' as const, 'key' as const),
      limit: fc.integer({ min: 1, max: 6 }),
      afterKey: maybe(key),
      after: maybe(fc.record({ createdAt: fc.nat(5), key })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('each' as const), owners, filter }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('search' as const),
      scope,
      filter,
      text,
      vector: fc.option(vector),
      limit: fc.integer({ min: 1, max: 8 }),
    }),
  },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** Compares random operations of random tenants, agents and users with a plain array. Prints the number of operations. */
export function recordStoreIsolation(it: ItOfStore, runs: number): void {
  let operations = 0;
  let name = '';
  afterAll(() => console.log(`memory isolation: ${operations.toLocaleString('en-US')} operations, ${name}`));

  it('answers like an array, and shows nobody records of others', { timeout: TIMEOUT_MS }, async ({ store }) => {
    name = store.name;
    const models = [modelStore(), modelStore({ removedCount: true })] as const;
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 30, maxLength: 80, size: 'max' }), async (list) => {
        for (const of of TENANTS) for (const each of [store, ...models]) await each.remove({ tenant: of }, 'semantic', {});
        for (const one of list) {
          operations += 1;
          if (one.do === 'search') await compareSearch(store, models, one);
          else await compare(store, models, one);
        }
        for (const of of TENANTS) await compare(store, models, { do: 'each', owners: { tenant: of }, filter: {} });
      }),
      { numRuns: Number(process.env.ETUDE_TEST_ISOLATION_RUNS ?? runs) },
    );
    expect(await store.damage()).toEqual([]);
  });
}

type Search = Extract<Operation, { do: 'search' }>;
type Models = readonly [whole: RecordStore, counting: RecordStore];

/** `one` is the operation, shown if the comparison fails. */
async function compare(store: RecordStore, models: Models, one: Exclude<Operation, Search>): Promise<void> {
  const call = await callOf(models[0], one);
  const found = await call(store);
  for (const model of models) expect({ one, found }).toEqual({ one, found: await call(model) });
}

async function callOf(model: RecordStore, one: Exclude<Operation, Search>): Promise<(store: RecordStore) => Promise<unknown>> {
  if (one.do === 'remove') return (store) => store.remove(one.owners, 'semantic', one.filter);
  if (one.do === 'load') return (store) => store.load(one.scope, 'semantic', one.kind, KEYS);
  if (one.do === 'each')
    return async (store) => [
      byName(await collect(store.each(one.owners, 'semantic', one.filter))),
      await store.count(one.owners, 'semantic', one.filter),
    ];
  if (one.do === 'find') {
    const { scope: by, filter: asked, order, limit, afterKey, after } = one;
    // Within one kind, because the order of equal keys of two kinds is undefined.
    const narrow = { ...asked, kinds: [asked.kinds?.[0] ?? KINDS[0]] };
    const place = { ...(afterKey === undefined ? {} : { afterKey }), ...(after === undefined ? {} : { after }) };
    return (store) => store.find(by, 'semantic', narrow, { order, limit, ...place });
  }
  const change = one.do === 'insert' ? one : { ...one, revision: await revisionOf(model, one) };
  return (store) => store.write(one.record.scope.tenant, [change]);
}

async function revisionOf(model: RecordStore, one: { readonly record: MemoryRecord; readonly stale: boolean }): Promise<number> {
  const { scope: of, kind: by, key: name } = one.record;
  const [known] = await model.load({ tenant: of.tenant, agent: null }, 'semantic', by, [name]);
  return (known?.revision ?? 1) + (one.stale ? 1 : 0);
}

function byName(list: readonly MemoryRecord[]): MemoryRecord[] {
  return list.toSorted((a, b) => compareKeys(`${a.kind} ${a.key}`, `${b.kind} ${b.key}`));
}

async function compareSearch(store: RecordStore, models: Models, one: Search): Promise<void> {
  const { keys: _keys, ...by } = one.filter;
  const query: StoreQuery = { ...by, text: one.text, vector: one.vector, limit: one.limit };
  const found = await store.search(one.scope, 'semantic', query);
  const allIn = (model: RecordStore) => model.search(one.scope, 'semantic', { ...query, limit: Infinity });
  const expected = await allIn(models[0]);
  const wrong = wrongIn(found, expected, one.limit);
  if (store.name === 'qdrant' && wrong.length > 0 && wrongIn(found, await allIn(models[1]), one.limit).length === 0) return;
  expect({ one, found, expected, wrong }).toEqual({ one, found, expected, wrong: [] });
}

const isClose = (a: number, b: number) => Math.abs(a - b) < CLOSE;

/** Pairs of highest values that differ, and candidates with other values than expected. Among equal candidates any may be found. */
function wrongIn(found: readonly Candidate[], expected: readonly Candidate[], limit: number): unknown[] {
  const highest = (list: readonly Candidate[], value: 'cosine' | 'bm25') =>
    list
      .map((candidate) => candidate[value])
      .filter((one) => one >= 1e-6)
      .toSorted((a, b) => b - a)
      .slice(0, limit);
  const lists = (['cosine', 'bm25'] as const).map((value) => [highest(found, value), highest(expected, value)] as const);
  const wrong = found.filter((one, at) => {
    const known = expected.find((other) => nameOf(other) === nameOf(one));
    if (known === undefined || found.findIndex((other) => nameOf(other) === nameOf(one)) !== at) return true;
    const isSame = isClose(known.cosine, one.cosine) && (one.bm25 === 0 || isClose(known.bm25, one.bm25));
    return !isSame || known.createdAt !== one.createdAt || known.worth !== one.worth;
  });
  return [
    ...lists.filter(([ours, theirs]) => ours.length !== theirs.length || !ours.every((one, i) => isClose(one, theirs[i] ?? Number.NaN))),
    ...wrong,
  ];
}
