import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { CliError, EXIT } from '../errors.js';
import { logPath } from '../home/home.js';
import { Report, type StackOptions } from '../home/stack-state.js';
import { SERVICE_ENVIRONMENT, SERVICE_NODE_ARGS } from '../machine/service-node.js';

/** Time for the supervisor to stop its processes. Afterwards the whole process group is killed. */
const STOP_TIMEOUT_MS = 30_000;
const SUPERVISOR = fileURLToPath(new URL('./stack-main.js', import.meta.url));

export interface RunningStack {
  /** Resolves when the supervisor has ended, by itself or by `stop`. */
  readonly ended: Promise<void>;
  /** Every process of the stack is gone when this resolves. */
  stop(): Promise<void>;
}

export interface StartDeps {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called with notes about the stack. In the foreground, also after the start. */
  readonly onNote: (note: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Starts a supervisor with a whole stack. Resolves once the stack accepts tasks.
 *
 * The supervisor has a process group of its own, so that Ctrl-C reaches this process only. In the foreground it ends
 * when this process does, even by SIGKILL, because its stdin ends.
 * @throws CliError with the end of the failed program's log; an AbortError on `signal`. In both cases no process is left
 */
export async function startStack(options: StackOptions, { environment, onNote, signal }: StartDeps): Promise<RunningStack> {
  const log = logPath(options.home, 'supervisor');
  mkdirSync(dirname(log), { recursive: true });
  const logFd = openSync(log, 'a');
  const child = spawn(process.execPath, [...SERVICE_NODE_ARGS, SUPERVISOR, JSON.stringify(options)], {
    cwd: options.root,
    env: { ...environment, ...SERVICE_ENVIRONMENT },
    detached: true,
    stdio: [options.foreground ? 'pipe' : 'ignore', logFd, logFd, 'pipe'],
  });
  const reports = child.stdio[3] as Readable;
  const ended = once(child, 'exit').then(() => undefined);
  const kill = () => child.exitCode === null && child.signalCode === null && child.pid && process.kill(-child.pid, 'SIGKILL');
  const stop = async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(kill, STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(timer);
  };
  const ready = new Promise<void>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new DOMException('interrupted while it started', 'AbortError')), { once: true });
    child.once('exit', (code, by) =>
      reject(new CliError(EXIT.unavailable, `the stack ended with ${code ?? by} while it started`, [`see ${log}`])),
    );
    createInterface({ input: reports }).on('line', (line) => {
      const { note, ready: isReady, failed } = Report.parse(JSON.parse(line));
      if (note) onNote(note);
      if (failed) reject(new CliError(EXIT.unavailable, `the stack could not be started: ${failed}`));
      if (isReady) resolve();
    });
  });
  try {
    await ready;
  } catch (error) {
    await stop();
    throw error;
  }
  if (!options.foreground) {
    reports.destroy();
    child.unref();
  }
  return { ended, stop };
}
