import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cli, commandLine } from '../cli.js';
import { findStack, type StackState } from '../home/stack-state.js';
import { CliError, EXIT } from '../errors.js';
import { table } from '../output.js';
import { keyPath, memoryPath } from '../home/home.js';
import { SCRIPTED } from '../show.js';

const STOP_TIMEOUT_MS = 30_000;

/**
 * Whether a process runs. One that ended can stay in the process table until its parent, or the first process of the machine or
 * container, asks how it ended. Some never ask.
 */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false; // it is gone
  }
}

/** `etude down`: stops the stack of this home. Without a running stack it succeeds too. */
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
      // The group of the supervisor holds all processes that it started.
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

const consoleAddress = ({ rest }: Pick<StackState, 'rest'>) => `${rest}/console/`;

/** The console's address with the local key. The page takes the key out of the address at once. */
export const signedAddress = (state: StackState, home: string) =>
  `${consoleAddress(state)}#key=${readFileSync(keyPath(home), 'utf8').trim()}`;

/** The stack for people: its addresses, and a table of its processes. */
export function stateText(state: StackState, home: string): string {
  const { address, rest, mcp, scripted, model, modelUrl, memory, embedder, sandbox, startedAt } = state;
  const head = table([
    ['console', consoleAddress(state)],
    ['gateway', address],
    ['REST', rest],
    ['MCP', mcp],
    ['model', scripted ? `script ${scripted} ${SCRIPTED}` : `${model} at ${modelUrl}`],
    ['memory', memory === 'sqlite' ? memoryPath(home) : `Qdrant at ${memory}`],
    ['embedder', embedder],
    ['sandboxes', sandbox],
    ['home', home],
    ['since', new Date(startedAt).toISOString()],
  ]);
  const rows = state.processes.map(({ name, pid, ready, restarts }) => [name, ready ? 'ready' : 'not ready', `${pid}`, `${restarts}`]);
  return `${head}\n\n${table([['PROCESS', 'STATE', 'PID', 'RESTARTS'], ...rows])}`;
}

/** `etude status`: returns 0 while the stack accepts tasks, else 4. */
export async function status(cli: Cli): Promise<number> {
  const state = await findStack(cli.home);
  if (!state) {
    cli.out.data({ running: false }, `nothing runs in ${cli.home}; ${commandLine(cli, 'up')} starts it`);
    return EXIT.unavailable;
  }
  cli.out.data({ running: true, ...state }, stateText(state, cli.home));
  return state.ready ? EXIT.ok : EXIT.unavailable;
}
