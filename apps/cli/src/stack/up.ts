import { resolve } from 'node:path';
import { type Cli, commandLine } from '../cli.js';
import { embedderSettings, LEXICAL_COST, recordEmbedder } from '../embedder/embedder.js';
import { CliError, EXIT } from '../errors.js';
import { statOf } from '../files.js';
import { ensureLocalKey } from '../home/home.js';
import { findStack, type MemoryAdapter, type SandboxDriver } from '../home/stack-state.js';
import { inspectNeeds, missingToRun } from '../machine/doctor.js';
import { showState } from './down.js';
import { startStack } from './start-stack.js';

export interface UpOptions {
  readonly detach?: boolean;
  readonly scripted?: string;
  readonly sandbox: SandboxDriver;
  readonly memory: MemoryAdapter;
}

/** @throws CliError with the lines that set a model, if none is set */
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

/** @throws CliError naming what has to be installed, with the line that does it */
export function requireMachine(cli: Cli): void {
  const missing = missingToRun(inspectNeeds(cli));
  if (missing.length === 0) return;
  throw new CliError(EXIT.unavailable, 'this machine lacks what a stack needs', [
    ...missing.map(({ name, state, fix }) => `${name}: ${state}. ${fix}`),
    './etude doctor shows all checks',
  ]);
}

/** Checks everything that can be known before the start. @throws CliError with what is missing */
function requireAll(cli: Cli, { scripted, memory }: UpOptions): void {
  if (scripted === undefined) requireModel(cli.settings);
  else statOf(scripted);
  requireMachine(cli);
  if (memory === 'qdrant' && !cli.settings.environment['ETUDE_QDRANT_URL'])
    throw new CliError(EXIT.usage, 'no Qdrant is named', ['export ETUDE_QDRANT_URL=http://localhost:6333   # see docs/memory.md']);
}

/** `etude up`: starts the stack and waits for Ctrl-C, or returns with `--detach`. A running stack is not changed. */
export async function up(cli: Cli, options: UpOptions): Promise<number> {
  const { settings, home, root, signal, out } = cli;
  const { detach = false, scripted, ...flags } = options;
  const running = await findStack(home);
  if (running) {
    await showState(cli, running);
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
  await showState(cli, state);
  if (detach) {
    out.note(`running in the background; ${commandLine(cli, 'down')} stops it`);
    return EXIT.ok;
  }
  out.note('Ctrl-C stops it');
  const interrupted = new Promise<void>((done) => signal.addEventListener('abort', () => done(), { once: true }));
  await Promise.race([stack.ended, interrupted]);
  if (!signal.aborted) throw new CliError(EXIT.unavailable, 'the stack ended by itself', [`see ${home}/logs/supervisor.log`]);
  out.note('stopping');
  await stack.stop();
  return EXIT.ok;
}
