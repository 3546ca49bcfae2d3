import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cli, commandLine } from '../cli.js';
import { settleEmbedder } from '../embedder/embedder.js';
import { CliError, EXIT } from '../errors.js';
import { sizeOf } from '../files.js';
import { inspectMachine, missingToRun } from '../machine/doctor.js';
import { ensureLocalKey, memoryPath, memoryTrouble } from '../home/home.js';
import { checkScript, modelName, type ModelSettings, modelUrl, watchModel } from './model.js';
import { requireQdrant } from './places.js';
import { findStack, type MemoryAdapter, type SandboxDriver, type StackOptions, type StackState } from '../home/stack-state.js';
import { startStack } from './start-stack.js';

/** What `up` was told in so many words; what it takes by default is left out. */
export interface AskedFor {
  readonly scripted?: string;
  readonly rolloutWorkers?: number;
  readonly concurrency?: number;
  readonly sandbox?: SandboxDriver;
  readonly memory?: MemoryAdapter;
}

const differs = (value: number | string | undefined, is: number | string) => value !== undefined && value !== is;

/** What of it a stack that runs already does not do, as it was asked for. */
export function unapplied(state: StackState, asked: AskedFor, settings: ModelSettings): string[] {
  const { scripted, sandbox, memory, rolloutWorkers, concurrency } = asked;
  return [
    ...(scripted === undefined ? otherModel(state, settings) : []),
    ...(scripted !== undefined && resolve(scripted) !== state.scripted ? [`--scripted ${scripted}`] : []),
    ...(differs(sandbox, state.sandbox.driver) ? [`--sandbox ${sandbox}`] : []),
    ...(differs(memory, state.memory === 'sqlite' ? 'sqlite' : 'qdrant') ? [`--memory ${memory}`] : []),
    ...(differs(rolloutWorkers, state.rolloutWorkers) ? [`--rollout-workers ${rolloutWorkers}`] : []),
    ...(differs(concurrency, state.concurrency) ? [`--concurrency ${concurrency}`] : []),
  ];
}

/** Of the variables that name a model, those that are set and that it was not started with. */
function otherModel(state: StackState, settings: ModelSettings): string[] {
  const { OPENAI_MODEL, OPENAI_BASE_URL } = settings;
  const isOther = state.scripted !== null || (state.modelUrl !== null && state.modelUrl !== modelUrl(settings));
  return [
    ...(OPENAI_BASE_URL && isOther ? [`OPENAI_BASE_URL ${modelUrl(settings) ?? ''}`] : []),
    ...(OPENAI_MODEL && state.model !== modelName(settings) ? [`OPENAI_MODEL ${OPENAI_MODEL}`] : []),
  ];
}

const START_TIMEOUT_MS = 120_000;

export interface UpOptions {
  readonly detach?: boolean;
  readonly scripted?: string;
  readonly rolloutWorkers: number;
  readonly concurrency: number;
  readonly sandbox: SandboxDriver;
  readonly memory: MemoryAdapter;
  /** Which of them were given, rather than taken by default. */
  readonly asked: AskedFor;
}

/** @throws CliError with the lines that set a model where none is set */
export function requireModel({ OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL }: Cli['settings']): void {
  if (OPENAI_BASE_URL || (OPENAI_API_KEY && OPENAI_MODEL)) return;
  throw new CliError(EXIT.usage, 'no model is set, and without one no task can be solved', [
    'any OpenAI-compatible server will do:',
    '  export OPENAI_BASE_URL=http://localhost:11434/v1   # left out: api.openai.com',
    '  export OPENAI_API_KEY=...                          # whatever the server wants',
    '  export OPENAI_MODEL=...                            # may be left out where the server has only one',
    'or answer from a script: ./etude up --scripted examples/demo/model.yaml',
  ]);
}

/** @throws CliError naming what has to be installed, with the line that does it */
export async function requireMachine(cli: Cli): Promise<void> {
  const missing = missingToRun(await inspectMachine(cli));
  if (missing.length === 0) return;
  throw new CliError(EXIT.unavailable, 'this machine lacks what a stack needs', [
    ...missing.map(({ name, state, fix }) => `${name}: ${state}. ${fix}`),
    './etude doctor says more',
  ]);
}

/** @throws CliError where the file is of a later version */
function requireMemoryFile(home: string): void {
  const trouble = memoryTrouble(memoryPath(home));
  if (trouble !== null) throw new CliError(EXIT.unavailable, trouble, ['docs/upgrading.md says how versions follow each other']);
}

