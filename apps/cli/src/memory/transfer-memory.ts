import { createReadStream, statSync } from 'node:fs';
import { hash } from 'node:crypto';
import { join } from 'node:path';
import { batchesOf } from '@etude/contracts/wire/batches';
import { ImportDocumentResponseSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { isServiceError } from '@etude/contracts/rich-status';
import { status } from '@grpc/grpc-js';
import { callSettings, ridingOut, sayingHowToGoOn } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import { answeredCode, CliError, EXIT } from '../errors.js';
import { filesBelow, partsOf, readBytes, statOf, writeWhole } from '../files.js';
import { plural } from '../output.js';
import { show } from '../show.js';

/** The lines of a file, split at line feeds only. `node:readline` also splits at U+2028, which JSON strings may contain. */
export async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = '';
  for await (const text of createReadStream(path, { encoding: 'utf8' }) as AsyncIterable<string>) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

/** Limits of one call. They keep a call short even if every text has to be embedded. */
const BATCH = { itemsMax: 100, sizeMax: 4_000_000 };
const BATCH_TIMEOUT_MS = 300_000;
const REASONS_SHOWN = 20;

interface ExportOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly output: string;
  readonly layer?: readonly string[];
}

export function exportMemory(cli: Cli, { agent = '', user = '', layer = [], output }: ExportOptions): Promise<number> {
  return withGateway(cli, async ({ memory }) => {
    // The header is not a record.
    let records = -1;
    await writeWhole(output, async (write) => {
      for await (const { lines } of memory.exportMemory({ agent, user, layers: [...layer] }, { signal: cli.signal })) {
        await write(lines.map((line) => `${line}\n`).join(''));
        records += lines.length;
        cli.out.status(`exported ${plural(records, 'record')}`);
      }
    });
    cli.out.status('');
    if (output !== '-') cli.out.data({ file: output, records }, `${output}: ${plural(records, 'record')}`);
    return EXIT.ok;
  });
}

async function* batches(path: string): AsyncGenerator<{ readonly lines: string[]; readonly firstLine: number }> {
  const lines = linesOf(path);
  const { value: header, done } = await lines.next();
  if (done === true) throw new CliError(EXIT.usage, `${path} is empty; an export begins with a header line`);
  let firstLine = 2;
  for await (const records of batchesOf(lines, BATCH, ({ length }) => length)) {
    yield { lines: [header, ...records], firstLine };
    firstLine += records.length;
  }
  // The gateway checks the header of an export without records, too.
  if (firstLine === 2) yield { lines: [header], firstLine };
}

export function importMemory(cli: Cli, path: string): Promise<number> {
  return withGateway(cli, async ({ memory }) => {
    let [added, unchanged] = [0, 0];
    const refused: Array<{ readonly line: number; readonly reason: string }> = [];
    await sayingHowToGoOn(cli, async () => {
      for await (const { lines, firstLine } of batches(path)) {
        // Importing the same lines again changes nothing.
        const answer = await ridingOut(cli.signal, () => memory.importMemory({ lines }, callSettings(cli, BATCH_TIMEOUT_MS)));
        added += Number(answer.added);
        unchanged += Number(answer.unchanged);
        refused.push(...answer.refused.map(({ line, reason }) => ({ line: Number(line) - 2 + firstLine, reason })));
        cli.out.status(`imported ${plural(added + unchanged, 'record')}`);
      }
    });
    for (const [reason, same] of [...Map.groupBy(refused, (line) => line.reason)].slice(0, REASONS_SHOWN))
      cli.out.note(`refused: line ${same[0]?.line ?? 0}${same.length > 1 ? ` and ${same.length - 1} more` : ''}: ${reason}`);
    cli.out.data({ added, unchanged, refused }, `${path}: ${added} added, ${unchanged} unchanged, ${refused.length} refused`);
    return refused.length > 0 ? EXIT.failed : EXIT.ok;
  });
}

