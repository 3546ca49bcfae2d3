import type { SkillVerify } from '@etude/contracts/queues';
import type { RecordOfTenant } from '@etude/domain/recall/deleted-record';
import type { Redis } from 'ioredis';
import type { z } from 'zod';
import type { Producer } from '../jobs/producer.js';
import type { ErasureSubject } from '../redis/keys.js';
import { pairsOf } from '../redis/redis.js';

/** Removes one thing (a key, a field, a job) with data of the subject. Resolves to false if it can't be removed yet, such as a running job. */
export type Trace = () => Promise<unknown>;

/** A kind of keys that may hold data of the subject. `traces` finds the data, a page at a time. An erasure ends when no place has data. */
export interface ErasurePlace {
  readonly name: string;
  traces(erased: Erased): AsyncIterable<readonly Trace[]>;
}

/** The subject of an erasure, and the facts that decide whether data belongs to it. */
export interface Erased {
  readonly producer: Producer;
  readonly tenant: string;
  readonly subject: ErasureSubject;
  /** Data made from this time on stays. ms since 1970 by Redis. */
  readonly at: number;
  /** Ids of the subject's tasks that still exist. */
  readonly taskIds: ReadonlySet<string>;
  /** Tells whether memory no longer has this version of a skill. */
  readonly skillIsGone: (skill: z.infer<typeof SkillVerify.payload>) => Promise<boolean>;
}

/** The memory record that is erased; null if the subject is an agent, a user or the tenant. */
export function namedRecordOf({ tenant, subject }: Pick<Erased, 'tenant' | 'subject'>): RecordOfTenant | null {
  return 'record' in subject ? { tenant, ...subject.record } : null;
}

export function isOwned({ subject }: Pick<Erased, 'subject'>, agent: string, user: string | null): boolean {
  if ('all' in subject) return true;
  if ('record' in subject) return false;
  return 'agent' in subject ? agent === subject.agent : user === subject.user;
}

/** `isOwned` for the rest of a key, "<agent>:<user>" and perhaps more parts. */
export function isOwnKey(erased: Pick<Erased, 'subject'>, rest: string): boolean {
  const [agent = '', user = ''] = rest.split(':');
  return isOwned(erased, agent, user || null);
}

interface KeyedPlace {
  readonly name: string;
  /** The prefix of every key of the place. */
  readonly start: (erased: Erased) => string;
  /** Resolves to null if the key stays. @param id the rest of the key after `start` */
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

/** Keys that begin with the plain text `start`, a page at a time. A key that exists during the whole scan comes at least once. */
export async function* keysStartingWith(redis: Redis, start: string, type?: 'hash'): AsyncGenerator<readonly string[]> {
  const match = `${start.replaceAll(/[\\*?[\]^]/g, String.raw`\$&`)}*`;
  for await (const page of redis.scanStream({ match, count: PAGE, ...(type === undefined ? {} : { type }) })) yield page as string[];
}

export async function* fieldsOf(redis: Redis, key: string): AsyncGenerator<ReadonlyArray<readonly [string, string]>> {
  for await (const page of redis.hscanStream(key, { count: PAGE })) yield pairsOf(page as string[]);
}