function summary(cli: Cli, state: StackState): string {
  const { home } = cli;
  const model = state.scripted ? `answers from the script ${state.scripted} [scripted]; it is no model` : `asks ${state.model}`;
  const code = state.sandbox.driver === 'kubernetes' ? `code runs in pods of ${state.sandbox.image ?? ''}` : 'code runs in bubblewrap';
  const memory = state.memory === 'sqlite' ? `memory is in ${memoryPath(home)}` : `memory is in Qdrant at ${state.memory}`;
  return [
    `gateway on ${state.address}${state.rest ? `, and ${state.rest} for JSON over HTTP` : ''}; ${model}`,
    ...(state.mcp ? [`MCP at ${state.mcp}, or over stdio by ${commandLine(cli, 'mcp')}`] : []),
    code,
    `${memory}; its embedder is ${state.embedder}`,
    `state, key and logs in ${home}`,
  ].join('\n');
}

/** A stack that another process is starting right now counts once it is ready. */
async function waitUntilReady(home: string, signal: AbortSignal): Promise<StackState | null> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  let state = await findStack(home);
  while (state && !state.ready && performance.now() < deadline) {
    await sleep(100, undefined, { signal });
    state = await findStack(home);
  }
  return state;
}

function stackOptions(cli: Cli, options: Omit<UpOptions, 'asked'> & { foreground: boolean }): StackOptions {
  const { settings, home, root } = cli;
  const scripted = options.scripted === undefined ? null : resolve(options.scripted);
  if (scripted) sizeOf(scripted);
  return {
    home,
    root,
    grpcPort: settings.ETUDE_GRPC_PORT,
    restPort: settings.ETUDE_REST_PORT,
    mcpPort: settings.ETUDE_MCP_PORT,
    redisPort: settings.ETUDE_REDIS_PORT,
    rolloutWorkers: options.rolloutWorkers,
    concurrency: options.concurrency,
    scripted,
    sandbox: options.sandbox,
    memory: options.memory,
    foreground: options.foreground,
  };
}

async function startedState(home: string): Promise<StackState> {
  const state = await findStack(home);
  if (!state) throw new CliError(EXIT.unavailable, 'the stack ended right after it was ready', [`see ${home}/logs`]);
  return state;
}

/** What was asked for and is not so goes on stderr: the stack goes on as it was started. */
function leaveAlone(cli: Cli, running: StackState, asked: AskedFor): number {
  cli.out.data(running, `already running: ${summary(cli, running)}`);
  const left = unapplied(running, asked, cli.settings);
  if (left.length === 0) return EXIT.ok;
  cli.out.note(`not applied, as the stack was started otherwise: ${left.join(', ')}`);
  cli.out.note(`to apply it, stop the stack by ${commandLine(cli, 'down')}, then give this command again`);
  return EXIT.ok;
}

/** `etude up`: starts the stack, and stays with it until Ctrl-C unless it is detached. One that runs already is left alone. */
export async function up(cli: Cli, options: UpOptions): Promise<number> {
  const running = await waitUntilReady(cli.home, cli.signal);
  if (running) return leaveAlone(cli, running, options.asked);
  if (options.scripted === undefined) requireModel(cli.settings);
  else await checkScript(cli.root, options.scripted, cli.signal);
  await requireMachine(cli);
  if (options.memory === 'qdrant') await requireQdrant(cli.settings.environment);
  else requireMemoryFile(cli.home);
  const embedder = settleEmbedder(cli);
  ensureLocalKey(cli.home);
  const tellOfModel = options.scripted === undefined ? watchModel(cli) : null;
  const stack = await startStack(stackOptions(cli, { ...options, foreground: options.detach !== true }), {
    environment: embedder.environment,
    onNote: (note) => cli.out.note(note),
    signal: cli.signal,
  });
  embedder.worked();
  const state = await startedState(cli.home);
  cli.out.data(state, summary(cli, state));
  await tellOfModel?.();
  if (options.detach) {
    cli.out.note(`running in the background; ${commandLine(cli, 'down')} stops it`);
    return EXIT.ok;
  }
  cli.out.note('Ctrl-C stops it');
  const interrupted = new Promise<void>((done) => cli.signal.addEventListener('abort', () => done(), { once: true }));
  await Promise.race([stack.ended, interrupted]);
  if (!cli.signal.aborted) throw new CliError(EXIT.unavailable, 'the stack ended by itself', [`see ${cli.home}/logs/supervisor.log`]);
  cli.out.note('stopping');
  await stack.stop();
  return EXIT.ok;
}
