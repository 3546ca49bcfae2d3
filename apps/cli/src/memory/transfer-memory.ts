import { createReadStream, rmSync, statSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { callSettings, ridingOut, sayingHowToGoOn } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { sizeOf } from '../files.js';
import { plural, Progress } from '../output.js';

/**
 * The lines of a file of JSON Lines, without their ends: a line feed, or both of a carriage return and one. Nothing else ends a line:
 * JSON has U+2028 and U+2029 in its strings as they are, at which `node:readline` cuts.
 *
 * @param bytesMax of the beginning, to look no further
 */
export async function* linesOf(path: string, bytesMax = Infinity): AsyncGenerator<string> {
  let rest = '';
  const stream = createReadStream(path, { encoding: 'utf8', end: bytesMax });
  for await (const text of stream as AsyncIterable<string>) {
    const lines = text.split('\n');
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? '';
    for (const line of lines) yield withoutReturn(line);
  }
  if (rest !== '') yield withoutReturn(rest);
}

const withoutReturn = (line: string) => (line.endsWith('\r') ? line.slice(0, -1) : line);

/**
 * Writes a file that appears under its name once it is whole, readable by its owner only. Until then it is called `<name>.part`.
 *
 * @throws CliError usage where it can't be written; then nothing is left of it
 */
export async function writeWhole<T>(path: string, work: (write: (text: string) => Promise<void>) => Promise<T>): Promise<T> {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw new CliError(EXIT.usage, `${path} is a folder; name a file`);
  const part = `${path}.part`;
  const fail = (error: unknown): never => {
    throw new CliError(EXIT.usage, `${path} cannot be written: ${(error as Error).message}`, [], { cause: error });
  };
  const file = await open(part, 'w', 0o600).catch(fail);
  try {
    const done = await work((text) => file.writeFile(text).catch(fail));
    await file.sync().catch(fail);
    await rename(part, path).catch(fail);
    return done;
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  } finally {
    await file.close().catch(() => undefined); // its content is safe, or given up
  }
}

/** Of one call: small enough to be answered soon, also where every text has to be embedded. */
const BATCH_LINES = 100;
const BATCH_CHARS = 4_000_000;
const BATCH_TIMEOUT_MS = 300_000;
const REFUSED_SHOWN = 20;
const NUMBERS_SHOWN = 5;

export interface ExportOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly output?: string;
  readonly layer?: readonly string[];
}

interface ExportRequest {
  readonly agent: string;
  readonly user: string;
  readonly layers: string[];
}

/** Answers how many records. */
async function receive(cli: Cli, gateway: Gateway, asked: ExportRequest, write: (text: string) => unknown): Promise<number> {
  const progress = new Progress(cli.out);
  // The header is none.
  let records = -1;
  for await (const { lines } of gateway.memory.exportMemory(asked, { signal: cli.signal })) {
    await write(lines.map((line) => `${line}\n`).join(''));
    records += lines.length;
    progress.tell(`exported ${plural(records, 'record')}`);
  }
  progress.end();
  return records;
}

/** Into a file, which appears under its name once it is whole, or on stdout. */
export function exportMemory(cli: Cli, { agent = '', user = '', layer = [], output }: ExportOptions): Promise<number> {
  const asked = { agent, user, layers: [...layer] };
  return withGateway(cli, async (gateway) => {
    if (output === undefined) {
      await receive(cli, gateway, asked, (text) => cli.out.stream('stdout', text));
      return EXIT.ok;
    }
    const records = await writeWhole(output, (write) => receive(cli, gateway, asked, write));
    cli.out.data({ file: output, records }, `${output}: ${plural(records, 'record')}`);
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
  for await (const line of linesOf(path)) {
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
  // The same lines again change nothing.
  const answer = await ridingOut(cli.signal, () => gateway.memory.importMemory({ lines: [...lines] }, callSettings(cli, BATCH_TIMEOUT_MS)));
  totals.added += Number(answer.added);
  totals.unchanged += Number(answer.unchanged);
  totals.refused.push(...answer.refused.map(({ line, reason }) => ({ line: Number(line) - 2 + firstLine, reason })));
}

/** Those with the same reason as one line, with the lines of the first of them. */
export function refusalLines(refused: Totals['refused']): string[] {
  const byReason = Map.groupBy(refused, ({ reason }) => reason);
  const lines = [...byReason].slice(0, REFUSED_SHOWN).map(([reason, same]) => {
    const numbers = same.slice(0, NUMBERS_SHOWN).map(({ line }) => line);
    const more = same.length - numbers.length;
    return `${same.length === 1 ? 'line' : 'lines'} ${numbers.join(', ')}${more > 0 ? ` and ${more} more` : ''}: ${reason}`;
  });
  return byReason.size > REFUSED_SHOWN ? [...lines, `and ${byReason.size - REFUSED_SHOWN} other reasons`] : lines;
}

/** Goes on where it was stopped when it is run again: what is there is passed over. */
export function importMemory(cli: Cli, path: string): Promise<number> {
  const bytes = sizeOf(path);
  return withGateway(cli, async (gateway) => {
    const totals: Totals = { added: 0, unchanged: 0, refused: [] };
    const progress = new Progress(cli.out);
    let sent = 0;
    await sayingHowToGoOn(cli, async () => {
      for await (const batch of batches(path)) {
        await send(cli, gateway, batch, totals);
        sent += batch.lines.slice(1).reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
        const percent = bytes > 0 ? ` (${Math.min(100, Math.floor((sent / bytes) * 100))} %)` : '';
        progress.tell(`imported ${plural(totals.added + totals.unchanged, 'record')}${percent}`);
      }
    });
    progress.end();
    const { added, unchanged, refused } = totals;
    for (const line of refusalLines(refused)) cli.out.note(line);
    cli.out.data(totals, `${path}: ${added} added, ${unchanged} were there, ${refused.length} refused`);
    return refused.length > 0 ? EXIT.failed : EXIT.ok;
  });
}

async function beginsAsExport(path: string): Promise<boolean> {
  for await (const line of linesOf(path, 65_536)) {
    return line.startsWith('{') && line.includes('"etude"');
  }
  return true; // An empty one is refused where it is read.
}

/** Whether it is an export of memory. @throws CliError where a name that says so lies, or there are others beside it */
export async function isExport(paths: readonly string[]): Promise<boolean> {
  const [named] = paths.filter((path) => /\.jsonl$/i.test(path));
  if (named === undefined) return false;
  sizeOf(named);
  if (!(await beginsAsExport(named)))
    throw new CliError(EXIT.usage, `${named}: a .jsonl must be an export of memory; its first line is not`);
  if (paths.length > 1) throw new CliError(EXIT.usage, `${named} is an export of memory; import it by itself`);
  return true;
}
