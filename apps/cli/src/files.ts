import { closeSync, openSync, readFileSync, readSync, type Stats, statSync } from 'node:fs';
import { parseExactJson } from '@etude/contracts/json';
import { CliError, EXIT } from './errors.js';

const MIB = 1024 * 1024;
/** Of a text that a flag names: prompts, tests, cases. */
const TEXT_MAX_BYTES = 16 * MIB;

function statOf(path: string): Stats {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) throw new CliError(EXIT.usage, `there is no file ${path}`);
  if (stat.isDirectory()) throw new CliError(EXIT.usage, `${path} is a folder`);
  return stat;
}

const tooLarge = (path: string, bytes: number, maxBytes: number) =>
  new CliError(
    EXIT.usage,
    `${path} is too large${bytes > maxBytes + 1 ? ` (${(bytes / MIB).toFixed(1)} MiB)` : ''}: at most ${(maxBytes / MIB).toFixed(1)} MiB are taken here`,
  );

/** Size in bytes; 0 for a pipe, which has none before it is read. @throws CliError where there is no such file */
export function sizeOf(path: string): number {
  return statOf(path).size;
}

/** Of a pipe or a device, which may never end. */
function readBounded(path: string, maxBytes: number): Buffer {
  const fd = openSync(path, 'r');
  try {
    const chunks: Buffer[] = [];
    let left = maxBytes + 1;
    while (left > 0) {
      const chunk = Buffer.alloc(Math.min(left, MIB));
      const bytes = readSync(fd, chunk);
      if (bytes === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, bytes));
      left -= bytes;
    }
    throw tooLarge(path, maxBytes + 1, maxBytes);
  } finally {
    closeSync(fd);
  }
}

/** Looked at before it is read, so that a huge file costs nothing. */
export function readBytes(path: string, maxBytes: number): Buffer {
  const stat = statOf(path);
  if (!stat.isFile()) return readBounded(path, maxBytes);
  if (stat.size > maxBytes) throw tooLarge(path, stat.size, maxBytes);
  return readFileSync(path);
}

/** @param name of the source, for messages */
export function decodeUtf8(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new CliError(EXIT.usage, `${name} is not UTF-8 text`, [], { cause: error });
  }
}

export const readText = (path: string): string => decodeUtf8(readBytes(path, TEXT_MAX_BYTES), path);

export function readJson(path: string): unknown {
  const text = readText(path);
  try {
    return parseExactJson(text);
  } catch (error) {
    const what = error instanceof SyntaxError ? 'is not JSON' : 'is not used';
    throw new CliError(EXIT.usage, `${path} ${what}: ${(error as Error).message}`, [], { cause: error });
  }
}

/** `-` is stdin, `@file` a file, anything else the text itself. */
export async function readArgument(argument: string): Promise<string> {
  if (argument.startsWith('@')) return readText(argument.slice(1));
  if (argument !== '-') return argument;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > TEXT_MAX_BYTES) throw new CliError(EXIT.usage, `stdin has more than ${TEXT_MAX_BYTES / MIB} MiB`);
    chunks.push(chunk);
  }
  return decodeUtf8(Buffer.concat(chunks), 'stdin');
}
