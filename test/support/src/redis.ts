import { cpSync, rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './ports.js';
import { startProcess } from './processes.js';

export interface TestRedis {
  readonly url: string;
  readonly pid: number;
  /** Folder with its data. */
  readonly dir: string;
  /** Sends SIGTERM. Resolves when the process has ended. The data stays until `stop`. */
  pause(): Promise<void>;
  /** Starts Redis again on the same port with the same data. */
  resume(): Promise<void>;
  /** Stops Redis and removes its data. */
  stop(): Promise<void>;
}

const FLAGS = '--bind 127.0.0.1 --maxmemory-policy noeviction --repl-diskless-sync-delay 0';

export const redisPlace = (port: number, dir: string): readonly string[] => [
  '--port',
  String(port),
  '--dir',
  dir,
  '--save',
  '',
  ...FLAGS.split(' '),
];

/** @param data folder whose files are copied first @param durable with an fsync on every write, as in production */
export async function startRedis({
  durable = true,
  data,
}: { readonly durable?: boolean; readonly data?: string } = {}): Promise<TestRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'etude-redis-'));
  if (data !== undefined) cpSync(data, dir, { recursive: true });
  const port = await freePort();
  const persistence = durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no'];
  const launch = () =>
    startProcess({ command: 'redis-server', args: [...redisPlace(port, dir), ...persistence], ready: 'Ready to accept connections' });
  const remove = () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  process.once('exit', remove);
  let redis = await launch();
  return {
    url: `redis://127.0.0.1:${port}`,
    dir,
    get pid() {
      return redis.pid;
    },
    pause: async () => void (await redis.stop()),
    async resume() {
      redis = await launch();
    },
    async stop() {
      await redis.stop();
      process.off('exit', remove);
      remove();
    },
  };
}
