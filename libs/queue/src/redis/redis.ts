import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EtudeError, errorCode } from '@etude/contracts/errors';
import { Redis } from 'ioredis';
import { connectionOptions, replicasOf } from './connector.js';
import type { RedisKeys } from './keys.js';

/** The part of pino's logger that this library uses. */
export interface QueueLogger {
  debug?(details: object, message: string): void;
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/**
 * `producer`: for a caller that waits. Commands fail with QUEUE_UNAVAILABLE within seconds when Redis is away.
 * `worker`: commands wait for Redis to come back, however long that takes.
 */
export type RedisRole = 'producer' | 'worker';

/** The longest time for a producer's command, including the time to connect. */
const COMMAND_TIMEOUT_MS = 5_000;
/**
 * How long a server may take to answer before the connection is closed. A connection to a lost machine never closes by itself. BullMQ's
 * blocking reads take at most 10 s.
 */
const SILENCE_MS = 20_000;
const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 1_000;

/** Makes a connection that knows this library's scripts. It connects and reconnects by itself. Each outage is logged once, not at every retry. */
export function connectRedis(url: string, role: RedisRole, logger?: QueueLogger): Redis {
  const redis = new Redis({
    ...connectionOptions(url),
    scripts: (loaded ??= readScripts()),
    retryStrategy: (times) => Math.min(RETRY_FIRST_MS * 2 ** Math.min(times, 10), RETRY_MOST_MS),
    connectTimeout: 2_000,
    keepAlive: 10_000,
    socketTimeout: SILENCE_MS,
    ...(role === 'producer' ? { maxRetriesPerRequest: 1, commandTimeout: COMMAND_TIMEOUT_MS } : { maxRetriesPerRequest: null }),
  });
  if (logger) LOGGERS.set(redis, { logger, logged: new Set() });
  const replicas = replicasOf(url);
  if (replicas > 0) REPLICAS.set(redis, replicas);
  reportOutages(redis, logger);
  return redis;
}

/** The logger of a connection, and the damaged records that it has logged. A record is logged once, because some passes run every second. */
const LOGGERS = new WeakMap<Redis, { readonly logger: QueueLogger; readonly logged: Set<string> }>();

/** Number of replicas that must confirm a script's writes before `runScript` returns. Absent: none. */
const REPLICAS = new WeakMap<Redis, number>();
/** How long replicas have to confirm. It is less than a command's timeout, so that the caller learns the reason. */
const REPLICAS_WAIT_MS = 3_000;

/** The last error of each connection that is down now. */
const OUTAGES = new WeakMap<Redis, string>();

/** Logs the outages of a connection. Every connection needs it, duplicates too: an error without a listener ends the process. */
export function reportOutages(redis: Redis, logger?: QueueLogger): void {
  let lost = false;
  redis.on('error', (error: Error) => {
    if (!lost) logger?.warn({ error: error.message, redis: addressOf(redis) }, 'Redis is away; reconnecting');
    lost = true;
    OUTAGES.set(redis, error.message);
  });
  redis.on('ready', () => {
    OUTAGES.delete(redis);
    if (lost) logger?.info({ redis: addressOf(redis) }, 'Redis is back');
    lost = false;
  });
}

/** Why a connection is not ready: its last error, or else its status in ioredis. */
export const outageOf = (redis: Redis): string => OUTAGES.get(redis) ?? redis.status;

/** Host and port, or the sentinels, without the password. */
export function addressOf(redis: Redis): string {
  const { sentinels, name, host = '127.0.0.1', port = 6379 } = redis.options;
  return sentinels ? `${name} of ${sentinels.map((one) => `${one.host}:${one.port}`).join(',')}` : `${host}:${port}`;
}

/** Pairs of an answer that Redis gives as a flat list, such as names with their values. */
export const pairsOf = (flat: readonly string[]): ReadonlyArray<readonly [string, string]> =>
  flat.flatMap((text, at) => (at % 2 === 0 ? [[text, flat[at + 1] ?? ''] as const] : []));

/** Whether the connection failed, not the command. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code;
  return (
    error.name === 'MaxRetriesPerRequestError' ||
    (typeof code === 'string' && /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH)/.test(code)) ||
    /Connection is closed|Command timed out|Stream isn't writeable|All sentinels are unreachable|^LOADING|max number of clients/.test(
      error.message,
    )
  );
}

/**
 * Waits for `work`. A producer's connection waits at most its command timeout, a worker's connection until Redis is back.
 * @throws EtudeError QUEUE_UNAVAILABLE when Redis doesn't answer in time, refuses to write (full disk, no memory), or is gone
 * Why a timeout here too: ioredis never times out a command that waits for the first connection.
 */
export async function whileRedisAnswers<T>(redis: Redis, work: Promise<T>): Promise<T> {
  const timeoutMs = redis.options.commandTimeout;
  let timer: NodeJS.Timeout | undefined;
  try {
    if (timeoutMs === undefined) return await work;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(unavailable(redis, OUTAGES.get(redis) ?? `no answer within ${timeoutMs} ms`)), timeoutMs);
    });
    return await Promise.race([work, late]);
  } catch (error) {
    throw toUnavailable(redis, error);
  } finally {
    clearTimeout(timer);
  }
}

