import { spawnSync } from 'node:child_process';
import { hash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { GATEWAY_NODE_ARGS, PORTS, type Ports, SERVICE_NODE_ARGS, type StackOptions } from '../home/stack-state.js';
import { ensureProofKeys, keysPath, logPath, memoryPath, portsPath, proofPublicKeysPath, proofSigningKeyPath } from '../home/home.js';
import type { Program } from './managed-process.js';

/** The line that the cluster program prints once pods can be started. */
export const ClusterReady = z.object({
  ready: z.literal(true),
  kubeconfig: z.string(),
  namespace: z.string(),
  templates: z.string(),
});
export type ClusterReady = z.infer<typeof ClusterReady>;

const templatesPath = (home: string) => join(home, 'sandbox-templates.json');

/** Label that distinguishes this home's pods from those of other homes in one namespace. */
const installationOf = (home: string) => `local-${hash('sha256', home).slice(0, 8)}`;

/** Secret that survives restarts, so that a new controller recognises its predecessor's pods. */
function tokenSecret(home: string): string {
  const path = join(home, 'sandbox-secret');
  if (!existsSync(path)) writeFileSync(path, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600 });
  return readFileSync(path, 'utf8').trim();
}

const kubernetesSettings = (home: string, cluster: ClusterReady): Record<string, string> => ({
  ETUDE_SANDBOX_DRIVER: 'kubernetes',
  ETUDE_SANDBOX_NAMESPACE: cluster.namespace,
  ETUDE_SANDBOX_KUBECONFIG_PATH: cluster.kubeconfig,
  ETUDE_SANDBOX_TEMPLATES_PATH: cluster.templates,
  ETUDE_SANDBOX_TOKEN_SECRET: tokenSecret(home),
  ETUDE_SANDBOX_INSTALLATION: installationOf(home),
});

export interface Setup {
  readonly options: StackOptions;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly ports: Ports;
  /** Password of this stack's Redis, because other users of the machine can reach its port. */
  readonly redisPassword: string;
  /** Token with which this stack's gateway, rollout worker and sandbox controller recognise each other. */
  readonly sandboxToken: string;
  /** null if code runs in processes of this machine. */
  readonly cluster: ClusterReady | null;
  /** Socket of this stack's embedding process. null if the environment names another embedder or a running process. */
  readonly embedderSocket: string | null;
}

/** Path of the embedder's socket, at most 107 bytes. For a home with a long path, the socket is in a private temporary folder. */
export function socketPath(home: string): string {
  const path = join(home, 'embedder.sock');
  return Buffer.byteLength(path) <= 107 ? path : join(mkdtempSync(join(tmpdir(), 'etude-')), 'embedder.sock');
}

/** Checks that a port is free and returns it. @param port 0 for any free port. @throws Error if the port is taken */
async function bind(port: number): Promise<number> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  const bound = (server.address() as AddressInfo).port;
  server.close();
  await once(server, 'close');
  return bound;
}

/** The first of these ports of loopback that is free, else any free port. The port is not reserved, so `onFreePorts` retries. */
async function choosePort([first, ...others]: readonly number[]): Promise<number> {
  return first === undefined ? bind(0) : bind(first).catch(() => choosePort(others));
}

/** Chooses the stack's ports: the preferred ones, else those of its last start, else free ones. So the stack's addresses rarely change. */
export async function choosePorts(preferred: Partial<Ports>, home: string): Promise<Ports> {
  const path = portsPath(home);
  const last = lastPorts(path);
  const chosen: Array<readonly [string, number]> = [];
  for (const name of PORTS) chosen.push([name, await choosePort([preferred[name], last[name]].filter((port) => port !== undefined))]);
  const ports = Object.fromEntries(chosen) as Ports;
  writeFileSync(path, JSON.stringify(ports));
  return ports;
}

const LastPorts = z.partialRecord(z.enum(PORTS), z.int().min(1).max(65_535));

/** The ports of the last start. Empty if the file is missing or damaged; the next start replaces the file. */
function lastPorts(path: string): Partial<Ports> {
  try {
    return LastPorts.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return {};
  }
}

