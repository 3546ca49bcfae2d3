import { readFileSync, statSync } from 'node:fs';
import { CliError } from './cli-error.js';
import { EXIT } from './exit-codes.js';

const MIB = 1024 * 1024;
/** Of a text that a flag names: prompts, tests, cases. */
export const TEXT_MAX_BYTES = 16 * MIB;

/** Size in bytes. @throws CliError where there is no such file, or it is a folder */
export function sizeOf(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) throw new CliError(EXIT.usage, `there is no file ${path}`);
  if (!stat.isFile()) throw new CliError(EXIT.usage, `${path} is no regular file`);
  return stat.size;
}

/** Looked at before it is read, so that a huge file costs nothing. */
export function readBytes(path: string, maxBytes: number): Buffer {
  const size = sizeOf(path);
  if (size > maxBytes) throw new CliError(EXIT.usage, `${path} has ${(size / MIB).toFixed(1)} MiB; at most ${(maxBytes / MIB).toFixed(1)} MiB are taken here`);
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
    return JSON.parse(text);
  } catch (error) {
    throw new CliError(EXIT.usage, `${path} is not JSON: ${(error as Error).message}`, [], { cause: error });
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
