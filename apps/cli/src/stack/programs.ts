import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { SERVICE_NODE_ARGS } from '../machine/bench.js';
import { ensureProofKeys, keysPath, logPath, memoryPath, qdrantPath, redisPath } from '../home/home.js';
import type { Program } from './managed-process.js';
import { clusterProgram, type ClusterReady, kubernetesSettings, type QdrantPlace, qdrantSettings } from './places.js';
import type { StackOptions } from '../home/stack-state.js';

export interface Endpoints {
  readonly redisPort: number;
  readonly grpcPort: number;
  readonly restPort: number;
  readonly mcpPort: number;
  /** null with a real model. */
  readonly modelPort: number | null;
  /** Of a Qdrant of this stack's own. */
  readonly qdrantPort: number;
}

export interface ProgramContext {
  readonly options: StackOptions;
  readonly endpoints: Endpoints;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Of this stack's Redis: other users of the machine reach its port, too. */
  readonly redisPassword: string;
  /** By which this stack's gateway and sandbox controller know each other. */
  readonly sandboxToken: string;
  /** null where code runs in processes of this machine. */
  readonly cluster: ClusterReady | null;
  /** null where memory is in a file. */
  readonly qdrant: QdrantPlace | null;
}

/** @param port 0 for any free one. @throws Error where it is taken */
async function bind(port: number): Promise<number> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  const bound = (server.address() as AddressInfo).port;
  server.close();
  await once(server, 'close');
  return bound;
}

/** The preferred port of loopback where it is free, else any free one. Free a moment ago, that is; nothing holds it: see `onFreePorts`. */
const choosePort = (preferred: number) => bind(preferred).catch(() => bind(0));

export async function chooseEndpoints({ redisPort, grpcPort, restPort, mcpPort, scripted }: StackOptions): Promise<Endpoints> {
  return {
    redisPort: await choosePort(redisPort),
    grpcPort: await choosePort(grpcPort),
    restPort: await choosePort(restPort),
    mcpPort: await choosePort(mcpPort),
    modelPort: scripted ? await choosePort(0) : null,
    qdrantPort: await choosePort(0),
  };
}

export const newPassword = () => randomBytes(24).toString('base64url');

/** The kernel ends a child whose parent died, however that died. Where setpriv lacks it, children only end by `stop`. */
const canTieToParent = spawnSync('setpriv', ['--pdeathsig', 'TERM', 'true'], { stdio: 'ignore' }).status === 0;

function tied(command: string, args: readonly string[]): Pick<Program, 'command' | 'args'> {
  return canTieToParent ? { command: 'setpriv', args: ['--pdeathsig', 'TERM', command, ...args] } : { command, args };
}

/** Keys go to whom they belong: the model's to those that ask it, the caller's to nobody. */
function inherited(environment: ProgramContext['environment'], withModel: boolean): Record<string, string> {
  const isKept = (name: string) => name !== 'ETUDE_API_KEY' && (withModel || !name.startsWith('OPENAI_'));
  return Object.fromEntries(
    Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined && isKept(entry[0])),
  );
}

/** Durable on every write, never evicting, on loopback only, with a password. */
export function redisProgram({ options, endpoints, environment, redisPassword }: ProgramContext): Program {
  const dir = redisPath(options.home);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const config = join(dir, 'redis.conf');
  const lines = [
    `port ${endpoints.redisPort}`,
    'bind 127.0.0.1',
    `dir ${JSON.stringify(dir)}`,
    'appendonly yes',
    'appendfsync always',
    'save ""',
    'maxmemory-policy noeviction',
    `requirepass ${redisPassword}`,
  ];
  writeFileSync(config, `${lines.join('\n')}\n`, { mode: 0o600 });
  return {
    name: 'redis',
    ...tied('redis-server', [config]),
    env: inherited(environment, false),
    cwd: dir,
    ready: 'Ready to accept connections',
    logPath: logPath(options.home, 'redis'),
  };
}

/** On loopback only. Its gRPC port is not used. */
export function qdrantProgram({ options, endpoints, environment }: ProgramContext, binary: string): Program {
  const dir = qdrantPath(options.home);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return {
    name: 'qdrant',
    ...tied(binary, []),
    env: {
      ...inherited(environment, false),
      QDRANT__SERVICE__HOST: '127.0.0.1',
      QDRANT__SERVICE__HTTP_PORT: String(endpoints.qdrantPort),
      QDRANT__SERVICE__GRPC_PORT: '0',
      QDRANT__STORAGE__STORAGE_PATH: join(dir, 'storage'),
      QDRANT__STORAGE__SNAPSHOTS_PATH: join(dir, 'snapshots'),
      QDRANT__TELEMETRY_DISABLED: 'true',
    },
    cwd: dir,
    ready: 'Qdrant HTTP listening on',
    logPath: logPath(options.home, 'qdrant'),
  };
}

