import { toJson } from '@bufbuild/protobuf';
import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Document, ImportDocumentResponseSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { type ServiceError, status } from '@grpc/grpc-js';
import { callSettings, ridingOut, sayingHowToGoOn } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import { answeredCode, CliError, EXIT, explain, isServiceError } from '../errors.js';
import { readBytes } from '../files.js';
import { plural, Progress } from '../output.js';

const BY_ENDING: ReadonlyArray<readonly [RegExp, string]> = [
  [/\.(md|markdown|mdx)$/i, 'text/markdown'],
  [/\.(txt|text|rst)$/i, 'text/plain'],
  [/\.x?html?$/i, 'text/html'],
  [/\.pdf$/i, 'application/pdf'],
];

/** Of a file by its path; empty where it cannot be told, and the gateway tells it from the name. */
export function mediaTypeOfPath(path: string): string {
  return BY_ENDING.find(([ending]) => ending.test(path))?.[1] ?? '';
}

const BYTES_MAX = 32 * 1024 * 1024;
const PART_BYTES = 1024 * 1024;
/** As many chunks as one document may have, each with its vector, take minutes. */
const IMPORT_TIMEOUT_MS = 3_600_000;
const KNOWN = /\.(md|markdown|txt|text|html?|pdf)$/i;

export interface ImportOptions {
  readonly agent: string;
  readonly user?: string;
  readonly mediaType?: string;
  readonly name?: string;
}

/** Files as they are named, and in folders those whose names say that they can be read. @throws CliError where there is none */
export function filesOf(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat) throw new CliError(EXIT.usage, `there is no file or folder ${path}`);
    if (!stat.isDirectory()) return [path];
    const inside = readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && KNOWN.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name));
    if (inside.length === 0) throw new CliError(EXIT.usage, `${path} has no Markdown, text, HTML or PDF in it`);
    return inside.toSorted();
  });
}

async function* parts(head: object, bytes: Uint8Array) {
  yield { part: { case: 'head' as const, value: head } };
  for (let at = 0; at < bytes.byteLength; at += PART_BYTES) {
    yield { part: { case: 'data' as const, value: bytes.subarray(at, at + PART_BYTES) } };
  }
}

async function importOne(
  cli: Cli,
  gateway: Gateway,
  file: string,
  { agent, user = '', mediaType = mediaTypeOfPath(file), name = file }: ImportOptions,
) {
  const bytes = readBytes(file, BYTES_MAX);
  const head = { name, mediaType, agent, user, sha256: createHash('sha256').update(bytes).digest('hex') };
  // The same document again changes nothing, so it may be sent again.
  return ridingOut(cli.signal, () => gateway.memory.importDocument(parts(head, bytes), callSettings(cli, IMPORT_TIMEOUT_MS)));
}

/** One after the other; one that is refused does not keep the others. What was imported before is passed over, so a repeat goes on. */
export function importDocuments(cli: Cli, paths: readonly string[], options: ImportOptions): Promise<number> {
  const files = filesOf(paths);
  if (options.name !== undefined && files.length > 1) throw new CliError(EXIT.usage, '--name is for a single file');
  return withGateway(cli, async (gateway) => {
    const counts = new Map<string, number>();
    const progress = new Progress(cli.out);
    await sayingHowToGoOn(cli, async () => {
      for (const [index, file] of files.entries()) {
        progress.tell(`importing ${index + 1} of ${files.length}: ${file}`);
        const outcome = await tried(cli, file, { address: gateway.address, send: () => importOne(cli, gateway, file, options) });
        counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      }
    });
    progress.end();
    cli.out.note(`${plural(files.length, 'document')}: ${[...counts].map(([outcome, count]) => `${count} ${outcome}`).join(', ')}`);
    return counts.has('refused') ? EXIT.failed : EXIT.ok;
  });
}

async function tried(
  cli: Cli,
  file: string,
  { address, send }: { readonly address: string; readonly send: () => ReturnType<Gateway['memory']['importDocument']> },
): Promise<string> {
  try {
    const answer = await send();
    const { outcome, document } = answer;
    cli.out.data(
      toJson(ImportDocumentResponseSchema, answer, { alwaysEmitImplicit: true }),
      `${outcome}  ${file}  ${documentLine(document)}`,
    );
    return outcome;
  } catch (error) {
    const reason = refusalOf(error);
    if (reason === null) throw stopped(cli, error, address);
    cli.out.data({ file, outcome: 'refused', reason }, `refused  ${file}  ${reason}`);
    return 'refused';
  }
}

const documentLine = (document: Document | undefined) =>
  document === undefined ? '' : `${document.id}  ${plural(document.chunks, 'chunk')}  ${document.title}`;

/** Where it is this file, and not the gateway: too large, not to be read, or refused there. null for anything else. */
export function refusalOf(error: unknown): string | null {
  if (error instanceof CliError) return error.exit === EXIT.usage ? error.message : null;
  if (isServiceError(error)) return error.code === status.INVALID_ARGUMENT || isTooLarge(error) ? error.details : null;
  const { syscall, message } = error as NodeJS.ErrnoException;
  return syscall === undefined ? null : message;
}

/** Also where gRPC itself refused a message, which has no code of ours. A full disk and too many calls are of the same status. */
const isTooLarge = (error: ServiceError) =>
  error.code === status.RESOURCE_EXHAUSTED && ['PAYLOAD_TOO_LARGE', null].includes(answeredCode(error));

/** What ends the import, with how it goes on. */
export function stopped({ signal }: Pick<Cli, 'signal'>, error: unknown, address: string): unknown {
  const known = explain(error, address);
  if (signal.aborted || !(known instanceof CliError)) return known;
  const hint = [...known.hint, 'then run the same again: what was imported is passed over'];
  return new CliError(known.exit, known.message, hint, { cause: error, ...(known.code === null ? {} : { code: known.code }) });
}
