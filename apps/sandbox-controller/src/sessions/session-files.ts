import { EtudeError } from '@etude/contracts/errors';
import type { UploadFileRequest } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { FILE_CHUNK_BYTES_MAX } from '@etude/contracts/sandbox-session';
import { type DownloadFileInit, type SandboxFileInit, sandboxFileMessage } from '@etude/contracts/sandbox-wire';
import { invalidField } from '@etude/contracts/wire/validation';
import type { SandboxFiles } from '@etude/sandbox/sandbox-driver';

/** Describes a file, also one whose upload is unfinished. @throws EtudeError NOT_FOUND */
export async function statFile(files: SandboxFiles, path: string): Promise<SandboxFileInit> {
  const { entry, uploadedBytes } = await files.stat(path);
  if (!entry && uploadedBytes === 0)
    throw new EtudeError('NOT_FOUND', `There is no file ${JSON.stringify(path)} in the sandbox.`, { metadata: { path } });
  return entry ? sandboxFileMessage(entry, uploadedBytes) : { path, uploadedBytes: BigInt(uploadedBytes) };
}

/** Where an upload continues, and the size of the whole file where the caller gave it. In bytes. */
export interface UploadPlace {
  readonly path: string;
  readonly offset: number;
  readonly sizeBytes: number | undefined;
}

/**
 * Writes each chunk before it takes the next. The file appears after the last chunk.
 *
 * @throws EtudeError ABORTED for fewer bytes than `sizeBytes`, INVALID_ARGUMENT for more; those of `SandboxFiles.write`
 */
export async function writeFile(
  files: SandboxFiles,
  { path, offset, sizeBytes }: UploadPlace,
  chunks: AsyncIterable<UploadFileRequest>,
  signal: AbortSignal,
): Promise<SandboxFileInit> {
  let at = offset;
  for await (const { part } of chunks) {
    signal.throwIfAborted();
    if (part.case !== 'chunk') throw invalidField('chunk', 'must follow the header in every other message');
    if (at + part.value.length > (sizeBytes ?? Infinity))
      throw invalidField('size_bytes', `must be the size of the whole file; more than ${sizeBytes} bytes arrived`);
    for (let from = 0; from < part.value.length; from += FILE_CHUNK_BYTES_MAX)
      at = await files.write(path, at, part.value.subarray(from, from + FILE_CHUNK_BYTES_MAX), false);
  }
  signal.throwIfAborted();
  if (sizeBytes !== undefined && at !== sizeBytes)
    throw new EtudeError(
      'ABORTED',
      `The upload of ${JSON.stringify(path)} ended after ${at} of ${sizeBytes} bytes. Continue with offset ${at}, or start again with 0.`,
      { metadata: { path, uploadedBytes: String(at) } },
    );
  await files.write(path, at, new Uint8Array(), true);
  return statFile(files, path);
}

/** Yields at least one chunk, so that the caller learns the size of an empty file. */
export async function* readFile(files: SandboxFiles, path: string, offset: number, signal: AbortSignal): AsyncGenerator<DownloadFileInit> {
  for (let at = offset; ;) {
    signal.throwIfAborted();
    const { data, sizeBytes } = await files.read(path, at, FILE_CHUNK_BYTES_MAX);
    if (data.length > 0 || at === offset) yield { chunk: data, sizeBytes: BigInt(sizeBytes) };
    at += data.length;
    if (data.length < FILE_CHUNK_BYTES_MAX) return;
  }
}
