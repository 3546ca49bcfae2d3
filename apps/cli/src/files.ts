import { once } from 'node:events';
import { readdirSync, readFileSync, renameSync, rmSync, type Stats, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type DescMessage, fromJson, type JsonValue, type MessageShape } from '@bufbuild/protobuf';
import { parseExactJson } from '@etude/contracts/json';
import { CliError, EXIT } from './errors.js';

const MIB = 1024 * 1024;
const TEXT_MAX_BYTES = 16 * MIB;

/** The file's stat. A pipe has the size 0. @throws CliError if there is no such file or pipe */
export function statOf(path: string): Stats {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) throw new CliError(EXIT.usage, `there is no file ${path}`);
  if (stat.isDirectory()) throw new CliError(EXIT.usage, `${path} is a folder; name a file`);
  // A device such as /dev/zero may never end.
  if (!stat.isFile() && !stat.isFIFO()) throw new CliError(EXIT.usage, `${path} is neither a file nor a pipe`);
  return stat;
}

export function readBytes(path: string, maxBytes: number): Buffer {
  const { size } = statOf(path);
  const bytes = size > maxBytes ? null : readFileSync(path);
  if (bytes !== null && bytes.byteLength <= maxBytes) return bytes;
  const message = `${path} is too large (${(Math.max(size, bytes?.byteLength ?? 0) / MIB).toFixed(1)} MiB): at most ${(maxBytes / MIB).toFixed(1)} MiB are allowed here`;
  throw new CliError(EXIT.usage, message);
}

export function decodeUtf8(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new CliError(EXIT.usage, `${name} is not UTF-8 text`, [], { cause: error });
  }
}

export const readText = (path: string): string => decodeUtf8(readBytes(path, TEXT_MAX_BYTES), path);

export const readJson = (path: string): unknown => jsonIn(readText(path), path);

/** @param where place of the text, for messages. @throws CliError if the text is not JSON, or holds a number that can't be sent exactly */
export function jsonIn(text: string, where: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    const what = error instanceof SyntaxError ? 'is not JSON' : 'cannot be sent exactly';
    throw new CliError(EXIT.usage, `${where} ${what}: ${(error as Error).message}`, [], { cause: error });
  }
}

/** Reads a message from proto JSON. @param where the place of the JSON, for messages. @throws CliError with the field that is wrong */
export function messageOf<Desc extends DescMessage>(type: Desc, json: unknown, where: string, hint: readonly string[]): MessageShape<Desc> {
  try {
    return fromJson(type, json as JsonValue);
  } catch (error) {
    throw new CliError(EXIT.usage, `${where}: ${(error as Error).message}`, hint, { cause: error });
  }
}

export async function readArgument(argument: string): Promise<string> {
  if (argument.startsWith('@')) return readText(argument.slice(1));
  if (argument !== '-') return argument;
  return decodeUtf8(await buffer(process.stdin), 'stdin');
}

/** Paths below the folder, with "/" and sorted. Symbolic links are left out. */
export const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
    .toSorted();

/** Splits bytes for an upload: into parts of 1 MiB, or one empty part. */
export function* partsOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at === 0 || at < bytes.byteLength; at += MIB) yield bytes.subarray(at, at + MIB);
}

type Write = (data: string | Uint8Array) => Promise<void>;

/**
 * Writes a file through `fill`. The file is called `<name>.part` until it is complete.
 *
 * @param path `-` is stdout
 * @throws CliError if the file can't be written, or the error of `fill`. In both cases no file is left behind
 */
export async function writeWhole(path: string, fill: (write: Write) => Promise<void>): Promise<void> {
  if (path === '-') return fill(async (data) => void (process.stdout.write(data) || (await once(process.stdout, 'drain'))));
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw new CliError(EXIT.usage, `${path} is a folder; name a file in it`);
  const part = `${path}.part`;
  const fail = (error: unknown): never => {
    throw new CliError(EXIT.usage, `${part} can't be written: ${(error as Error).message}`, [], { cause: error });
  };
  const file = await open(part, 'w', 0o600).catch(fail);
  try {
    await fill((data) => file.writeFile(data).catch(fail));
    await file.sync();
    renameSync(part, path);
  } finally {
    await file.close();
    rmSync(part, { force: true });
  }
}
