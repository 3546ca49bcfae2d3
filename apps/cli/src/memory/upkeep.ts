import { resolve } from 'node:path';
import {
  type Effect,
  type ErasureReceipt,
  type ItemLift,
  type Lift,
  Memory,
  type Reembedding,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import type { Command } from 'commander';
import { callSettings, poll, sayingHowToGoOn } from '../calls.js';
import { type Cli, commandLine, type Gateway, type Start } from '../cli.js';
import { type Entry, type Flags, type Given, hand, type Options, plain } from '../command.js';
import { embedderSettings } from '../embedder/embedder.js';
import { CliError, EXIT, type ExitCode } from '../errors.js';
import { runNode } from '../machine/tests.js';
import { integer } from '../options.js';
import { table } from '../output.js';

const UPKEEP_TIMEOUT_MS = 600_000;
export const EXACTLY: Flags = {
  '--agent <name>': "exactly this agent's records",
  '--user <name>': "exactly this user's records",
};

export const exitOf = ({ state }: ErasureReceipt | Reembedding): ExitCode => (state === 'failed' ? EXIT.failed : EXIT.ok);

function whoseMemory(options: Options) {
  const named = (['agent', 'user', 'tenant'] as const).filter((name) => options[name] !== undefined);
  const [only] = named;
  if (only === undefined || named.length > 1) throw new CliError(EXIT.usage, 'name exactly one: --agent, --user or --tenant');
  return { case: only, value: String(options[only]) };
}

export function untilErased(started: ErasureReceipt, { cli, gateway, options }: Given): ErasureReceipt | Promise<ErasureReceipt> {
  if (options['detach'] === true) return started;
  return poll(cli, started, {
    isOver: ({ state }) => state !== 'running',
    ask: () => gateway.memory.getErasure({ id: started.id }, callSettings(cli)),
    status: () => 'erasing …',
  });
}

const ERASE = plain(Memory.method.eraseMemory, {
  command: 'erase',
  help: 'permanently erase all data of an agent, a user or the tenant',
  flags: {
    '--agent <name>': 'erase this agent',
    '--user <name>': 'erase this user',
    '--tenant <name>': 'erase the whole tenant; its name confirms the erasure',
    '--yes': 'confirm the erasure',
    '--detach': 'do not wait for the end',
  },
  ask: ({ requestId = '' }, { options }) => {
    const whose = whoseMemory(options);
    if (options['yes'] === true) return { requestId, whose };
    throw new CliError(EXIT.usage, `this permanently erases all data of ${whose.case} ${whose.value}: memory, tasks, results, events`, [
      'add --yes to confirm',
      'to keep a copy, run memory export first; the copy can be imported elsewhere, but not here under the same name',
    ]);
  },
  after: untilErased,
  notes: ({ state, removed }) =>
    state === 'succeeded' && Object.values(removed).every((count) => count === 0n) ? ['nothing was found; check the name'] : [],
  exit: exitOf,
});

function reembedText({ model, state, done, total, error }: Omit<Reembedding, '$typeName'>): string {
  const head = model === '' ? 'no re-embedding is running' : `${model}: ${state}, ${done} of ${total} records`;
  if (error === '') return head;
  return `${head}\n${state === 'running' ? 'delayed, will be retried' : 'failed'}: ${error}`;
}

/** Polls until the re-embedding has ended or was stopped. Ctrl-C ends only the polling. */
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
    () => `the re-embedding continues without this command; to see its progress: ${look}; to stop it: ${stop}`,
  );
}

const REEMBED: readonly Entry[] = [
  plain(Memory.method.startReembedding, {
    command: 'reembed <model>',
    help: 'for operators: embed all records with another model (sentence, lexical, or one of the embeddings server); a repeat continues',
    flags: {
      '--dimension <n>': { help: 'dimension of the vectors, if the model is unknown', parse: integer(1, 65_536) },
      '--drop <model>': { help: 'afterwards delete the vectors of this model', field: 'dropModel' },
      '--detach': 'do not wait for the end',
    },
    after: (started, { cli, gateway, options }) => (options['detach'] === true ? started : embedded(cli, gateway.memory, started)),
    text: reembedText,
    notes: ({ state }) => (state === 'ready' ? ['docs/embeddings.md describes the next step'] : []),
    exit: exitOf,
  }),
  plain(Memory.method.getReembedding, {
    command: 'reembedding',
    help: 'show the progress of the re-embedding',
    text: reembedText,
    exit: exitOf,
  }),
  plain(Memory.method.stopReembedding, {
    command: 'stop-reembedding',
    help: 'stop the re-embedding',
    text: reembedText,
    exit: exitOf,
  }),
];

