import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ArchivedExample,
  ArchiveMemoryResponseSchema,
  type ErasureReceipt,
  ErasureReceiptSchema,
  MemoryStatsSchema,
  ReconcileMemoryResponseSchema,
  RestoreMemoryResponseSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { status } from '@grpc/grpc-js';
import { type Cli, commandLine, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { isServiceError } from '../grpc-errors.js';
import { firstLine, plural } from '../output.js';
import { callSettings } from '../sandbox/manage-sandboxes.js';
import { ridingOut } from '../sandbox/ride-out.js';
import { wholeJson } from './memory-json.js';
import { receiptText, statsText } from './memory-lines.js';
import type { WhoseOptions } from './search-memory.js';

const POLL_MS = 300;
const EXAMPLES_SHOWN = 10;

export interface ArchiveOptions extends WhoseOptions {
  readonly scoreMax?: number;
  readonly olderThanDays?: number;
  readonly layer?: readonly string[];
  readonly dryRun?: boolean;
}

/** The title of a fact is its category alone, so its text is fetched. */
async function exampleLine(cli: Cli, gateway: Gateway, { id, layer, title, score }: ArchivedExample): Promise<string> {
  let text: unknown;
  if (layer === 'semantic') {
    try {
      const { fields } = await gateway.memory.getMemory({ id, layer }, callSettings(cli));
      text = fields?.['fact'];
    } catch (error) {
      if (!isServiceError(error) || error.code !== status.NOT_FOUND) throw error;
    }
  }
  const shown = typeof text === 'string' && text !== '' ? [title, firstLine(text)].filter((part) => part !== '').join(': ') : title;
  return `  ${score.toFixed(3)}  ${layer}  ${id}  ${shown}`;
}

const exampleLines = (cli: Cli, gateway: Gateway, examples: readonly ArchivedExample[]) =>
  Promise.all(examples.slice(0, EXAMPLES_SHOWN).map((example) => exampleLine(cli, gateway, example)));

export function archiveMemory(cli: Cli, options: ArchiveOptions): Promise<number> {
  const { agent = '', user = '', scoreMax, olderThanDays, layer = [], dryRun = false } = options;
  return withGateway(cli, async (gateway) => {
    const request = { agent, user, scoreMax, olderThanDays, layers: [...layer], dryRun };
    const report = await gateway.memory.archiveMemory(request, { ...callSettings(cli), timeoutMs: Math.max(cli.callTimeoutMs, 300_000) });
    const examples = cli.out.json ? [] : await exampleLines(cli, gateway, report.examples);
    const more = Number(report.archived) - examples.length;
    const verb = dryRun ? 'would be archived (nothing was changed)' : 'archived';
    const head = `${report.archived} of ${plural(Number(report.looked), 'record')} ${verb}`;
    cli.out.data(
      wholeJson(ArchiveMemoryResponseSchema, report),
      [head, ...examples, ...(more > 0 ? [`  and ${more} more`] : [])].join('\n'),
    );
    if (!dryRun && report.archived > 0n) cli.out.note(`the way back: ${commandLine(cli, 'memory restore')}`);
    return EXIT.ok;
  });
}

export function restoreMemory(cli: Cli, ids: readonly string[], { agent = '', user = '' }: WhoseOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const report = await gateway.memory.restoreMemory({ ids: [...ids], agent, user }, callSettings(cli));
    if (ids.length > 0 && report.restored === 0n)
      throw new CliError(EXIT.notFound, `nothing archived is called ${ids.join(', ')}`, [
        `${commandLine(cli, 'memory search QUERY --archived')} finds what is archived; what is not archived needs no restoring`,
      ]);
    cli.out.data(wholeJson(RestoreMemoryResponseSchema, report), `${plural(Number(report.restored), 'record')} restored`);
    return EXIT.ok;
  });
}

export interface EraseOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly tenant?: string;
  readonly yes?: boolean;
  readonly detach?: boolean;
  readonly requestId?: string;
}

