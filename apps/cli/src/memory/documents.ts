import { hash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ImportDocumentResponseSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { isServiceError } from '@etude/contracts/rich-status';
import { status } from '@grpc/grpc-js';
import { callSettings, ridingOut, sayingHowToGoOn } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import { answeredCode, CliError, EXIT } from '../errors.js';
import { readBytes } from '../files.js';
import { plural } from '../output.js';
import { show } from '../show.js';

const BYTES_MAX = 32 * 1024 * 1024;
const PART_BYTES = 1024 * 1024;
/** A document with the most chunks allowed takes minutes, because each chunk is embedded. */
const IMPORT_TIMEOUT_MS = 3_600_000;
const KNOWN = /\.(md|markdown|txt|text|html?|pdf)$/i;

export interface ImportOptions {
  readonly agent: string;
  readonly user?: string;
  readonly mediaType?: string;
  readonly name?: string;
}

/** The named files, and all files with a known extension in the named folders. @throws CliError without any file */
function filesOf(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat) throw new CliError(EXIT.usage, `there is no file or folder ${path}`);
    if (!stat.isDirectory()) return [path];
    const inside = readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && KNOWN.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name));
    if (inside.length === 0) throw new CliError(EXIT.usage, `${path} holds no Markdown, text, HTML or PDF file`);
    return inside.toSorted();
  });
}

async function* parts(head: object, bytes: Uint8Array) {
  yield { part: { case: 'head' as const, value: head } };
  for (let at = 0; at < bytes.byteLength; at += PART_BYTES) {
    yield { part: { case: 'data' as const, value: bytes.subarray(at, at + PART_BYTES) } };
  }
}

function importOne(cli: Cli, gateway: Gateway, file: string, { agent, user = '', mediaType = '', name = file }: ImportOptions) {
  const bytes = readBytes(file, BYTES_MAX);
  const head = { name, mediaType, agent, user, sha256: hash('sha256', bytes) };
  // Importing the same document again changes nothing, so the call may be retried.
  return ridingOut(cli.signal, () => gateway.memory.importDocument(parts(head, bytes), callSettings(cli, IMPORT_TIMEOUT_MS)));
}

/** Imports files one by one. A refused file doesn't stop the others. A repeat skips files that were imported before. */
export function importDocuments(cli: Cli, paths: readonly string[], options: ImportOptions): Promise<number> {
  const files = filesOf(paths);
  if (options.name !== undefined && files.length > 1) throw new CliError(EXIT.usage, '--name is for a single file');
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

async function tryOne(cli: Cli, gateway: Gateway, file: string, options: ImportOptions): Promise<string> {
  try {
    const answer = await importOne(cli, gateway, file, options);
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
