import type { ImportSkillRequest, ImportSkillRequest_Head } from '@etude/contracts/gen/etude/v1/skills_pb';
import { filesOfFolder, FOLDER_LIMITS, type FolderFile, type FolderFiles, tooLarge } from '@etude/documents/skill-folder/file-collector';
import { ARCHIVE_BYTES_MAX, ARCHIVE_FORMATS, type ArchiveFormat, filesOfArchive } from '@etude/documents/skill-folder/read-archive';
import { invalidField } from '../wire/validation.js';

const FORMATS = ['folder', ...ARCHIVE_FORMATS] as const;

export interface SkillImport {
  readonly head: ImportSkillRequest_Head;
  readonly came: FolderFiles;
}

/**
 * What an import sends, whole: it is small, or refused before it is.
 *
 * @throws EtudeError INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, CANCELLED
 */
export async function readImport(requests: AsyncIterable<ImportSkillRequest>, signal: AbortSignal): Promise<SkillImport> {
  const incoming = requests[Symbol.asyncIterator]();
  const first = await incoming.next();
  const part = first.done ? undefined : first.value.part;
  if (part?.case !== 'head') throw invalidField('head', 'is required in the first message of an import');
  const head = part.value;
  const format = FORMATS.find((one) => one === head.format);
  if (format === undefined) throw invalidField('head.format', `must be ${FORMATS.join(', ')}; it is ${JSON.stringify(head.format)}`);
  const bytesMax = format === 'folder' ? FOLDER_LIMITS.bytesMax : ARCHIVE_BYTES_MAX;
  const files = await filesIn({ [Symbol.asyncIterator]: () => incoming }, bytesMax);
  return { head, came: format === 'folder' ? filesOfFolder(files) : await archived(files, format, signal) };
}

async function archived(files: readonly FolderFile[], format: ArchiveFormat, signal: AbortSignal): Promise<FolderFiles> {
  if (files.length > 1) throw invalidField('file.path', 'must be the same in every message: these are the bytes of one archive');
  return filesOfArchive(files[0]?.bytes ?? new Uint8Array(), format, signal);
}

async function filesIn(requests: AsyncIterable<ImportSkillRequest>, bytesMax: number): Promise<FolderFile[]> {
  const files = new Map<string, Uint8Array[]>();
  let bytes = 0;
  for await (const { part } of requests) {
    if (part.case !== 'file') throw invalidField(part.case ?? 'part', 'must be a file in every message but the first');
    const { path, data } = part.value;
    bytes += data.byteLength;
    if (bytes > bytesMax) throw tooLarge(`what came in is larger than ${bytesMax} bytes`);
    files.set(path, [...(files.get(path) ?? []), data]);
    if (files.size > 2 * FOLDER_LIMITS.filesMax) throw tooLarge(`there are more than ${FOLDER_LIMITS.filesMax} files`);
  }
  return [...files].map(([path, parts]) => ({ path, bytes: Buffer.concat(parts) }));
}
