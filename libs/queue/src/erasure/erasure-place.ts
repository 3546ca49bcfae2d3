import type { SkillVerify } from '@etude/contracts/queues';
import type { Redis } from 'ioredis';
import type { z } from 'zod';
import type { Producer } from '../jobs/producer.js';
import type { ErasureSubject } from '../redis/keys.js';

/** One thing in Redis that holds data of the erased. */
export interface Trace {
  /** False where it can't be removed yet, such as a job that is running. */
  remove(): Promise<boolean>;
  /** False for what may as well be somebody else's and is worth nothing to anyone: it is removed, and not looked for afterwards. */
  readonly isCertain: boolean;
}

/** Where such things are, and how all of them are found, a page at a time. Nothing but their being there says what is left to do. */
export interface ErasurePlace {
  readonly name: string;
  traces(erased: Erased): AsyncIterable<readonly Trace[]>;
}

/** Whose data is looked for. */
export interface Erased {
  readonly producer: Producer;
  readonly tenant: string;
  readonly subject: ErasureSubject;
  /** What was made since then is new, and stays. ms since 1970 by Redis. */
  readonly at: number;
  /** Tasks of theirs that there are. */
  readonly taskIds: ReadonlySet<string>;
  /** Whether memory has this version of a skill no longer. */
  readonly skillIsGone: (skill: z.infer<typeof SkillVerify.payload>) => Promise<boolean>;
}

export function isOwned({ subject }: Pick<Erased, 'subject'>, agent: string, user: string | null): boolean {
  if ('all' in subject) return true;
  return 'agent' in subject ? agent === subject.agent : user === subject.user;
}

/** Of "<agent>:<user>", and what may follow after another ":". */
export function isOwnKey(erased: Pick<Erased, 'subject'>, rest: string): boolean {
  const [agent = '', user = ''] = rest.split(':');
  return isOwned(erased, agent, user === '' ? null : user);
}

export function trace(remove: () => Promise<unknown>, isCertain = true): Trace {
  return {
    isCertain,
    async remove() {
      return (await remove()) !== false;
    },
  };
}

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