export const sandboxClusterProgram = (options: StackOptions, environment: ProgramContext['environment']): Program =>
  clusterProgram({ ...options, environment: inherited(environment, false), tied });

const nodeProgram = (
  { options, environment }: ProgramContext,
  name: string,
  script: string,
  args: readonly string[],
  env: Record<string, string>,
  withModel = false,
): Program => ({
  name,
  ...tied(process.execPath, [...SERVICE_NODE_ARGS, join(options.root, script), ...args]),
  env: { ...inherited(environment, withModel), ...env },
  cwd: options.root,
  ready: '"ready":true',
  logPath: logPath(options.home, name),
});

export function scriptedModelProgram(context: ProgramContext): Program {
  const { options, endpoints } = context;
  const args = ['--script', options.scripted ?? '', '--port', String(endpoints.modelPort)];
  return nodeProgram(context, 'model', 'libs/model/dist/scripted-main.js', args, {});
}

const health = async () => ({ ETUDE_HTTP_PORT: String(await choosePort(0)), ETUDE_HTTP_HOST: '127.0.0.1' });

/** The four services with the settings of a laptop. What the environment says wins where it does not break the wiring. */
export async function servicePrograms(context: ProgramContext): Promise<Program[]> {
  const { options, endpoints, environment, redisPassword, sandboxToken, cluster } = context;
  const base = { ETUDE_REDIS_URL: `redis://:${redisPassword}@127.0.0.1:${endpoints.redisPort}`, ETUDE_QUEUE_PREFIX: 'etude' };
  const { signing, believing } = ensureProofKeys(options.home);
  const memory = {
    ...believing,
    ...(context.qdrant ? qdrantSettings(context.qdrant) : { ETUDE_MEMORY_ADAPTER: 'sqlite' }),
    ETUDE_MEMORY_PATH: memoryPath(options.home),
    ETUDE_SKILLS_ENABLED: environment['ETUDE_SKILLS_ENABLED'] ?? 'true',
    ETUDE_SKILLS_AUTO_REGISTER: environment['ETUDE_SKILLS_AUTO_REGISTER'] ?? 'true',
    ETUDE_SKILLS_APPROVAL: environment['ETUDE_SKILLS_APPROVAL'] ?? 'automatic',
  };
  const nightly = {
    ETUDE_CONSOLIDATION_SCHEDULE: environment['ETUDE_CONSOLIDATION_SCHEDULE'] ?? '0 3 * * *',
    ETUDE_CONSOLIDATION_TIME_ZONE: environment['ETUDE_CONSOLIDATION_TIME_ZONE'] ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
  const model: Record<string, string> = options.scripted
    ? { OPENAI_BASE_URL: `http://127.0.0.1:${endpoints.modelPort}/v1`, OPENAI_API_KEY: 'scripted', OPENAI_MODEL: 'scripted' }
    : {};
  const service = async (app: string, env: Record<string, string>, { name = app, asksModel = false } = {}) =>
    nodeProgram(context, name, `apps/${app}/dist/main.js`, [], { ...base, ...(await health()), ...env }, asksModel);
  const grpc = { ETUDE_GRPC_HOST: '127.0.0.1', ETUDE_GRPC_PORT: String(endpoints.grpcPort), ETUDE_AUTH_KEYS_PATH: keysPath(options.home) };
  const rest = { ETUDE_REST_HOST: '127.0.0.1', ETUDE_REST_PORT: String(endpoints.restPort) };
  const mcp = { ETUDE_MCP_HOST: '127.0.0.1', ETUDE_MCP_PORT: String(endpoints.mcpPort) };
  const rollout = { ...memory, ...model, ETUDE_ROLLOUT_CONCURRENCY: String(options.concurrency) };
  const inside = { ETUDE_SANDBOX_INTERNAL_TOKEN: sandboxToken };
  const sandbox = {
    ...inside,
    ...(cluster ? kubernetesSettings(options.home, cluster) : { ETUDE_SANDBOX_DRIVER: 'local' }),
  };
  const workers = Array.from({ length: options.rolloutWorkers }, (_, i) =>
    service('rollout-worker', rollout, { name: i === 0 ? 'rollout-worker' : `rollout-worker-${i + 1}`, asksModel: true }),
  );
  return Promise.all([
    service('consolidation-worker', { ...memory, ...signing, ...nightly, ...model }, { asksModel: true }),
    service('sandbox-controller', sandbox),
    ...workers,
    service('gateway', { ...memory, ...model, ...grpc, ...rest, ...mcp, ...inside }, { asksModel: true }),
  ]);
}
