import { mkdirSync } from 'node:fs';
import { holdStack, type Report, type StackOptions, type StackState } from '../home/stack-state.js';
import { ManagedProcess, type Program } from './managed-process.js';
import {
  basePrograms,
  choosePorts,
  ClusterReady,
  clusterProgram,
  newPassword,
  servicePrograms,
  type Setup,
  socketPath,
} from './programs.js';

/** Most attempts to start. Two stacks that start at once rarely take each other's ports this often. */
const TRIES_MAX = 5;
/** How services, the scripted model and Redis report a port that is taken. */
const TAKEN = /port \d+ on \S+ is taken|address already in use|EADDRINUSE/i;

/**
 * Runs `start`, which chooses ports and starts programs that listen on them. Another process may take a port in between.
 * Then all programs are started again on other ports.
 *
 * @param clear stops the started programs before the next try
 * @throws the error of `start` if it isn't about a port, or after the last try
 */
export async function onFreePorts(start: () => Promise<void>, clear: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await start();
    } catch (error) {
      if (tries === TRIES_MAX || !(error instanceof Error && TAKEN.test(error.message))) throw error;
      await clear();
    }
  }
}

/** The model server's URL without user, password and query, which may hold a key. null if the setting is not a URL. */
export function modelUrl({ OPENAI_BASE_URL }: { readonly OPENAI_BASE_URL?: string | undefined }): string | null {
  const url = URL.parse(OPENAI_BASE_URL || 'https://api.openai.com/v1');
  return url && `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

interface SupervisorDeps {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly report: (report: Report) => void;
  readonly signal: AbortSignal;
}

/** Programs that the services depend on. They stop after the services. */
const BASE: ReadonlySet<string> = new Set(['redis', 'embedder', 'model', 'cluster']);

/** Every process of one stack, in the order in which they start. */
class Stack {
  #processes: ManagedProcess[] = [];
  #ready = false;
  #setup: Setup | null = null;
  readonly #startedAt = Date.now();

  constructor(
    private readonly options: StackOptions,
    private readonly deps: SupervisorDeps,
  ) {}

  state(): StackState {
    const { scripted } = this.options;
    const { environment } = this.deps;
    const { ports, cluster = null, embedderSocket = null } = this.#setup ?? {};
    return {
      pid: process.pid,
      address: `127.0.0.1:${ports?.grpc ?? 0}`,
      rest: `http://127.0.0.1:${ports?.rest ?? 0}`,
      mcp: `http://127.0.0.1:${ports?.mcp ?? 0}/mcp`,
      scripted,
      model: scripted ? 'scripted' : environment['OPENAI_MODEL'] || 'the first model',
      modelUrl: scripted ? null : modelUrl(environment),
      sandbox: cluster ? `kubectl --kubeconfig ${cluster.kubeconfig} -n ${cluster.namespace} get pods` : 'local',
      memory: this.options.memory === 'qdrant' ? (environment['ETUDE_QDRANT_URL'] ?? '') : 'sqlite',
      embedder: environment['ETUDE_EMBEDDING_MODEL'] || (environment['ETUDE_EMBEDDER'] ?? ''),
      embedderSocket,
      ready: this.#ready && this.#processes.every((process) => process.ready),
      startedAt: this.#startedAt,
      processes: this.#processes.map(({ name, pid, restarts, ready }) => ({ name, pid, restarts, ready })),
    };
  }

  async start(): Promise<void> {
    const { options, deps } = this;
    if (options.sandbox === 'kubernetes') await this.#startAll([clusterProgram({ options, environment: deps.environment })]);
    const clusterLine = this.#processes[0]?.readyLine;
    const cluster = clusterLine === undefined ? null : ClusterReady.parse(JSON.parse(clusterLine));
    const { ETUDE_EMBEDDER: embedder, ETUDE_EMBEDDING_MODEL: server, ETUDE_EMBEDDER_SOCKET: given } = deps.environment;
    const embedderSocket = embedder === 'sentence' && !server && !given ? socketPath(options.home) : null;
    const start = async () => {
      const ports = await choosePorts(options.ports, options.home);
      const secrets = { redisPassword: newPassword(), sandboxToken: newPassword() };
      this.#setup = { options, environment: deps.environment, ports, cluster, embedderSocket, ...secrets };
      await this.#startAll(basePrograms(this.#setup));
      await this.#startAll(await servicePrograms(this.#setup));
    };
    await onFreePorts(start, () => this.#clear());
    this.#ready = true;
    deps.report({ ready: true });
  }

  /** Starts all programs at once. @throws the first failure, after all programs were stopped; an AbortError once the stack has to stop */
  async #startAll(programs: readonly Program[]): Promise<void> {
    this.deps.signal.throwIfAborted();
    const added = programs.map((program) => new ManagedProcess(program, (note) => this.deps.report({ note })));
    this.#processes.push(...added);
    const starts = added.map((process) => process.start());
    try {
      await Promise.all(starts);
    } catch (error) {
      // Another program may take minutes to be ready, or never become ready.
      await this.stop(added);
      await Promise.allSettled(starts);
      throw error;
    }
  }

  async stop(processes: readonly ManagedProcess[] = this.#processes): Promise<void> {
    this.#ready = false;
    for (const isBase of [false, true])
      await Promise.all(processes.filter(({ name }) => BASE.has(name) === isBase).map((process) => process.stop()));
  }

  /** Ends all processes except the cluster, which starts slowly and uses none of the chosen ports. */
  async #clear(): Promise<void> {
    this.deps.report({ note: 'another process took a chosen port; restarting on other ports' });
    await this.stop(this.#processes.filter(({ name }) => name !== 'cluster'));
    this.#processes = this.#processes.filter(({ name }) => name === 'cluster');
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })));

/**
 * Owns one stack from its start to the end of its last process. Returns false if it could not be started.
 * A failed start and every kind of end leave no process behind.
 */
export async function supervise(options: StackOptions, deps: SupervisorDeps): Promise<boolean> {
  mkdirSync(options.home, { recursive: true });
  const stack = new Stack(options, deps);
  const lock = await holdStack(options.home, () => stack.state());
  if (!lock) {
    deps.report({ failed: `another stack was started in ${options.home} at the same moment` });
    return false;
  }
  const starting = stack.start();
  try {
    await Promise.race([starting, aborted(deps.signal)]);
    await aborted(deps.signal);
    return true;
  } catch (error) {
    deps.report({ failed: error instanceof Error ? error.message : String(error) });
    return false;
  } finally {
    await stack.stop();
    await starting.catch(() => undefined); // reported above, or cut short by the stop
    await stack.stop();
    lock.close();
  }
}
