import { type ArchivedExample, type ErasureReceipt, Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { callSettings, poll } from '../calls.js';
import { commandLine } from '../cli.js';
import { type Entry, type Flags, type Given, type Options, plain, REPEAT } from '../command.js';
import { CliError, EXIT, type ExitCode } from '../errors.js';
import { firstLine, plural } from '../output.js';
import { CALIBRATE } from './calibrate.js';
import { receiptText } from './memory-lines.js';
import { REEMBED } from './reembed.js';

const UPKEEP_TIMEOUT_MS = 600_000;
export const EXACTLY: Flags = {
  '--agent <name>': "exactly this agent's (default: all)",
  '--user <name>': "exactly this user's (default: all)",
};

const EXAMPLES_SHOWN = 10;

/** The title of a fact is only its category, so its text is fetched. */
async function exampleLine({ cli, gateway }: Given, { id, layer, title, score }: ArchivedExample): Promise<string> {
  const { fields } = layer === 'semantic' ? await gateway.memory.getMemory({ id, layer }, callSettings(cli)) : {};
  const fact = fields?.['fact'];
  const shown = [title, typeof fact === 'string' ? firstLine(fact) : ''].filter((part) => part !== '').join(': ');
  return `  ${score.toFixed(3)}  ${layer}  ${id}  ${shown}`;
}

const totalOf = (counts: Readonly<Record<string, bigint>>) => Object.values(counts).reduce((sum, count) => sum + Number(count), 0);
function receiptExit({ state }: ErasureReceipt): ExitCode {
  return state === 'failed' ? EXIT.failed : EXIT.ok;
}

/** @throws CliError unless exactly one owner is named */
function whoseMemory(options: Options) {
  const named = (['agent', 'user', 'tenant'] as const).filter((name) => options[name] !== undefined);
  const [only] = named;
  if (only === undefined || named.length > 1) throw new CliError(EXIT.usage, 'name exactly one: --agent, --user or --tenant');
  return { case: only, value: String(options[only]) };
}

const ERASE = plain(Memory.method.eraseMemory, {
  command: 'erase',
  help: 'remove every trace of an agent, a user or the tenant for good, and print a receipt',
  flags: {
    '--agent <name>': 'of this agent',
    '--user <name>': 'of this user',
    '--tenant <name>': 'all of the tenant, named to confirm it',
    '--yes': 'really',
    '--detach': 'do not wait for its end',
    ...REPEAT,
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
          status: ({ removed }) => `erasing … ${plural(totalOf(removed), 'record')} so far`,
        }),
  whole: true,
  text: receiptText,
  notes: ({ state, removed }, { options }) => {
    const whose = whoseMemory(options);
    return state === 'succeeded' && totalOf(removed) === 0 ? [`nothing was found of ${whose.case} ${whose.value}; is the name right?`] : [];
  },
  exit: receiptExit,
});

export const UPKEEP: readonly Entry[] = [
  plain(Memory.method.archiveMemory, {
    command: 'archive',
    help: 'take what has little worth out of retrieval, and keep it',
    flags: {
      ...EXACTLY,
      '--score-max <x>': 'what scores below, by importance, age and use (default: 0.2)',
      '--older-than-days <n>': 'default: 30',
      '--layer <layer>': 'repeatable (default: all)',
      '--dry-run': 'say what would be archived',
    },
    leastMs: UPKEEP_TIMEOUT_MS,
    whole: true,
    text: async ({ looked, archived, examples }, given) => {
      const shown = given.cli.out.json ? [] : examples.slice(0, EXAMPLES_SHOWN);
      const lines = await Promise.all(shown.map((example) => exampleLine(given, example)));
      const verb = given.options['dryRun'] === true ? 'would be archived (nothing was changed)' : 'archived';
      const more = Number(archived) - lines.length;
      const head = `${archived} of ${plural(Number(looked), 'record')} ${verb}`;
      return [head, ...lines, ...(more > 0 ? [`  and ${more} more`] : [])].join('\n');
    },
    notes: ({ archived }, { cli, options }) =>
      options['dryRun'] !== true && archived > 0n ? [`the way back: ${commandLine(cli, 'memory restore')}`] : [],
  }),
  plain(Memory.method.restoreMemory, {
    command: 'restore [ids...]',
    help: 'bring back what was archived (default: all of it)',
    flags: EXACTLY,
    whole: true,
    text: ({ restored }, { cli, args }) => {
      if (args.length > 0 && restored === 0n)
        throw new CliError(EXIT.notFound, `nothing archived is called ${args.join(', ')}`, [
          `${commandLine(cli, 'memory search QUERY --archived')} finds what is archived; what is not archived needs no restoring`,
        ]);
      return `${plural(Number(restored), 'record')} restored`;
    },
  }),
  ERASE,
  plain(Memory.method.getErasure, {
    command: 'erasure <id>',
    help: 'the receipt of an erasure',
    whole: true,
    text: receiptText,
    exit: receiptExit,
  }),
  REEMBED,
  plain(Memory.method.reconcileMemory, {
    command: 'reconcile',
    help: 'for operators: look for half-written things and mend them',
    leastMs: UPKEEP_TIMEOUT_MS,
    whole: true,
    text: ({ checked, repaired, problems }) => {
      const lines = [...repaired.map((what) => `mended: ${what}`), ...problems.map((what) => `wrong: ${what}`)];
      const looked = Object.entries(checked).map(([name, count]) => `${count} ${name}`);
      return [`looked at ${looked.join(', ')}`, ...(lines.length > 0 ? lines : ['nothing is wrong'])].join('\n');
    },
    exit: ({ problems }) => (problems.length > 0 ? EXIT.failed : EXIT.ok),
  }),
  CALIBRATE,
];
