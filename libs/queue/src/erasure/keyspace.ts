import type { Redis } from 'ioredis';

const PAGE = 500;

/** Every key that there is from beginning to end of the scan, at least once, a page at a time. Nothing in `start` is a pattern. */
export async function* keysStartingWith(redis: Redis, start: string, type?: 'hash'): AsyncGenerator<readonly string[]> {
  const pattern = `${start.replaceAll(/[\\*?[\]^]/g, String.raw`\$&`)}*`;
  for (let cursor = '0'; ;) {
    const [next, keys] =
      type === undefined
        ? await redis.scan(cursor, 'MATCH', pattern, 'COUNT', PAGE)
        : await redis.scan(cursor, 'MATCH', pattern, 'COUNT', PAGE, 'TYPE', type);
    if (keys.length > 0) yield keys;
    if (next === '0') return;
    cursor = next;
  }
}

/** Fields of a hash with their values, a page at a time. */
export async function* fieldsOf(redis: Redis, key: string): AsyncGenerator<ReadonlyArray<readonly [string, string]>> {
  for (let cursor = '0'; ;) {
    const [next, flat] = await redis.hscan(key, cursor, 'COUNT', PAGE);
    const pairs = flat.flatMap((text, i) => (i % 2 === 0 ? [[text, flat[i + 1] ?? ''] as const] : []));
    if (pairs.length > 0) yield pairs;
    if (next === '0') return;
    cursor = next;
  }
}