/** Whether the path is an export of memory, by its name. @throws CliError if other paths are given with it */
export function isExport(paths: readonly string[]): boolean {
  const named = paths.find((path) => /\.jsonl$/i.test(path));
  if (named === undefined) return false;
  statOf(named);
  if (paths.length > 1) throw new CliError(EXIT.usage, `${named} is an export of memory; import only this file`);
  return true;
}

const BYTES_MAX = 32 * 1024 * 1024;
/** A document with the most chunks allowed takes minutes, because each chunk is embedded. */
const IMPORT_TIMEOUT_MS = 3_600_000;
const KNOWN = /\.(md|markdown|txt|text|html?|pdf)$/i;

export interface ImportOptions {
  readonly agent: string;
  readonly user?: string;
  readonly mediaType?: string;
  readonly name?: string;
}

function filesOf(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat) throw new CliError(EXIT.usage, `there is no file or folder ${path}`);
    if (!stat.isDirectory()) return [path];
    const inside = filesBelow(path).filter((file) => KNOWN.test(file));
    if (inside.length === 0) throw new CliError(EXIT.usage, `${path} holds no Markdown, text, HTML or PDF file`);
    return inside.map((file) => join(path, file));
  });
}

async function* parts(head: object, bytes: Uint8Array) {
  yield { part: { case: 'head' as const, value: head } };
  for (const value of partsOf(bytes)) yield { part: { case: 'data' as const, value } };
}

/** A refused file doesn't stop the others. A repeat skips files that were imported before. */
export function importDocuments(cli: Cli, paths: readonly string[], options: ImportOptions): Promise<number> {
  const files = filesOf(paths);
  if (options.name !== undefined && files.length > 1) throw new CliError(EXIT.usage, '--name needs a single file, but several were given');
  return withGateway(cli, async (gateway) => {
    const counts = new Map<string, number>();
    await sayingHowToGoOn(cli, async () => {
      for (const [index, file] of files.entries()) {
        cli.out.status(`importing ${index + 1} of ${files.length}: ${file}`);
        const outcome = await tryOne(cli, gateway, file, options);
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      }
    });
    cli.out.note(`${plural(files.length, 'document')}: ${[...counts].map(([outcome, count]) => `${count} ${outcome}`).join(', ')}`);
    return counts.has('refused') ? EXIT.failed : EXIT.ok;
  });
}

async function tryOne(cli: Cli, { memory }: Gateway, file: string, options: ImportOptions): Promise<string> {
  const { agent, user = '', mediaType = '', name = file } = options;
  try {
    const bytes = readBytes(file, BYTES_MAX);
    const head = { name, mediaType, agent, user, sha256: hash('sha256', bytes) };
    // Importing the same document again changes nothing, so the call may be retried.
    const answer = await ridingOut(cli.signal, () => memory.importDocument(parts(head, bytes), callSettings(cli, IMPORT_TIMEOUT_MS)));
    const { outcome, document, maskedSecrets } = answer;
    const { id = '', chunks = 0, title = '' } = document ?? {};
    const masked = maskedSecrets > 0 ? `  ${plural(maskedSecrets, 'secret')} masked` : '';
    show(cli.out, ImportDocumentResponseSchema, answer, `${outcome}  ${file}  ${id}  ${plural(chunks, 'chunk')}  ${title}${masked}`);
    return outcome;
  } catch (error) {
    const reason = refusalOf(error);
    if (reason === null) throw error;
    cli.out.data({ file, outcome: 'refused', reason }, `refused  ${file}  ${reason}`);
    return 'refused';
  }
}

/** The reason, if the file is too large, can't be read, or was refused. null for any other error. */
export function refusalOf(error: unknown): string | null {
  if (error instanceof CliError) return error.exit === EXIT.usage ? error.message : null;
  if (isServiceError(error)) {
    const isRefused = error.code === status.INVALID_ARGUMENT || answeredCode(error) === 'PAYLOAD_TOO_LARGE';
    return isRefused ? error.details : null;
  }
  const { syscall, message } = error as NodeJS.ErrnoException;
  return syscall === undefined ? null : message;
}