export const newPassword = () => randomBytes(24).toString('base64url');

/** Makes the kernel end a child when its parent dies for any reason. Without setpriv, only `stop` ends children. */
const TIED =
  spawnSync('setpriv', ['--pdeathsig', 'TERM', 'true'], { stdio: 'ignore' }).status === 0 ? ['setpriv', '--pdeathsig', 'TERM'] : [];

interface Start extends Partial<Omit<Program, 'name' | 'command' | 'ready'>>, Pick<Program, 'command' | 'ready'> {
  /** Whether the program asks the model and gets the model's keys. No program gets the caller's API key. */
  readonly asksModel?: boolean;
}

function programOf({ options, environment }: Pick<Setup, 'options' | 'environment'>, name: string, start: Start): Program {
  const { asksModel = false, command: first, args: rest = [], env, ...more } = start;
  const isKept = (variable: string) => variable !== 'ETUDE_API_KEY' && (asksModel || !variable.startsWith('OPENAI_'));
  const inherited = Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined && isKept(entry[0]));
  const [command = '', ...args] = [...TIED, first, ...rest];
  const usual = { cwd: options.root, logPath: logPath(options.home, name) };
  return { name, command, args, env: { ...Object.fromEntries(inherited), ...env }, ...usual, ...more };
}

function redisProgram(setup: Setup): Program {
  const cwd = join(setup.options.home, 'redis');
  mkdirSync(cwd, { recursive: true, mode: 0o700 });
  const config = join(cwd, 'redis.conf');
  const lines = [
    `port ${setup.ports.redis}`,
    'bind 127.0.0.1',
    `dir ${JSON.stringify(cwd)}`,
    'appendonly yes',
    'appendfsync always',
    'save ""',
    'maxmemory-policy noeviction',
    // Only a backup connects as a replica, so Redis need not wait for more replicas.
    'repl-diskless-sync-delay 0',
    `requirepass ${setup.redisPassword}`,
  ];
  writeFileSync(config, `${lines.join('\n')}\n`, { mode: 0o600 });
  return programOf(setup, 'redis', { command: 'redis-server', args: [config], cwd, ready: 'Ready to accept connections' });
}

/** Script that runs inside of `test/cluster run`. It prepares the cluster for sandboxes and prints a line once it is ready. */
const INSIDE = fileURLToPath(new URL('./cluster-main.js', import.meta.url));

/** Uses the cluster of KUBECONFIG, else a new one from test/cluster, which ends with the stack. */
export function clusterProgram(setup: Pick<Setup, 'options' | 'environment'>): Program {
  const { home, root } = setup.options;
  const inside = JSON.stringify({ root, templates: templatesPath(home) });
  return programOf(setup, 'cluster', {
    command: process.execPath,
    args: [join(root, 'test/cluster/dist/main.js'), 'run', process.execPath, INSIDE, inside],
    ready: '"ready":true',
    // The first start compiles Kubernetes and builds an image. The stop ends the processes one by one.
    readyTimeoutMs: 1_800_000,
    stopTimeoutMs: 25_000,
    once: true,
    progress: /^cluster: (.*)/,
  });
}

function nodeProgram(setup: Setup, name: string, script: string, start: Partial<Start>, flags = SERVICE_NODE_ARGS): Program {
  const args = [...flags, join(setup.options.root, script), ...(start.args ?? [])];
  return programOf(setup, name, { ...start, command: process.execPath, args, ready: '"ready":true' });
}

/** The process that holds the sentence model for all services. Two threads compute one text nearly twice as fast. */
function embedderProgram(setup: Setup, socket: string): Program {
  const { ETUDE_EMBEDDER_PATH: folder, ETUDE_EMBEDDER_THREADS: threads, ETUDE_EMBEDDING_CACHE_MAX_BYTES: bytes } = setup.environment;
  const args = ['--socket', socket, '--threads', threads || String(Math.min(2, availableParallelism()))];
  if (folder) args.push('--folder', folder);
  if (bytes) args.push('--cache-bytes', bytes);
  return nodeProgram(setup, 'embedder', 'libs/model/dist/served/embedder-main.js', { args });
}