/** The comment above the script in its `.lua` file names its keys, arguments and answer. @throws EtudeError QUEUE_UNAVAILABLE */
export async function runScript<Answer>(
  redis: Redis,
  name: string,
  keys: readonly string[],
  args: ReadonlyArray<string | number>,
): Promise<Answer> {
  const commands = redis as unknown as Record<string, (...parts: ReadonlyArray<string | number>) => Promise<Answer>>;
  const command = commands[name];
  if (command === undefined) throw new Error(`there is no Lua script "${name}"`);
  // A cluster and an ACL refuse an empty key. The prelude empties a key that repeats the first one.
  const places = keys.map((key) => key || keys[0]!);
  const answer = command.call(redis, keys.length, ...places, ...args);
  const replicas = REPLICAS.get(redis);
  return whileRedisAnswers(redis, replicas === undefined ? answer : answer.then((said) => replicated(redis, replicas, said)));
}

/** Reads one of many stored records. A damaged record is logged and resolves to undefined. @throws EtudeError, except with code INTERNAL */
export async function unlessDamaged<T>(redis: Redis, record: string, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (thrown) {
    const error = toUnavailable(redis, thrown);
    if (errorCode(error) !== 'INTERNAL') throw error;
    const { logger, logged } = LOGGERS.get(redis) ?? {};
    // The message of another error, such as a SyntaxError, may quote the record.
    const reason = error instanceof EtudeError ? error.message : (error as Error).name;
    if (!logged?.has(record)) logger?.error({ record, reason }, 'a stored record cannot be read and is left out');
    logged?.add(record);
    return undefined;
  }
}

export class RedisStore {
  constructor(
    protected readonly redis: Redis,
    protected readonly keys: RedisKeys,
  ) {}

  protected ask<T>(work: Promise<T>): Promise<T> {
    return whileRedisAnswers(this.redis, work);
  }

  protected run<Answer>(name: string, keys: readonly string[], args: ReadonlyArray<string | number>): Promise<Answer> {
    return runScript(this.redis, name, keys, args);
  }
}

/** Waits until `replicas` replicas have every write of this connection. A repeated request waits too. */
async function replicated<Answer>(redis: Redis, replicas: number, answer: Answer): Promise<Answer> {
  let isLost = false;
  const lose = () => (isLost = true);
  redis.once('close', lose);
  const reached = await redis.wait(replicas, REPLICAS_WAIT_MS).finally(() => redis.off('close', lose));
  // WAIT covers only writes of its own connection. ioredis would repeat it on a new connection, which has no writes.
  if (isLost)
    throw unavailable(redis, 'the connection was lost before replicas had confirmed the write; the write may be stored all the same');
  if (reached >= replicas) return answer;
  throw unavailable(redis, `${reached} of ${replicas} replicas have confirmed the write; the write may be stored all the same`);
}

function toUnavailable(redis: Redis, error: unknown): unknown {
  if (errorCode(error) !== 'INTERNAL' || !(error instanceof Error)) return error;
  return isConnectionError(error) ||
    /^(OOM|EXECABORT|MISCONF|READONLY|NOREPLICAS|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|NOPERM)/.test(error.message)
    ? unavailable(redis, error.message, error)
    : error;
}

function unavailable(redis: Redis, why: string, cause?: Error): EtudeError {
  const message = `Redis at ${addressOf(redis)} is not usable (${why}); check that Redis runs and can write, then try again`;
  return new EtudeError('QUEUE_UNAVAILABLE', message, { retryAfterMs: 1_000 }, { cause });
}

/** The scripts are read from `src`, because the compiler copies no `.lua` files. The path is the same from `src/redis` and `dist/redis`. */
const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url));
const PRELUDE = 'redis/prelude.lua';
const DECLARED = /^function scripts\.(\w+)\(\)/gm;
let loaded: ReturnType<typeof readScripts> | undefined;

/**
 * Each `function scripts.NAME()` in a `.lua` file of this package becomes one script: the prelude, the folder's `shared.lua`, the whole file, and a
 * call of that function. ioredis sends scripts by digest.
 * @throws Error if two files declare the same name
 */
function readScripts(): Record<string, { readonly lua: string }> {
  const prelude = readFileSync(join(SOURCES, PRELUDE), 'utf8');
  const scripts: ReturnType<typeof readScripts> = {};
  for (const file of globSync('*/*.lua', { cwd: SOURCES })) {
    const shared = join(SOURCES, dirname(file), 'shared.lua');
    const text = [...(existsSync(shared) ? [shared] : []), join(SOURCES, file)].map((path) => readFileSync(path, 'utf8')).join('\n');
    for (const [, name = ''] of text.matchAll(DECLARED)) {
      if (name in scripts) throw new Error(`the Lua script "${name}" of ${file} is declared twice`);
      scripts[name] = { lua: `${prelude}\n${text}\nreturn scripts.${name}()\n` };
    }
  }
  return scripts;
}
