import { resolve } from 'node:path';
import { type ErasureReceipt, Memory, type Reembedding } from '@etude/contracts/gen/etude/v1/memory_pb';
import { callSettings, poll, sayingHowToGoOn } from '../calls.js';
import { type Cli, commandLine, type Gateway } from '../cli.js';
import { type Entry, type Flags, hand, type Options, plain } from '../command.js';
import { embedderSettings } from '../embedder/embedder.js';
import { CliError, EXIT, type ExitCode } from '../errors.js';
import { runNode } from '../machine/bench.js';
import { integer } from '../options.js';

const UPKEEP_TIMEOUT_MS = 600_000;
export const EXACTLY: Flags = {
  '--agent <name>': "exactly this agent's (default: all)",
  '--user <name>': "exactly this user's (default: all)",
};

const receiptExit = ({ state }: ErasureReceipt): ExitCode => (state === 'failed' ? EXIT.failed : EXIT.ok);

/** @throws CliError unless exactly one owner is named */
function whoseMemory(options: Options) {
  const named = (['agent', 'user', 'tenant'] as const).filter((name) => options[name] !== undefined);
  const [only] = named;
  if (only === undefined || named.length > 1) throw new CliError(EXIT.usage, 'name exactly one: --agent, --user or --tenant');
  return { case: only, value: String(options[only]) };
}

const ERASE = plain(Memory.method.eraseMemory, {
  command: 'erase',
  help: 'remove every trace of an agent, a user or the tenant, for good',
  flags: {
    '--agent <name>': 'of this agent',
    '--user <name>': 'of this user',
    '--tenant <name>': 'all of the tenant, named to confirm it',
    '--yes': 'really',
    '--detach': 'do not wait for its end',
  },
  ask: ({ requestId = '' }, { options }) => {
    const whose = whoseMemory(options);
    if (options['yes'] === true) return { requestId, whose };
    throw new CliError(EXIT.usage, `this erases everything of ${whose.case} ${whose.value} for good: memory, tasks, results, events`, [
      'add --yes to do it',
      'to keep a copy, run memory export before; it can be read, and imported elsewhere, but not under the same name here again',
    ]);
  },
  after: (started, { cli, gateway, options }) =>
    options['detach'] === true
      ? started
      : poll(cli, started, {
          isOver: ({ state }) => state !== 'running',
          ask: () => gateway.memory.getErasure({ id: started.id }, callSettings(cli)),
          status: () => 'erasing …',
        }),
  notes: ({ state, removed }) =>
    state === 'succeeded' && Object.values(removed).every((count) => count === 0n) ? ['nothing was found; is the name right?'] : [],
  exit: receiptExit,
});

export function reembedText({ model, state, done, total, error }: Omit<Reembedding, '$typeName'>): string {
  const head = model === '' ? 'nothing is being embedded again' : `${model}: ${state}, ${done} of ${total} records`;
  if (error === '') return head;
  return `${head}\n${state === 'running' ? 'held up, and tried again' : 'failed'}: ${error}`;
}

/** Polls until the move to another embedder is over or was stopped. Ctrl-C ends only the polling. */
export function embedded(cli: Cli, memory: Pick<Gateway['memory'], 'getReembedding'>, started: Reembedding): Promise<Reembedding> {
  const [look, stop] = ['memory reembedding', 'memory stop-reembedding'].map((words) => commandLine(cli, words));
  return sayingHowToGoOn(
    cli,
    () =>
      poll(cli, started, {
        isOver: ({ state }) => state !== 'running',
        ask: () => memory.getReembedding({}, callSettings(cli)),
        status: reembedText,
      }),
    () => `the move goes on without this command; to see how far it is: ${look}; to stop it: ${stop}`,
  );
}

const reembedExit = ({ state }: Reembedding): ExitCode => (state === 'failed' ? EXIT.failed : EXIT.ok);

const REEMBED: readonly Entry[] = [
  plain(Memory.method.startReembedding, {
    command: 'reembed <model>',
    help: 'for operators: move to sentence, lexical, or a model of the embeddings server; a repeat goes on',
    flags: {
      '--dimension <n>': { help: 'of its vectors, where that is not known', parse: integer(1, 65_536) },
      '--drop <model>': { help: 'then drop the vectors of this one', field: 'dropModel' },
      '--detach': 'do not wait for its end',
    },
    after: (started, { cli, gateway, options }) => (options['detach'] === true ? started : embedded(cli, gateway.memory, started)),
    text: reembedText,
    notes: ({ state }) => (state === 'ready' ? ['what comes next is in docs/embeddings.md'] : []),
    exit: reembedExit,
  }),
  plain(Memory.method.getReembedding, { command: 'reembedding', help: 'how far that is', text: reembedText, exit: reembedExit }),
  plain(Memory.method.stopReembedding, { command: 'stop-reembedding', help: 'stop it', text: reembedText, exit: reembedExit }),
];

export const UPKEEP: readonly Entry[] = [
  plain(Memory.method.archiveMemory, {
    command: 'archive',
    help: 'take what has little worth out of retrieval, and keep it',
    flags: {
      ...EXACTLY,
      '--score-max <x>': 'by importance, age and use (default: 0.2)',
      '--older-than-days <n>': 'default: 30',
      '--layer <layer>': 'repeatable (default: all)',
      '--dry-run': 'say what would be archived',
    },
    leastMs: UPKEEP_TIMEOUT_MS,
    notes: ({ archived }, { cli, options }) =>
      options['dryRun'] === true
        ? [`${archived} would be archived; nothing was changed`]
        : [`${archived} archived; the way back: ${commandLine(cli, 'memory restore')}`],
  }),
  plain(Memory.method.restoreMemory, {
    command: 'restore [ids...]',
    help: 'bring back what was archived (default: all of it)',
    flags: EXACTLY,
    exit: ({ restored }, { args }) => (args.length > 0 && restored === 0n ? EXIT.notFound : EXIT.ok),
  }),
  ERASE,
  plain(Memory.method.getErasure, { command: 'erasure <id>', help: 'the receipt of an erasure', exit: receiptExit }),
  ...REEMBED,
  plain(Memory.method.reconcileMemory, {
    command: 'reconcile',
    help: 'for operators: look for half-written things and mend them',
    leastMs: UPKEEP_TIMEOUT_MS,
    notes: ({ repaired, problems }) => (repaired.length + problems.length === 0 ? ['nothing is wrong'] : []),
    exit: ({ problems }) => (problems.length > 0 ? EXIT.failed : EXIT.ok),
  }),
  hand<{ readonly pairs?: string }>({
    command: 'calibrate',
    help: "fit the embedder's similarity to judged pairs; prints settings",
    flags: { '--pairs <file>': 'JSON Lines of {"a", "b", "same": "words" | "task" | "no"} (default: pairs that come with Etude)' },
    run: (cli, { pairs }) =>
      runNode(cli, ['libs/model/dist/calibrate-main.js', ...(pairs === undefined ? [] : [resolve(pairs)])], { ...embedderSettings(cli) }),
  }),
];
