import { setTimeout as sleep } from 'node:timers/promises';
import { type Cli, commandLine } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { plural, table } from '../output.js';
import { memoryPath } from '../home/home.js';
import { findStack, type StackState } from '../home/stack-state.js';

/** Sandboxes of a controller, now. */
export interface PoolFigures {
  /** Waiting for a claim. */
  readonly ready: number;
  /** Of callers, open. */
  readonly sessions: number;
  /** Claims that wait until a sandbox is free. */
  readonly waiting: number;
}

const TIMEOUT_MS = 1_000;
const NAMES = { ready: 'etude_sandbox_warm', sessions: 'etude_sandbox_sessions', waiting: 'etude_sandbox_claims_waiting' } as const;

/** One sample without labels out of Prometheus' text format. */
function sample(text: string, name: string): number | undefined {
  const value = new RegExp(`^${name} ([0-9.e+]+)$`, 'm').exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

/** Figures out of a controller's metrics; those that it does not tell are left out. */
export function figuresOf(metrics: string): Partial<PoolFigures> {
  const found = Object.entries(NAMES).map(([figure, name]) => [figure, sample(metrics, name)] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

/** Empty where the controller does not answer: its process says why. */
export async function poolFigures(httpPort: number): Promise<Partial<PoolFigures>> {
  try {
    const answer = await fetch(`http://127.0.0.1:${httpPort}/metrics`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return figuresOf(await answer.text());
  } catch {
    return {};
  }
}

const STOP_TIMEOUT_MS = 30_000;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // ESRCH: it is gone
  }
}

/** `etude down`: stops the stack of this home, wherever it was started. None running is fine. */
export async function down(cli: Cli): Promise<number> {
  const state = await findStack(cli.home);
  if (!state) {
    cli.out.data({ stopped: false }, `nothing runs in ${cli.home}`);
    return EXIT.ok;
  }
  process.kill(state.pid, 'SIGTERM');
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while (isAlive(state.pid)) {
    if (performance.now() > deadline) {
      // Its group is the supervisor and all that it started.
      process.kill(-state.pid, 'SIGKILL');
      throw new CliError(EXIT.deadline, `the stack did not stop within ${STOP_TIMEOUT_MS / 1_000} s and was killed`, [
        `see ${cli.home}/logs`,
      ]);
    }
    await sleep(50, undefined, { signal: cli.signal });
  }
  cli.out.data({ stopped: true }, 'stopped');
  return EXIT.ok;
}

/** '' where the controller does not say. */
function poolText({ ready, sessions, waiting }: Partial<PoolFigures>): string {
  if (ready === undefined) return '';
  return ` · ${ready} ready, ${plural(sessions ?? 0, 'session')} of callers, ${plural(waiting ?? 0, 'claim')} waiting`;
}

function sandboxText({ sandbox }: StackState, pool: Partial<PoolFigures>): string {
  const where =
    sandbox.driver === 'kubernetes' ? `kubernetes, namespace ${sandbox.namespace ?? ''}, image ${sandbox.image ?? ''}` : 'local';
  return `${where}${poolText(pool)}`;
}

/** How to look at the pods, as a line to repeat. */
function podRows({ driver, kubeconfig, namespace }: StackState['sandbox']): string[][] {
  if (driver !== 'kubernetes' || !kubeconfig) return [];
  return [['pods', `kubectl --kubeconfig ${kubeconfig} -n ${namespace ?? ''} get pods`]];
}

export function stateText(state: StackState, home: string, pool: Partial<PoolFigures>): string {
  const rows = state.processes.map(({ name, pid, ready, restarts }) => [
    name,
    ready ? 'ready' : 'not ready',
    String(pid ?? '-'),
    String(restarts),
  ]);
  const model = state.scripted
    ? `script ${state.scripted} [scripted]`
    : [state.model, ...(state.modelUrl ? [state.modelUrl] : [])].join(' at ');
  const head = table([
    ['gateway', state.address],
    ...(state.rest === null ? [] : [['REST', state.rest]]),
    ...(state.mcp === null ? [] : [['MCP', state.mcp]]),
    ['model', model],
    ['memory', state.memory === 'sqlite' ? memoryPath(home) : `Qdrant at ${state.memory}`],
    ...(state.embedder === '' ? [] : [['embedder', state.embedder]]),
    ['sandboxes', sandboxText(state, pool)],
    ...podRows(state.sandbox),
    ['home', home],
    ['since', new Date(state.startedAt).toISOString()],
  ]);
  return `${head}\n\n${table([['PROCESS', 'STATE', 'PID', 'RESTARTS'], ...rows])}`;
}

/** `etude status`: 0 while the stack takes work, else 4. */
export async function status(cli: Cli): Promise<number> {
  const state = await findStack(cli.home);
  if (!state) {
    cli.out.data({ running: false }, `nothing runs in ${cli.home}; ${commandLine(cli, 'up')} starts it`);
    return EXIT.unavailable;
  }
  const pool = await poolFigures(state.sandbox.httpPort);
  cli.out.data({ running: true, ...state, sandbox: { ...state.sandbox, ...pool } }, stateText(state, cli.home, pool));
  return state.ready ? EXIT.ok : EXIT.unavailable;
}
