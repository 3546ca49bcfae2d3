import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './ports.js';
import { startProcess } from './processes.js';

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** SIGTERM, and the process has ended when this resolves. Its data stay until `stop`. */
  pause(): Promise<void>;
  /** Starts it again on the same port with the same data. */
  resume(): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

export interface TestRedisOptions {
  /** Whether it writes as in production, with an append-only file and an fsync on every write. Default true. */
  readonly durable?: boolean;
}

/** A real redis-server of its own on a free port of loopback, with its data in a temporary folder. */
export async function startRedis({ durable = true }: TestRedisOptions = {}): Promise<TestRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'etude-redis-'));
  const port = await freePort();
  const persistence = durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no'];
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--maxmemory-policy', 'noeviction'];
  const launch = () => startProcess({ command: 'redis-server', args: [...place, ...persistence], ready: 'Ready to accept connections' });
  const remove = () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  process.once('exit', remove);
  let redis = await launch();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
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
