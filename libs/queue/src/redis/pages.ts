import type { Redis } from 'ioredis';
import { unlessDamaged } from './redis.js';

export interface Page<T> {
  readonly items: readonly T[];
  /** Pass it as `after` to get the next page; null at the end. */
  readonly nextAfter: string | null;
}

export interface PageAsk {
  readonly pageSize: number;
  /** `nextAfter` of the previous page. Absent: the first page. */
  readonly after?: string;
}

export interface Candidate<T> {
  readonly isWanted: boolean;
  readonly bytes?: number;
  load(): Promise<T | null>;
}

/** Most records read for one page, even if few of them match. */
const SCAN_MAX = 5_000;
const CHUNK = 200;
/** A page ends at this size, because records with files may make it too big to send. */
const PAGE_MAX_BYTES = 2 * 1024 * 1024;

/**
 * Reads one page of an index whose ids are ordered by time, newest first. A short page may not be the last one (see `Page.nextAfter`).
 * @param look reads the records of these ids; null for a record that is gone; the index then loses its id
 */
export async function newestFirst<T>(
  redis: Redis,
  index: string,
  { pageSize, after = '' }: PageAsk,
  look: (ids: readonly string[]) => Promise<ReadonlyArray<Candidate<T> | null>>,
): Promise<Page<T>> {
  const items: T[] = [];
  let last = after;
  let bytes = 0;
  for (let scanned = 0; scanned < SCAN_MAX; scanned += CHUNK) {
    const ids = await redis.zrevrangebylex(index, last ? `(${last}` : '+', '-', 'LIMIT', 0, CHUNK);
    const candidates = await look(ids);
    const gone = ids.filter((_, i) => candidates[i] === null);
    if (gone.length > 0) await redis.zrem(index, ...gone);
    for (const [i, id] of ids.entries()) {
      const candidate = candidates[i];
      if (candidate?.isWanted) {
        const isFull = items.length === pageSize || (items.length > 0 && bytes + (candidate.bytes ?? 0) > PAGE_MAX_BYTES);
        if (isFull) return { items, nextAfter: last };
        const item = await unlessDamaged(redis, `${id} of ${index}`, () => candidate.load());
        if (item) items.push(item);
        bytes += candidate.bytes ?? 0;
      }
      last = id;
    }
    if (ids.length < CHUNK) return { items, nextAfter: null };
  }
  return { items, nextAfter: last };
}

export const namesAfter = (names: readonly string[], after: string, limit: number): readonly string[] =>
  names
    .filter((name) => name > after)
    .toSorted()
    .slice(0, limit);

/** Runs a pipeline. @returns the answers in order @throws the first error among them */
export async function answersOf(pipeline: ReturnType<Redis['pipeline']>): Promise<readonly unknown[]> {
  return ((await pipeline.exec()) ?? []).map(([failure, answer]) => {
    if (failure) throw failure;
    return answer;
  });
}
