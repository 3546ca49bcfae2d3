import { EtudeError } from '@etude/contracts/errors';
import type { Redis } from 'ioredis';
import type { RedisKeys } from './keys.js';
import { pairsOf, whileRedisAnswers } from './redis.js';

/** The commands of k8s/redis-users.example.acl that every installation runs. */
const COMMANDS = `
  ping info scan time type eval evalsha multi exec subscribe unsubscribe publish del unlink exists rename persist expire
  pexpire pexpireat pttl get set incr incrby hdel hexists hget hgetall hincrby hkeys hlen hmget hmset hscan hset hsetnx hstrlen
  hvals lindex llen lpop lpos lpush lrange lrem lset ltrim rpop rpoplpush rpush sadd scard sismember smembers srem xadd xdel
  xlen xrange xrevrange xtrim bzpopmin zadd zcard zcount zlexcount zpopmin zrange zrangebylex zrangebyscore zrem
  zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank zscore
`;

/**
 * For a readiness check: Redis answers, and our user may run these commands. Redis before 7 can't report permissions.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE, with the commands that the user may not run
 */
export async function requireCommands(redis: Redis, { queues }: RedisKeys): Promise<void> {
  const asked = redis as unknown as { missingCommands(...words: ReadonlyArray<string | number>): Promise<string[]> };
  const missing = await whileRedisAnswers(redis, asked.missingCommands(1, queues, ...COMMANDS.trim().split(/\s+/)));
  if (missing.length === 0) return;
  const message = `the user of ETUDE_REDIS_URL may not run ${missing.join(', ')} on keys of this prefix; see k8s/redis-users.example.acl`;
  throw new EtudeError('QUEUE_UNAVAILABLE', message);
}

/** Settings of Redis without which accepted work can be lost. */
const DURABLE = { 'maxmemory-policy': 'noeviction', appendonly: 'yes', appendfsync: 'always' };

/** Names the settings with which Redis can lose accepted work; undefined if it has or shows none. @throws EtudeError as `requireCommands` */
export async function redisRisk({ redis, keys }: { readonly redis: Redis; readonly keys: RedisKeys }): Promise<string | undefined> {
  await requireCommands(redis, keys);
  // Managed servers refuse CONFIG.
  const told = (await redis.config('GET', ...Object.keys(DURABLE)).catch(() => [])) as string[];
  const known = new Map(pairsOf(told));
  const wrong = Object.entries(DURABLE).filter(([name, value]) => known.has(name) && known.get(name) !== value);
  return wrong.length === 0 ? undefined : wrong.map(([name, value]) => `${name} is ${known.get(name)}, not ${value}`).join('; ');
}