/** Programs that the services depend on, apart from the cluster. */
export function basePrograms(setup: Setup): Program[] {
  const { options, ports, embedderSocket } = setup;
  const scripted = options.scripted ? ['--script', options.scripted, '--port', String(ports.model)] : null;
  return [
    redisProgram(setup),
    ...(embedderSocket === null ? [] : [embedderProgram(setup, embedderSocket)]),
    ...(scripted ? [nodeProgram(setup, 'model', 'libs/model/dist/scripted-main.js', { args: scripted })] : []),
  ];
}

/** The four services with settings for a laptop. The environment overrides all settings except those that connect the parts. */
export async function servicePrograms(setup: Setup): Promise<Program[]> {
  const { options, ports, environment, redisPassword, sandboxToken, cluster, embedderSocket } = setup;
  ensureProofKeys(options.home);
  const usual = (settings: Record<string, string>) =>
    Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, environment[name] ?? value]));
  const base = { ETUDE_REDIS_URL: `redis://:${redisPassword}@127.0.0.1:${ports.redis}`, ETUDE_QUEUE_PREFIX: 'etude' };
  const learning = {
    ETUDE_SKILLS_PUBLIC_KEYS_PATH: proofPublicKeysPath(options.home),
    ETUDE_MEMORY_ADAPTER: options.memory,
    ETUDE_MEMORY_PATH: memoryPath(options.home),
    ...(embedderSocket === null ? {} : { ETUDE_EMBEDDER_SOCKET: embedderSocket }),
    ...usual({ ETUDE_SKILLS_ENABLED: 'true', ETUDE_SKILLS_AUTO_REGISTER: 'true', ETUDE_SKILLS_APPROVAL: 'automatic' }),
    ...(options.scripted
      ? { OPENAI_BASE_URL: `http://127.0.0.1:${ports.model}/v1`, OPENAI_API_KEY: 'scripted', OPENAI_MODEL: 'scripted' }
      : {}),
  };
  // Only the consolidation worker gets the key that signs evidence about skills.
  const signing = { ETUDE_SKILLS_SIGNING_KEY_PATH: proofSigningKeyPath(options.home) };
  const nightly = usual({
    ETUDE_CONSOLIDATION_SCHEDULE: '0 3 * * *',
    ETUDE_SCHEDULES_TIME_ZONE: Intl.DateTimeFormat().resolvedOptions().timeZone,
  });
  // With scripted answers, measuring the effect of memory makes no sense.
  const measuring = options.scripted ? usual({ ETUDE_RECALL_WITHHOLD_PROBABILITY: '0' }) : {};
  const inside = { ETUDE_SANDBOX_INTERNAL_TOKEN: sandboxToken };
  const doors = {
    ETUDE_GRPC_HOST: '127.0.0.1',
    ETUDE_GRPC_PORT: String(ports.grpc),
    ETUDE_REST_HOST: '127.0.0.1',
    ETUDE_REST_PORT: String(ports.rest),
    ETUDE_MCP_HOST: '127.0.0.1',
    ETUDE_MCP_PORT: String(ports.mcp),
    ETUDE_AUTH_KEYS_PATH: keysPath(options.home),
  };
  const service = async (app: string, env: Record<string, string>, asksModel = true) => {
    const health = { ETUDE_HTTP_PORT: String(await bind(0)), ETUDE_HTTP_HOST: '127.0.0.1' };
    const start = { env: { ...base, ...health, ...env }, asksModel };
    return nodeProgram(setup, app, `apps/${app}/dist/main.js`, start, app === 'gateway' ? GATEWAY_NODE_ARGS : SERVICE_NODE_ARGS);
  };
  const driver = cluster ? kubernetesSettings(options.home, cluster) : { ETUDE_SANDBOX_DRIVER: 'local' };
  return Promise.all([
    service('consolidation-worker', { ...learning, ...signing, ...nightly }),
    service('sandbox-controller', { ...inside, ...driver }, false),
    service('rollout-worker', { ...learning, ...inside, ...measuring }),
    service('gateway', { ...learning, ...doors, ...inside }),
  ]);
}
