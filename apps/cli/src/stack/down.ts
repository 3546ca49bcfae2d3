import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Settling, SettlingSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { type Cli, commandLine, withGateway } from '../cli.js';
import { findStack, type StackState } from '../home/stack-state.js';
import { CliError, EXIT } from '../errors.js';
import { table } from '../output.js';
import { keyPath, memoryPath } from '../home/home.js';
import { jsonOf, SCRIPTED } from '../show.js';

const STOP_TIMEOUT_MS = 30_000;
const STATS_TIMEOUT_MS = 3_000;

/**
 * Whether a process runs. A process that has ended (a zombie) stays in the process table until its parent, or process 1, reads its
 * exit status. Some parents never do.
 */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false; // it is gone
  }
}

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

/** The console's address with the local key. The page removes the key from the address at once. */
export const signedAddress = (state: StackState, home: string) =>
  `${consoleAddress(state)}#key=${readFileSync(keyPath(home), 'utf8').trim()}`;

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

/** Statistics about comparing facts; null if the gateway doesn't answer. */
async function settlingOf(cli: Cli): Promise<Settling | null> {
  return withGateway(cli, ({ memory }) => memory.getMemoryStats({}, { timeoutMs: STATS_TIMEOUT_MS })).then(
    ({ settling = null }) => settling,
    () => null,
  );
}

function settlingText({ unsettled, modelCalls, modelCallsToday, promptTokens, failure }: Settling): string {
  const waiting = unsettled === 1n ? '1 fact waits' : `${unsettled} facts wait`;
  const spent = `${modelCalls} model calls, ${modelCallsToday} of them today, and about ${promptTokens} prompt tokens so far`;
  return `memory: ${waiting} to be compared; ${spent}${failure === '' ? '' : `\nthe last comparison failed: ${failure}`}`;
}

/** `etude status`: returns 0 while the stack accepts tasks, else 4. */
export async function status(cli: Cli): Promise<number> {
  const state = await findStack(cli.home);
  if (!state) {
    cli.out.data({ running: false }, `nothing runs in ${cli.home}; ${commandLine(cli, 'up')} starts it`);
    return EXIT.unavailable;
  }
  const settling = state.ready ? await settlingOf(cli) : null;
  const data = { running: true, ...state, ...(settling && { settling: jsonOf(SettlingSchema, settling) }) };
  cli.out.data(data, `${stateText(state, cli.home)}${settling === null ? '' : `\n\n${settlingText(settling)}`}`);
  return state.ready ? EXIT.ok : EXIT.unavailable;
}
