import { randomUUID } from 'node:crypto';
import { toJson } from '@bufbuild/protobuf';
import { type ArchivedExample, type ErasureReceipt, ErasureReceiptSchema, Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { callSettings, poll } from '../calls.js';
import { type Cli, commandLine, withGateway } from '../cli.js';
import { type Entry, type Flags, type Given, hand, plain, REPEAT } from '../command.js';
import { CliError, EXIT } from '../errors.js';
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

interface EraseOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly tenant?: string;
  readonly yes?: boolean;
  readonly detach?: boolean;
  readonly requestId?: string;
}

function whoseMemory({ agent, user, tenant }: EraseOptions) {
  const named = (Object.entries({ agent, user, tenant }) as ReadonlyArray<['agent' | 'user' | 'tenant', string | undefined]>).flatMap(
    ([name, value]) => (value === undefined ? [] : [{ case: name, value }]),
  );
  const [whose] = named;
  if (whose === undefined || named.length > 1) throw new CliError(EXIT.usage, 'name exactly one: --agent, --user or --tenant');
  return whose;
}

async function eraseMemory(cli: Cli, options: EraseOptions): Promise<number> {
  const whose = whoseMemory(options);
  if (!options.yes)
    throw new CliError(EXIT.usage, `this erases everything of ${whose.case} ${whose.value} for good: memory, tasks, results, events`, [
      'add --yes to do it',
      'to keep a copy, run memory export before; it can be read, and imported elsewhere, but not under the same name here again',
    ]);
  return withGateway(cli, async ({ memory }) => {
    const started = await memory.eraseMemory({ requestId: options.requestId ?? randomUUID(), whose }, callSettings(cli));
    const receipt = options.detach
      ? started
      : await poll(cli, started, {
          isOver: ({ state }) => state !== 'running',
          ask: () => memory.getErasure({ id: started.id }, callSettings(cli)),
          status: ({ removed }) => `erasing … ${plural(totalOf(removed), 'record')} so far`,
        });
    cli.out.data(toJson(ErasureReceiptSchema, receipt, { alwaysEmitImplicit: true }), receiptText(receipt));
    if (receipt.state === 'succeeded' && totalOf(receipt.removed) === 0)
      cli.out.note(`nothing was found of ${whose.case} ${whose.value}; is the name right?`);
    return receiptExit(receipt);
  });
}

const totalOf = (counts: Readonly<Record<string, bigint>>) => Object.values(counts).reduce((sum, count) => sum + Number(count), 0);
const receiptExit = ({ state }: ErasureReceipt) => (state === 'failed' ? EXIT.failed : EXIT.ok);

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
  hand<EraseOptions>({
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
    run: eraseMemory,
  }),
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
