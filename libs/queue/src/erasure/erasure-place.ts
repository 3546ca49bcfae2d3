import type { SkillVerify } from '@etude/contracts/queues';
import type { Redis } from 'ioredis';
import type { z } from 'zod';
import type { Producer } from '../jobs/producer.js';
import type { ErasureSubject } from '../redis/keys.js';

/** Removes one thing that holds data of the erased. False where it can't be removed yet, such as a job that is running. */
export type Trace = () => Promise<unknown>;

/** A place where such things are, and how all of them are found, a page at a time. Their being there alone says what is left to do. */
export interface ErasurePlace {
  readonly name: string;
  traces(erased: Erased): AsyncIterable<readonly Trace[]>;
}

/** Whose data is looked for. */
export interface Erased {
  readonly producer: Producer;
  readonly tenant: string;
  readonly subject: ErasureSubject;
  /** Data that was made since then is new, and stays. ms since 1970 by Redis. */
  readonly at: number;
  /** Their tasks that are still there. */
  readonly taskIds: ReadonlySet<string>;
  /** Whether memory no longer has this version of a skill. */
  readonly skillIsGone: (skill: z.infer<typeof SkillVerify.payload>) => Promise<boolean>;
}

/** Whether data of this agent and user belongs to the erased. */
export function isOwned({ subject }: Pick<Erased, 'subject'>, agent: string, user: string | null): boolean {
  if ('all' in subject) return true;
  return 'agent' in subject ? agent === subject.agent : user === subject.user;
}

/** As `isOwned`, of "<agent>:<user>", and of more after another ":". */
export function isOwnKey(erased: Pick<Erased, 'subject'>, rest: string): boolean {
  const [agent = '', user = ''] = rest.split(':');
  return isOwned(erased, agent, user || null);
}

/** Things with a key each. */
export interface KeyedPlace {
  readonly name: string;
  /** Beginning of every key. */
  readonly start: (erased: Erased) => string;
  /** null where the thing stays. @param id the rest of the key */
  readonly trace: (erased: Erased, key: string, id: string) => Promise<Trace | null>;
  readonly type?: 'hash';
}

export const keyedPlace = ({ name, start, trace, type }: KeyedPlace): ErasurePlace => ({
  name,
  async *traces(erased) {
    const beginning = start(erased);
    for await (const page of keysStartingWith(erased.producer.redis, beginning, type)) {
      const found = await Promise.all(page.map((key) => trace(erased, key, key.slice(beginning.length))));
      yield found.filter((one) => one !== null);
    }
  },
});

const PAGE = 500;

/** Every key that is there from beginning to end of the scan, at least once, a page at a time. Nothing in `start` is a pattern. */
export async function* keysStartingWith(redis: Redis, start: string, type?: 'hash'): AsyncGenerator<readonly string[]> {
  const match = `${start.replaceAll(/[\\*?[\]^]/g, String.raw`\$&`)}*`;
  for await (const page of redis.scanStream({ match, count: PAGE, ...(type === undefined ? {} : { type }) })) yield page as string[];
}

/** Fields of a hash with their values, a page at a time. */
export async function* fieldsOf(redis: Redis, key: string): AsyncGenerator<ReadonlyArray<readonly [string, string]>> {
  for await (const page of redis.hscanStream(key, { count: PAGE })) {
    const flat = page as string[];
    yield flat.flatMap((text, i) => (i % 2 === 0 ? [[text, flat[i + 1] ?? ''] as const] : []));
  }
}