function whoseMemory({ agent, user, tenant }: EraseOptions) {
  const named = [
    ...(agent === undefined ? [] : [{ case: 'agent' as const, value: agent }]),
    ...(user === undefined ? [] : [{ case: 'user' as const, value: user }]),
    ...(tenant === undefined ? [] : [{ case: 'tenant' as const, value: tenant }]),
  ];
  const [whose] = named;
  if (whose === undefined || named.length > 1) throw new CliError(EXIT.usage, 'name exactly one: --agent, --user or --tenant');
  return whose;
}

/** Polls until the erasure is over; a gateway that is away is asked again. */
async function receiptOf(cli: Cli, gateway: Gateway, started: ErasureReceipt): Promise<ErasureReceipt> {
  let receipt = started;
  while (receipt.state === 'running') {
    const removed = Object.values(receipt.removed).reduce((sum, count) => sum + Number(count), 0);
    cli.out.status(`erasing … ${plural(removed, 'record')} so far`);
    await sleep(POLL_MS, undefined, { signal: cli.signal });
    receipt = await ridingOut(cli.signal, () => gateway.memory.getErasure({ id: started.id }, callSettings(cli)));
  }
  cli.out.status('');
  return receipt;
}

export function eraseMemory(cli: Cli, options: EraseOptions): Promise<number> {
  const whose = whoseMemory(options);
  if (!options.yes) {
    throw new CliError(EXIT.usage, `this erases everything of ${whose.case} ${whose.value} for good: memory, tasks, results, events`, [
      'add --yes to do it',
      'to keep a copy, run memory export before; it can be read, and imported elsewhere, but not under the same name here again',
    ]);
  }
  return withGateway(cli, async (gateway) => {
    const started = await gateway.memory.eraseMemory({ requestId: options.requestId ?? randomUUID(), whose }, callSettings(cli));
    const receipt = options.detach ? started : await receiptOf(cli, gateway, started);
    cli.out.data(wholeJson(ErasureReceiptSchema, receipt), receiptText(receipt));
    if (foundNothing(receipt)) cli.out.note(`nothing was found of ${whose.case} ${whose.value}; is the name right?`);
    return receipt.state === 'failed' ? EXIT.failed : EXIT.ok;
  });
}

/** It is over, and had nothing to remove. */
export const foundNothing = ({ state, removed }: Pick<ErasureReceipt, 'state' | 'removed'>): boolean =>
  state === 'succeeded' && Object.values(removed).every((count) => count === 0n);

export function showErasure(cli: Cli, id: string): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const receipt = await gateway.memory.getErasure({ id }, callSettings(cli));
    cli.out.data(wholeJson(ErasureReceiptSchema, receipt), receiptText(receipt));
    return receipt.state === 'failed' ? EXIT.failed : EXIT.ok;
  });
}

export function memoryStats(cli: Cli): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const stats = await gateway.memory.getMemoryStats({}, callSettings(cli));
    cli.out.data(wholeJson(MemoryStatsSchema, stats), statsText(stats));
    return EXIT.ok;
  });
}

export function reconcileMemory(cli: Cli): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const settings = { ...callSettings(cli), timeoutMs: Math.max(cli.callTimeoutMs, 600_000) };
    const report = await gateway.memory.reconcileMemory({}, settings);
    const checked = Object.entries(report.checked).map(([name, count]) => `${count} ${name}`);
    const lines = [
      `looked at ${checked.join(', ')}`,
      ...report.repaired.map((what) => `mended: ${what}`),
      ...report.problems.map((what) => `wrong: ${what}`),
      report.repaired.length + report.problems.length === 0 ? 'nothing is wrong' : '',
    ];
    cli.out.data(wholeJson(ReconcileMemoryResponseSchema, report), lines.filter((line) => line !== '').join('\n'));
    return report.problems.length > 0 ? EXIT.failed : EXIT.ok;
  });
}
