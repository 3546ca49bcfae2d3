import { once } from 'node:events';
import { createReadStream, createWriteStream, renameSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type Cli, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { sizeOf } from '../files.js';
import type { Gateway } from '../gateway.js';
import { plural } from '../output.js';
import { ridingOut } from '../sandbox/ride-out.js';
import type { WhoseOptions } from './search-memory.js';

/** Of one call: small enough to be answered soon, also where every text has to be embedded. */
const BATCH_LINES = 100;
const BATCH_CHARS = 4_000_000;
const BATCH_TIMEOUT_MS = 300_000;
const REFUSED_SHOWN = 20;

export interface ExportOptions extends WhoseOptions {
  readonly output?: string;
}

/** Into a file, which appears under its name once it is whole, or on stdout. */
export function exportMemory(cli: Cli, { agent = '', user = '', output }: ExportOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const partial = output === undefined ? null : `${output}.part`;
    const file = partial === null ? null : createWriteStream(partial, { mode: 0o600 });
    let records = -1;
    for await (const { lines } of gateway.memory.exportMemory({ agent, user }, { signal: cli.signal })) {
      const text = lines.map((line) => `${line}\n`).join('');
      if (file === null) cli.out.stream('stdout', text);
      else if (!file.write(text)) await once(file, 'drain', { signal: cli.signal });
      records += lines.length;
      cli.out.status(`exported ${plural(records, 'record')}`);
    }
    if (file !== null && partial !== null && output !== undefined) {
      file.end();
      await once(file, 'finish');
      renameSync(partial, output);
      cli.out.data({ file: output, records }, `${output}: ${plural(records, 'record')}`);
    }
    cli.out.status('');
    return EXIT.ok;
  });
}

interface Batch {
  readonly lines: readonly string[];
  /** Number in the file of the first line behind the header. */
  readonly firstLine: number;
}

/** The header is the first line of every batch. */
async function* batches(path: string): AsyncGenerator<Batch> {
  let header: string | null = null;
  let lines: string[] = [];
  let chars = 0;
  let number = 0;
  let firstLine = 2;
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    number += 1;
    if (header === null) {
      header = line;
      continue;
    }
    if (lines.length >= BATCH_LINES || (lines.length > 0 && chars + line.length > BATCH_CHARS)) {
      yield { lines: [header, ...lines], firstLine };
      lines = [];
      chars = 0;
      firstLine = number;
    }
    lines.push(line);
    chars += line.length;
  }
  if (header === null) throw new CliError(EXIT.usage, `${path} is empty; an export begins with a line that says what it is`);
  yield { lines: [header, ...lines], firstLine };
}

interface Totals {
  added: number;
  unchanged: number;
  readonly refused: Array<{ line: number; reason: string }>;
}

async function send(cli: Cli, gateway: Gateway, { lines, firstLine }: Batch, totals: Totals): Promise<void> {
  const settings = { timeoutMs: Math.max(cli.callTimeoutMs, BATCH_TIMEOUT_MS), signal: cli.signal };
  // The same lines again change nothing.
  const answer = await ridingOut(cli.signal, () => gateway.memory.importMemory({ lines: [...lines] }, settings));
  totals.added += Number(answer.added);
  totals.unchanged += Number(answer.unchanged);
  totals.refused.push(...answer.refused.map(({ line, reason }) => ({ line: Number(line) - 2 + firstLine, reason })));
}

/** Goes on where it was stopped when it is run again: what is there is passed over. */
export function importMemory(cli: Cli, path: string): Promise<number> {
  const bytes = sizeOf(path);
  return withGateway(cli, async (gateway) => {
    const totals: Totals = { added: 0, unchanged: 0, refused: [] };
    let sent = 0;
    for await (const batch of batches(path)) {
      await send(cli, gateway, batch, totals);
      sent += batch.lines.slice(1).reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
      const percent = bytes > 0 ? ` (${Math.min(100, Math.floor((sent / bytes) * 100))} %)` : '';
      cli.out.status(`imported ${plural(totals.added + totals.unchanged, 'record')}${percent}`);
    }
    cli.out.status('');
    const { added, unchanged, refused } = totals;
    for (const { line, reason } of refused.slice(0, REFUSED_SHOWN)) cli.out.note(`line ${line}: ${reason}`);
    if (refused.length > REFUSED_SHOWN) cli.out.note(`and ${refused.length - REFUSED_SHOWN} more`);
    cli.out.data(totals, `${path}: ${added} added, ${unchanged} were there, ${refused.length} refused`);
    return refused.length > 0 ? EXIT.failed : EXIT.ok;
  });
}

/** Whether the file is an export of memory, by its first line. */
export async function isExport(path: string): Promise<boolean> {
  if (!/\.jsonl$/i.test(path)) return false;
  for await (const line of createInterface({ input: createReadStream(path, { end: 65_536 }), crlfDelay: Infinity })) {
    return line.startsWith('{') && line.includes('"etude"');
  }
  return true;
}