export const UPKEEP: readonly Entry[] = [
  plain(Memory.method.archiveMemory, {
    command: 'archive',
    help: 'hide records of little use from retrieval; they stay stored',
    flags: {
      ...EXACTLY,
      '--score-max <x>': 'archive records whose score from importance, age and use is at most this (default: 0.2)',
      '--older-than-days <n>': 'default: 30',
      '--layer <layer>': 'repeatable (default: all)',
      '--dry-run': 'show what would be archived',
    },
    leastMs: UPKEEP_TIMEOUT_MS,
    notes: ({ archived }, { cli, options }) =>
      options['dryRun'] === true
        ? [`${archived} would be archived; nothing was changed`]
        : [`${archived} archived; to restore them: ${commandLine(cli, 'memory restore')}`],
  }),
  plain(Memory.method.restoreMemory, {
    command: 'restore [ids...]',
    help: 'restore archived records (default: all of them)',
    flags: EXACTLY,
    exit: ({ restored }, { args }) => (args.length > 0 && restored === 0n ? EXIT.notFound : EXIT.ok),
  }),
  ERASE,
  plain(Memory.method.getErasure, { command: 'erasure <id>', help: 'show the receipt of an erasure', exit: exitOf }),
  ...REEMBED,
  plain(Memory.method.reconcileMemory, {
    command: 'reconcile',
    help: 'for operators: find and repair incomplete writes',
    leastMs: UPKEEP_TIMEOUT_MS,
    notes: ({ repaired, problems }) => (repaired.length + problems.length === 0 ? ['no problems were found'] : []),
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

const share = (right: bigint, of: bigint) => (of === 0n ? '-' : `${Number(right)}/${Number(of)}`);

function effectText(effect: Effect | undefined, digits: number): string {
  if (effect === undefined) return '-';
  const [estimate, low, high] = [effect.estimate, effect.low, effect.high].map(
    (value) => `${value > 0 ? '+' : ''}${value.toFixed(digits)}`,
  );
  return `${estimate} (${low} to ${high})`;
}

function row(what: string, lift: ItemLift): string[] {
  const { shown, shownRight, withheld, withheldRight, success, tokens, harmful, archiveReason } = lift;
  const note = archiveReason === '' ? (harmful ? 'harmful' : '') : 'archived';
  return [what, share(shownRight, shown), share(withheldRight, withheld), effectText(success, 2), effectText(tokens, 0), note];
}

export function liftText({ memory, layers, items }: Pick<Lift, 'memory' | 'layers' | 'items'>): string {
  if (memory === undefined || memory.shown + memory.withheld === 0n) return '';
  const counted = layers.filter(({ shown, withheld }) => shown + withheld > 0n);
  return table([
    ['', 'right, shown', 'right, withheld', 'effect on right first attempts (95%)', 'effect on tokens (95%)', ''],
    row('memory', memory),
    ...counted.map((layer) => row(layer.layer, layer)),
    ...items.map((item) => row(`${item.kind} ${item.id}`, item)),
  ]);
}

export function addLift(program: Command, start: Start): void {
  plain(Memory.method.getLift, {
    command: 'lift',
    help: 'show the effect of memory: how tasks end with and without it',
    flags: {
      '--agent <name>': "only this agent's memories",
      '--user <name>': "only this user's memories and those without a user",
      '--layer <layer>': { help: 'default: all', choices: ['episodic', 'semantic', 'procedural'] },
      '--item <id>': 'only the memory with this id, as search shows it',
    },
    text: liftText,
    none: 'no task has recalled anything yet, or ETUDE_RECALL_WITHHOLD_PROBABILITY is 0',
  })(program, start);
}
