import { once } from 'node:events';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from './ports.js';
import { startProcess, type TestProcess } from './processes.js';
import { writeProofKeys } from './proof-keys.js';
import { startRedis, type TestRedis } from './redis.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export interface TestStackOptions {
  readonly script: string;
  /** Added to every service's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Data to start with: the data folder of a Redis, and a memory file. */
  readonly data?: { readonly redis: string; readonly memory?: string };
}

/** The four services as real processes, with their own Redis, memory file and scripted model. */
export interface TestStack {
  /** "host:port" of the gateway; calls without a key belong to tenant "test". */
  readonly address: string;
  readonly redis: TestRedis;
  readonly memoryPath: string;
  /** Base URL of the scripted model, without "/v1". */
  readonly modelUrl: string;
  readonly gateway: TestProcess;
  readonly controller: TestProcess;
  readonly consolidator: TestProcess;
  /** Starts another rollout worker. A new stack has no rollout worker. @param more added to the worker's environment */
  startRolloutWorker(more?: Readonly<Record<string, string>>): Promise<TestProcess>;
  start(service: 'gateway' | 'sandbox-controller' | 'consolidation-worker'): Promise<TestProcess>;
  stop(): Promise<void>;
}

/** Starts everything except rollout workers. Needs the built services (`tsc -b`). */
export async function startStack({ script, env = {}, data }: TestStackOptions): Promise<TestStack> {
  const dir = await mkdtemp(join(tmpdir(), 'etude-stack-'));
  const redis = await startRedis(data && { data: data.redis });
  const [grpcPort, modelPort] = [await freePort(), await freePort()];
  const modelUrl = `http://127.0.0.1:${modelPort}`;
  const memoryPath = join(dir, 'memory.sqlite');
  if (data?.memory !== undefined) await copyFile(data.memory, memoryPath);
  const settings = {
    ETUDE_LOG_LEVEL: 'warn',
    ETUDE_REDIS_URL: redis.url,
    ETUDE_MEMORY_PATH: memoryPath,
    // The lexical embedder starts at once and needs no model files.
    ETUDE_EMBEDDER: 'lexical',
    ETUDE_GRPC_PORT: String(grpcPort),
    ETUDE_AUTH_ANONYMOUS_TENANT: 'test',
    // Scripts expect that rollouts see every memory that was found.
    ETUDE_RECALL_WITHHOLD_PROBABILITY: '0',
    ETUDE_SKILLS_ENABLED: 'true',
    ETUDE_SKILLS_AUTO_REGISTER: 'true',
    ETUDE_SKILLS_APPROVAL: 'automatic',
    ...writeProofKeys(dir),
    OPENAI_BASE_URL: `${modelUrl}/v1`,
    OPENAI_MODEL: 'scripted',
    ...env,
  };
  const started: TestProcess[] = [];
  const launch = async (args: readonly string[], more = {}) => {
    const child = await startProcess({ args, env: { ...settings, ETUDE_HTTP_PORT: String(await freePort()), ...more } });
    started.push(child);
    return child;
  };

  const service = (name: string, more = {}) => launch(['--max-semi-space-size=4', join(ROOT, 'apps', name, 'dist/main.js')], more);
  const stop = async () => {
    await Promise.all(started.toReversed().map((child) => child.stop()));
    await redis.stop();
    await rm(dir, { recursive: true, force: true });
  };
  try {
    const starting = [
      launch([join(ROOT, 'libs/model/dist/scripted-main.js'), '--script', script, '--port', String(modelPort)]),
      service('gateway'),
      service('sandbox-controller'),
      service('consolidation-worker'),
    ] as const;
    // Waits for all processes, so that `stop` also ends the others if one process fails to start.
    await Promise.allSettled(starting);
    const [, gateway, controller, consolidator] = await Promise.all(starting);
    return {
      address: `127.0.0.1:${grpcPort}`,
      redis,
      memoryPath,
      modelUrl,
      gateway,
      controller,
      consolidator,
      startRolloutWorker: (more) => service('rollout-worker', more),
      start: (name) => service(name),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

export async function ended({ child }: TestProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}
