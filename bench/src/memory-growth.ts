import { percentile, timed } from './figures.js';
import { type DataQuery, type DataRecord, LARGE_TENANT, type MemoryData, tenantOf } from './memory-data.js';

/** A measured store, with or without promises. A search returns the ten best records of one tenant, with their texts. */
export interface Side {
  insert(records: readonly DataRecord[]): unknown;
  readonly searches: Readonly<Record<string, (query: DataQuery) => unknown>>;
}

export interface Growth {
  /** Records per second, by side. */
  readonly inserts: Readonly<Record<string, number>>;
  readonly large: SearchTimes;
  readonly small: SearchTimes;
}

/** Milliseconds of each query, by the name of the search. All searches have the same order of queries. */
export type SearchTimes = Readonly<Record<string, readonly number[]>>;

const BATCH = 1_000;
const WARM_UP = 20;

/** Adds records `from` to `to` to every side, in alternating batches. Returns records per second by side. Calls `tell` after each tenth. */
export async function growTo(
  data: MemoryData,
  sides: Readonly<Record<string, Side>>,
  from: number,
  to: number,
  tell: (records: number) => void,
): Promise<Record<string, number>> {
  const ms = Object.fromEntries(Object.keys(sides).map((name) => [name, 0]));
  let done = from;
  for (const [at, batch] of batchesOf(from, to).entries()) {
    const records = batch.map((i) => data.record(i));
    for (const [name, side] of inTurns(Object.entries(sides), at)) {
      ms[name] = (ms[name] ?? 0) + (await timed(async () => side.insert(records)));
    }
    const tenth = Math.floor((10 * (done - from)) / (to - from));
    done += batch.length;
    if (Math.floor((10 * (done - from)) / (to - from)) > tenth && done < to) tell(done);
  }
  return Object.fromEntries(Object.entries(ms).map(([name, all]) => [name, ((to - from) / all) * 1_000]));
}

/** Sends the same queries to every search in turns. Returns the large tenant's times apart from the other tenants' times. */
export async function searchAll(
  queries: readonly DataQuery[],
  sides: Readonly<Record<string, Side>>,
): Promise<Pick<Growth, 'large' | 'small'>> {
  const searches = Object.values(sides).flatMap(({ searches: named }) => Object.entries(named));
  const times = (): Record<string, number[]> => Object.fromEntries(searches.map(([name]) => [name, []]));
  const [large, small] = [times(), times()];
  for (const [at, query] of [...queries.slice(0, WARM_UP), ...queries].entries()) {
    for (const [name, search] of inTurns(searches, at)) {
      const ms = await timed(async () => search(query));
      if (at >= WARM_UP) (query.tenant === LARGE_TENANT ? large : small)[name]?.push(ms);
    }
  }
  return { large, small };
}

/** Queries. Every second query is the large tenant's. */
export function queriesOf(data: MemoryData, size: number, count: number): DataQuery[] {
  return Array.from({ length: count }, (_, q) => {
    const place = Math.floor((size * (q + 0.5)) / count);
    const i = q % 2 === 0 ? place - (place % 10) : place - (place % 10) + (place % 9) + 1;
    return data.query(q, data.record(Math.min(i, size - 1)));
  });
}

/**
 * The median ratio of our time to the other side's time for the same query. The two searches follow each other, so that a slow phase of the
 * machine affects both.
 */
export function pairedRatio(ours: readonly number[], theirs: readonly number[]): number {
  return percentile(
    ours.map((ms, i) => ms / (theirs[i] ?? Number.NaN)),
    50,
  );
}

/** Batches of up to 1,000 records of one tenant each. The tenants take turns. */
function batchesOf(from: number, to: number): number[][] {
  const byTenant = Map.groupBy(
    Array.from({ length: to - from }, (_, i) => from + i),
    tenantOf,
  );
  const batches = [...byTenant.values()].flatMap((all) =>
    Array.from({ length: Math.ceil(all.length / BATCH) }, (_, b) => ({ turn: b, batch: all.slice(b * BATCH, (b + 1) * BATCH) })),
  );
  return batches.toSorted((a, b) => a.turn - b.turn).map(({ batch }) => batch);
}

function inTurns<T>(all: readonly T[], turn: number): T[] {
  return all.map((_, i) => all[(i + turn) % all.length] as T);
}
