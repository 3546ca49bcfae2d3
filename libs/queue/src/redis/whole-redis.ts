import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { EtudeError } from '@etude/contracts/errors';
import { Redis } from 'ioredis';

type Environment = Readonly<Record<string, string | undefined>>;

const KEYS_AT_ONCE = 500;

/** Arguments of redis-cli for a URL. The password goes through the environment, since all users see arguments. */
function clientOf(url: string) {
  const { protocol, hostname, port, username, password } = new URL(url);
  const user = username === '' ? [] : ['--user', decodeURIComponent(username)];
  const args = ['-h', hostname, '-p', port || '6379', ...(protocol === 'rediss:' ? ['--tls'] : []), ...user];
  return { args, auth: password === '' ? {} : { REDISCLI_AUTH: decodeURIComponent(password) } };
}

/**
 * Starts to copy a whole Redis into a file, as a replica would. Redis takes the snapshot between this call and the end of `taken`.
 *
 * @param environment of redis-cli, with the paths of programs
 * @returns `taken` resolves after the snapshot, `copied` once the file is complete
 * @throws EtudeError QUEUE_UNAVAILABLE with the reason of redis-cli
 */
export function copyRedis(
  url: string,
  path: string,
  environment: Environment,
): { readonly taken: Promise<void>; readonly copied: Promise<void> } {
  const { args, auth } = clientOf(url);
  const child = spawn('redis-cli', [...args, '--rdb', path], { env: { ...environment, ...auth }, stdio: ['ignore', 'pipe', 'pipe'] });
  const taken = Promise.withResolvers<void>();
  let said = '';
  const listen = (text: Buffer) => {
    said = `${said}${text.toString()}`.slice(-2_000);
    if (/^SYNC (sent to|with) master/m.test(said)) taken.resolve();
  };
  child.stdout.on('data', listen);
  child.stderr.on('data', listen);
  const copied = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(said.trim()))));
  }).catch((cause: Error) => {
    throw new EtudeError('QUEUE_UNAVAILABLE', `redis-cli --rdb could not copy Redis: ${cause.message}`, {}, { cause });
  });
  copied.catch(taken.reject);
  taken.promise.catch(() => undefined); // `copied` rejects too
  return { taken: taken.promise, copied };
}

/** Puts a snapshot into the empty data folder of a Redis that isn't running, as append-only files: Redis 7 reads nothing else. */
export function placeRedis(rdb: string, folder: string): void {
  const files = join(folder, 'appendonlydir');
  mkdirSync(files, { recursive: true, mode: 0o700 });
  copyFileSync(rdb, join(files, 'appendonly.aof.1.base.rdb'));
  writeFileSync(join(files, 'appendonly.aof.manifest'), 'file appendonly.aof.1.base.rdb seq 1 type b\n', { mode: 0o600 });
}

async function* keysOf(url: string, prefix: string): AsyncGenerator<readonly [Redis, readonly string[]]> {
  const redis = new Redis(url);
  try {
    for await (const keys of redis.scanStream({ match: `${prefix}:*`, count: KEYS_AT_ONCE })) yield [redis, keys as string[]];
  } finally {
    redis.disconnect();
  }
}

export async function isRedisEmpty(url: string, prefix: string): Promise<boolean> {
  for await (const [, keys] of keysOf(url, prefix)) if (keys.length > 0) return false;
  return true;
}

/** Deletes every key of one installation, so that old data doesn't mix with a snapshot that is loaded. */
export async function clearRedis(url: string, prefix: string): Promise<void> {
  for await (const [redis, keys] of keysOf(url, prefix)) await Promise.all(keys.map((key) => redis.unlink(key)));
}

/** Loads a snapshot into a running Redis of the same or a later version, over the network. A repeat replaces keys. */
export async function loadRedis(rdb: string, url: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'etude-restore-'));
  placeRedis(rdb, folder);
  const socket = join(folder, 'redis.sock');
  const args = ['--port', '0', '--unixsocket', socket, '--dir', folder, '--appendonly', 'yes', '--save', ''];
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(server, 'exit');
  try {
    await untilReady(server.stdout, rdb);
    const [from, to] = [new Redis(socket), new Redis(url)];
    try {
      for await (const keys of from.scanStream({ count: KEYS_AT_ONCE })) await copyKeys(from, to, keys as string[]);
    } finally {
      from.disconnect();
      to.disconnect();
    }
  } finally {
    server.kill();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

async function untilReady(output: Readable, rdb: string): Promise<void> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    output.on('data', (text: Buffer) => {
      said = `${said}${text.toString()}`.slice(-2_000);
      if (said.includes('eady to accept')) resolve();
    });
    output.once('end', () => reject(new EtudeError('QUEUE_UNAVAILABLE', `redis-server cannot load ${rdb}: ${said}`)));
  });
}

async function copyKeys(from: Redis, to: Redis, keys: readonly string[]): Promise<void> {
  await Promise.all(
    keys.map(async (key) => {
      const [value, expiresAt] = await Promise.all([from.dumpBuffer(key), from.pexpiretime(key)]);
      // A key that has expired meanwhile has no value.
      if (value !== null) await to.restore(key, Math.max(0, expiresAt), value, 'REPLACE', 'ABSTTL');
    }),
  );
}
