import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { crc32, gunzip } from 'node:zlib';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { extract, type Header } from 'tar-stream';
import { type Entry, fromBufferPromise } from 'yauzl';
import { FileCollector, FOLDER_LIMITS, type FolderFile, tooLarge } from './file-collector.js';

export const ARCHIVE_FORMATS = ['zip', 'tar.gz'] as const;
export type ArchiveFormat = (typeof ARCHIVE_FORMATS)[number];

/** Maximum size of a packed archive, in bytes. An archive of incompressible files is a little larger than its content. */
export const ARCHIVE_BYTES_MAX = FOLDER_LIMITS.bytesMax + 2 ** 18;
/** How many bytes an unpacked tar may have besides its files, for headers, padding and long names. */
const TAR_OVERHEAD = 2 ** 20;

/**
 * Unpacks the files of an archive in memory. Limits are checked while unpacking, because headers may state wrong sizes.
 *
 * @throws EtudeError INVALID_ARGUMENT for links, devices, encryption, odd paths and damage; PAYLOAD_TOO_LARGE beyond the limits
 */
export async function filesOfArchive(bytes: Uint8Array, format: ArchiveFormat): Promise<readonly FolderFile[]> {
  if (bytes.length > ARCHIVE_BYTES_MAX) throw tooLarge(`the archive is larger than ${ARCHIVE_BYTES_MAX} bytes`);
  const collector = new FileCollector();
  try {
    await (format === 'zip' ? unzip : untar)(bytes, collector);
  } catch (error) {
    if (errorCode(error) !== 'INTERNAL') throw error;
    const message = `the archive is not ${format}, or it is damaged: ${(error as Error).message}`;
    throw new EtudeError('INVALID_ARGUMENT', message, {}, { cause: error });
  }
  return collector.done();
}

async function unzip(bytes: Uint8Array, collector: FileCollector): Promise<void> {
  const zip = await fromBufferPromise(Buffer.from(bytes), { lazyEntries: true, strictFileNames: true });
  for await (const entry of zip.eachEntry() as AsyncIterable<Entry>) {
    const folder = entry.fileName.endsWith('/');
    refuseUnlessPlain(entry.fileName, zipKind(entry, folder));
    if (entry.isEncrypted()) throw refused(entry.fileName, 'is encrypted; pack it without a password');
    const path = folder ? entry.fileName.slice(0, -1) : entry.fileName;
    if (!collector.wants(path) || folder) continue;
    const unpacked = await bytesOf(await zip.openReadStreamPromise(entry), path, collector.bytesLeft);
    if (crc32(unpacked) !== entry.crc32) throw refused(path, 'is damaged; pack the archive again');
    collector.add(path, unpacked);
  }
}

const ODD = 'file whose mode does not fit its name';

/** The upper half of the attributes is the Unix mode, or 0 if there is none. */
function zipKind(entry: Entry, folder: boolean): string {
  const mode = (entry.externalFileAttributes >>> 16) & 0o170000;
  if (mode === 0) return folder ? 'directory' : 'file';
  return { 0o100000: folder ? ODD : 'file', 0o040000: folder ? 'directory' : ODD, 0o120000: 'symlink' }[mode] ?? 'device';
}

async function untar(bytes: Uint8Array, collector: FileCollector): Promise<void> {
  const tar = extract();
  tar.end(await gunzipped(bytes, FOLDER_LIMITS.bytesMax + TAR_OVERHEAD));
  for await (const entry of tar as AsyncIterable<Readable & { header: Header }>) {
    const { name, type } = entry.header;
    const path = name.replace(/^\.\//, '').replace(/\/$/, '');
    const folder = type === 'directory';
    refuseUnlessPlain(name, tarKind(entry.header));
    if ((folder && (path === '' || path === '.')) || !collector.wants(path) || folder) {
      entry.resume();
      continue;
    }
    collector.add(path, await bytesOf(entry, path, collector.bytesLeft));
  }
}

/** The kind of a tar entry. Unknown types and sparse files would be unpacked wrongly, so they get kinds that are refused. */
function tarKind({ type, pax }: Header): string {
  if (Object.keys(pax ?? {}).some((key) => key.startsWith('GNU.sparse.'))) return 'sparse file';
  return type === 'contiguous-file' ? 'file' : (type ?? 'member of an unknown type');
}

/** Unpacks everything at once. With a stream, a truncated archive would leave the reader waiting. */
async function gunzipped(bytes: Uint8Array, maxOutputLength: number): Promise<Buffer> {
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength });
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_BUFFER_TOO_LARGE') throw error;
    throw tooLarge(`the archive unpacks to more than ${maxOutputLength} bytes`);
  }
}

async function bytesOf(stream: Readable, path: string, bytesMax: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw tooLarge(`${JSON.stringify(path)} exceeds the size limit of a skill's files`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function refuseUnlessPlain(name: string, kind: string): void {
  if (kind !== 'file' && kind !== 'directory') throw refused(name, `is a ${kind}; only files and folders are allowed`);
}

function refused(name: string, why: string): EtudeError {
  return new EtudeError('INVALID_ARGUMENT', `${JSON.stringify(name.slice(0, 200))} ${why}`);
}
