import { EtudeError } from '@etude/contracts/errors';
import type { UploadFileRequest } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { FILE_CHUNK_BYTES_MAX } from '@etude/contracts/sandbox-session';
import { type DownloadFileInit, type SandboxFileInit, sandboxFileMessage } from '@etude/contracts/sandbox-wire';
import type { SandboxFiles } from '@etude/sandbox/sandbox-driver';
import { invalidField } from './session.mapping.js';

const noSuchFile = (path: string) =>
  new EtudeError('NOT_FOUND', `There is no file ${JSON.stringify(path)} in the sandbox.`, { metadata: { path } });

/** The same files, until `ended` answers with why there are none any more. */
export function filesUntil(files: SandboxFiles, ended: () => Error | null): SandboxFiles {
  const said = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      throw ended() ?? error;
    }
  };
  return {
    write: (path, offset, data, final) => said(files.write(path, offset, data, final)),
    stat: (path) => said(files.stat(path)),
    read: (path, offset, length) => said(files.read(path, offset, length)),
    list: (after, limit) => said(files.list(after, limit)),
    delete: (path) => said(files.delete(path)),
  };
}

/** Also one whose upload is under way. @throws EtudeError NOT_FOUND */
export async function statFile(files: SandboxFiles, path: string): Promise<SandboxFileInit> {
  const { entry, uploadedBytes } = await files.stat(path);
  if (!entry && uploadedBytes === 0) throw noSuchFile(path);
  return entry ? sandboxFileMessage(entry, uploadedBytes) : { path, uploadedBytes: BigInt(uploadedBytes) };
}

/** Where an upload goes on, and how large it will be where its caller says. Bytes. */
export interface UploadPlace {
  readonly path: string;
  readonly offset: number;
  readonly sizeBytes: number | undefined;
}

const isTooMuch = ({ sizeBytes = Infinity }: UploadPlace, bytes: number) => bytes > sizeBytes;

function checkComplete({ path, sizeBytes }: UploadPlace, at: number): void {
  if (sizeBytes === undefined || at === sizeBytes) return;
  throw new EtudeError(
    'ABORTED',
    `The upload of ${JSON.stringify(path)} ended after ${at} of ${sizeBytes} bytes; go on with offset ${at}, or start again with 0.`,
    { metadata: { path, uploadedBytes: String(at) } },
  );
}

/**
 * Writes each chunk before it takes the next; the file is there with its last one.
 *
 * @throws EtudeError ABORTED where they end before the size that was said; INVALID_ARGUMENT where they pass it; as `SandboxFiles.write`
 */
export async function writeFile(
  files: SandboxFiles,
  place: UploadPlace,
  chunks: AsyncIterable<UploadFileRequest>,
  signal: AbortSignal,
): Promise<SandboxFileInit> {
  const { path } = place;
  let at = place.offset;
  for await (const { part } of chunks) {
    signal.throwIfAborted();
    if (part.case !== 'chunk') throw invalidField('chunk', 'must follow the header in every other message');
    if (isTooMuch(place, at + part.value.length))
      throw invalidField('size_bytes', `must be that of the whole file; more than ${place.sizeBytes} bytes came`);
    for (let from = 0; from < part.value.length; from += FILE_CHUNK_BYTES_MAX)
      at = await files.write(path, at, part.value.subarray(from, from + FILE_CHUNK_BYTES_MAX), false);
  }
  signal.throwIfAborted();
  checkComplete(place, at);
  await files.write(path, at, new Uint8Array(), true);
  return statFile(files, path);
}

/** At least one chunk, so that the size of an empty file is told. */
export async function* readFile(files: SandboxFiles, path: string, offset: number, signal: AbortSignal): AsyncGenerator<DownloadFileInit> {
  for (let at = offset; ;) {
    signal.throwIfAborted();
    const { data, sizeBytes } = await files.read(path, at, FILE_CHUNK_BYTES_MAX);
    if (data.length > 0 || at === offset) yield { chunk: data, sizeBytes: BigInt(sizeBytes) };
    at += data.length;
    if (data.length < FILE_CHUNK_BYTES_MAX) return;
  }
}
