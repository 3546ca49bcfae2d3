import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './ports.js';

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
  /** As in production: append-only file, fsync on every write. Default true. */
  readonly durable?: boolean;
}

async function launch(port: number, dir: string, durable: boolean): Promise<ChildProcess> {
  const persistence = durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no'];
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--maxmemory-policy', 'noeviction', '--dir', dir];
  const child = spawn('redis-server', [...args, ...persistence], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`redis-server exited ${code}: ${said.slice(-500)}`)));
    child.stdout?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes('Ready to accept connections')) resolve();
    });
  });
  child.removeAllListeners('exit');
  child.stdout?.removeAllListeners('data').resume();
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** A real redis-server of its own on a free port of loopback, with its data in a temporary folder. */
export async function startRedis({ durable = true }: TestRedisOptions = {}): Promise<TestRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'etude-redis-'));
  const port = await freePort();
  const remove = () => rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  let child = await launch(port, dir, durable).catch((error: unknown) => {
    remove();
    throw error;
  });
  const kill = () => {
    child.kill('SIGKILL');
    remove();
  };
  process.once('exit', kill);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return child.pid ?? -1;
    },
    pause: () => end(child),
    async resume() {
      child = await launch(port, dir, durable);
    },
    async stop() {
      process.off('exit', kill);
      await end(child);
      remove();
    },
  };
}
