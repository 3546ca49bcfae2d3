import { mkdirSync } from 'node:fs';
import { ManagedProcess, type Program } from './managed-process.js';
import { modelName, modelUrl } from './model.js';
import { ClusterReady, type QdrantPlace, qdrantPlace } from './places.js';
import {
  chooseEndpoints,
  type Endpoints,
  newPassword,
  qdrantProgram,
  redisProgram,
  sandboxClusterProgram,
  scriptedModelProgram,
  servicePrograms,
} from './programs.js';
import { holdStack, removeStackState, type Report, type StackOptions, type StackState, writeStackState } from '../home/stack-state.js';

/** Two stacks that start at once hardly take ports from each other more often. */
const TRIES_MAX = 5;
/** As services, the scripted model, Redis and Qdrant say it. */
const TAKEN = /port \d+ on \S+ is taken|address already in use|EADDRINUSE/i;

/**
 * Starts what listens on ports that it chooses itself. Between the choice and the listening another process may be faster; then all of it
 * starts again, on other ports.
 *
 * @param clear ends what was started, before the next try
 * @throws whatever `start` throws for another reason, or too often
 */
export async function onFreePorts(start: () => Promise<void>, clear: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await start();
      return;
    } catch (error) {
      if (tries === TRIES_MAX || !(error instanceof Error && TAKEN.test(error.message))) throw error;
      await clear();
    }
  }
}

export interface SupervisorDeps {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly report: (report: Report) => void;
  /** Aborts when the stack is to stop. */
  readonly signal: AbortSignal;
}

const url = (port: number | undefined, path = '') => `http://127.0.0.1:${port ?? 0}${path}`;

/** What the services work with. */
const BASE: ReadonlySet<string> = new Set(['redis', 'model', 'cluster', 'qdrant']);

/** Every process of one stack, in the order in which they start. */
class Stack {
  readonly processes: ManagedProcess[] = [];
  ready = false;
  endpoints: Endpoints | null = null;
  qdrant: QdrantPlace | null = null;
  readonly #startedAt = Date.now();

  constructor(
    private readonly options: StackOptions,
    private readonly deps: SupervisorDeps,
  ) {}

  state(): StackState {
    const { options, endpoints } = this;
    const cluster = this.clusterReady();
    const { environment } = this.deps;
    return {
      pid: process.pid,
      address: `127.0.0.1:${endpoints?.grpcPort ?? options.grpcPort}`,
      mcp: url(endpoints?.mcpPort, '/mcp'),
      rest: url(endpoints?.restPort),
      scripted: options.scripted,
      model: options.scripted ? 'scripted' : modelName(environment),
      modelUrl: options.scripted ? null : modelUrl(environment),
      sandbox: {
        driver: options.sandbox,
        image: cluster?.image ?? null,
        namespace: cluster?.namespace ?? null,
        kubeconfig: cluster?.kubeconfig ?? null,
      },
      memory: this.qdrant?.url ?? 'sqlite',
      embedder: environment['ETUDE_EMBEDDING_MODEL'] || (environment['ETUDE_EMBEDDER'] ?? ''),
      ready: this.ready && this.processes.every((process) => process.ready),
      startedAt: this.#startedAt,
      processes: this.processes.map(({ name, pid, restarts, ready }) => ({ name, pid, restarts, ready })),
    };
  }

  /** All of them at once. @throws the first failure, after all of them have settled; an AbortError once the stack is to stop */
  async start(programs: readonly Program[]): Promise<void> {
    this.deps.signal.throwIfAborted();
    const added = programs.map((program) => new ManagedProcess(program, (note) => this.#changed(note)));
    this.processes.push(...added);
    const outcomes = await Promise.allSettled(added.map((process) => process.start()));
    const failure = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failure) throw failure.reason as Error;
  }

  /** What the cluster said of itself; null where there is none. */
  clusterReady(): ClusterReady | null {
    const line = this.processes.find(({ name }) => name === 'cluster')?.readyLine ?? '';
    return line === '' ? null : ClusterReady.parse(JSON.parse(line));
  }

  /** What takes work stops before what it works with. */
  async stop(processes: readonly ManagedProcess[] = this.processes): Promise<void> {
    this.ready = false;
    const base = processes.filter(({ name }) => BASE.has(name));
    await Promise.all(processes.filter((process) => !base.includes(process)).map((process) => process.stop()));
    await Promise.all(base.map((process) => process.stop()));
  }

  /** Ends all but the cluster, which takes a while to start and listens on none of the ports that are chosen here. */
  async clear(): Promise<void> {
    this.deps.report({ note: 'a port was taken by another process after it was chosen; starting again on others' });
    const ended = this.processes.filter(({ name }) => name !== 'cluster');
    await this.stop(ended);
    this.processes.splice(0, Infinity, ...this.processes.filter((process) => !ended.includes(process)));
  }

  #changed(note: string): void {
    if (!this.deps.signal.aborted) this.#writeState();
    this.deps.report({ note });
  }

  /** A full disk must not end the stack: what died of it is started again until there is room. */
  #writeState(): void {
    try {
      writeStackState(this.options.home, this.state());
    } catch (error) {
      this.deps.report({ note: `the state of the stack could not be written: ${error instanceof Error ? error.message : String(error)}` });
    }
  }
}

async function startPrograms(stack: Stack, options: StackOptions, { environment }: SupervisorDeps): Promise<void> {
  const endpoints = await chooseEndpoints(options);
  const qdrant = options.memory === 'qdrant' ? qdrantPlace(environment, endpoints.qdrantPort) : null;
  stack.endpoints = endpoints;
  stack.qdrant = qdrant;
  const secrets = { redisPassword: newPassword(), sandboxToken: newPassword() };
  const context = { options, endpoints, environment, cluster: stack.clusterReady(), qdrant, ...secrets };
  await stack.start([
    redisProgram(context),
    ...(qdrant?.binary ? [qdrantProgram(context, qdrant.binary)] : []),
    ...(options.scripted ? [scriptedModelProgram(context)] : []),
  ]);
  await stack.start(await servicePrograms(context));
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })));

/**
 * Owns one stack from its start to the end of its last process. Answers false where it could not be started.
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
  const starting = (async () => {
    if (options.sandbox === 'kubernetes') await stack.start([sandboxClusterProgram(options, deps.environment)]);
    await onFreePorts(
      () => startPrograms(stack, options, deps),
      () => stack.clear(),
    );
    stack.ready = true;
    writeStackState(options.home, stack.state());
    deps.report({ ready: true });
  })();
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
    removeStackState(options.home);
    lock.close();
  }
}
