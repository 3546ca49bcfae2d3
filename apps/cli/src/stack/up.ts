import { dirname, resolve } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type Cli, commandLine } from '../cli.js';
import { embedderSettings, LEXICAL_COST, recordEmbedder } from '../embedder/embedder.js';
import { CliError, EXIT } from '../errors.js';
import { statOf } from '../files.js';
import { ensureLocalKey, logPath } from '../home/home.js';
import {
  findStack,
  type MemoryAdapter,
  Report,
  type SandboxDriver,
  SERVICE_ENVIRONMENT,
  SERVICE_NODE_ARGS,
  type StackOptions,
} from '../home/stack-state.js';
import { inspectNeeds, missingToRun } from '../machine/doctor.js';
import { signedAddress, stateText } from './down.js';

const STOP_TIMEOUT_MS = 30_000;
const SUPERVISOR = fileURLToPath(new URL('./stack-main.js', import.meta.url));

interface RunningStack {
  /** Resolves when the supervisor has ended, by itself or by `stop`. */
  readonly ended: Promise<void>;
  /** Every process of the stack is gone when this resolves. */
  stop(): Promise<void>;
}

interface StartDeps {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called with notes about the stack. In the foreground, also after the start. */
  readonly onNote: (note: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Starts a supervisor with a whole stack. Resolves once the stack accepts tasks.
 *
 * The supervisor has a process group of its own, so that Ctrl-C reaches this process only. In the foreground, the supervisor ends
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
  const ready = new Promise<void>((accept, reject) => {
    signal.addEventListener('abort', () => reject(new DOMException('interrupted during the start', 'AbortError')), { once: true });
    child.once('exit', (code, by) =>
      reject(new CliError(EXIT.unavailable, `the stack ended during its start (${code ?? by})`, [`see ${log}`])),
    );
    createInterface({ input: reports }).on('line', (line) => {
      const { note, ready: isReady, failed } = Report.parse(JSON.parse(line));
      if (note) onNote(note);
      if (failed) reject(new CliError(EXIT.unavailable, `the stack could not be started: ${failed}`));
      if (isReady) accept();
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

export interface UpOptions {
  readonly detach?: boolean;
  readonly scripted?: string;
  readonly sandbox: SandboxDriver;
  readonly memory: MemoryAdapter;
}

function requireModel({ OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL }: Cli['settings']): void {
  if (OPENAI_BASE_URL || (OPENAI_API_KEY && OPENAI_MODEL)) return;
  throw new CliError(EXIT.usage, 'no model is set', [
    'set any OpenAI-compatible server:',
    '  export OPENAI_BASE_URL=http://localhost:11434/v1   # default: api.openai.com',
    '  export OPENAI_API_KEY=...                          # the key of the server',
    '  export OPENAI_MODEL=...                            # optional if the server has one model',
    'or answer from a script: ./etude up --scripted examples/demo/model.yaml',
  ]);
}

export function requireMachine(cli: Cli): void {
  const missing = missingToRun(inspectNeeds(cli));
  if (missing.length === 0) return;
  throw new CliError(EXIT.unavailable, 'this machine lacks what a stack needs', [
    ...missing.map(({ name, state, fix }) => `${name}: ${state}. ${fix}`),
    './etude doctor shows all checks',
  ]);
}

function requireAll(cli: Cli, { scripted, memory }: UpOptions): void {
  if (scripted === undefined) requireModel(cli.settings);
  else statOf(scripted);
  requireMachine(cli);
  if (memory === 'qdrant' && !cli.settings.environment['ETUDE_QDRANT_URL'])
    throw new CliError(EXIT.usage, 'the address of Qdrant is not set', [
      'export ETUDE_QDRANT_URL=http://localhost:6333   # see docs/memory.md',
    ]);
}

export async function up(cli: Cli, options: UpOptions): Promise<number> {
  const { settings, home, root, signal, out } = cli;
  const { detach = false, scripted, ...flags } = options;
  const running = await findStack(home);
  if (running) {
    out.data(running, stateText(running, home));
    out.note(`already running; to change flags or settings, stop it first: ${commandLine(cli, 'down')}`);
    return EXIT.ok;
  }
  requireAll(cli, options);
  const embedder = embedderSettings(cli);
  if (embedder.ETUDE_EMBEDDER === 'lexical')
    out.note(`embedder: lexical: ${LEXICAL_COST}; docs/embeddings.md describes how to change the embedder`);
  ensureLocalKey(home);
  const { ETUDE_GRPC_PORT: grpc, ETUDE_REST_PORT: rest, ETUDE_MCP_PORT: mcp, ETUDE_REDIS_PORT: redis } = settings;
  const script = scripted === undefined ? null : resolve(scripted);
  const stack = await startStack(
    { home, root, ports: { grpc, rest, mcp, redis }, ...flags, scripted: script, foreground: !detach },
    { environment: { ...settings.environment, ...embedder }, onNote: (note) => out.note(note), signal },
  );
  recordEmbedder(home, embedder);
  const state = await findStack(home);
  if (!state) throw new CliError(EXIT.unavailable, 'the stack ended right after it was ready', [`see ${home}/logs`]);
  out.data(state, stateText(state, home));
  out.note(`console, signed in: ${signedAddress(state, home)}`);
  if (detach) {
    out.note(`running in the background; ${commandLine(cli, 'down')} stops it`);
    return EXIT.ok;
  }
  out.note('Ctrl-C stops it');
  await Promise.race([stack.ended, once(signal, 'abort')]);
  if (!signal.aborted) throw new CliError(EXIT.unavailable, 'the stack ended by itself', [`see ${home}/logs/supervisor.log`]);
  out.note('stopping');
  await stack.stop();
  return EXIT.ok;
}
