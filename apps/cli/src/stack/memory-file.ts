import { closeSync, openSync, readSync } from 'node:fs';
import { memoryFileTrouble } from '@etude/contracts/memory-file';

/** Of SQLite's header, big-endian: https://www.sqlite.org/fileformat.html */
const HEADER_BYTES = 100;
const LAYOUT_AT = 60;
const APPLICATION_AT = 68;

/** Why this version can't open a memory file, by its header; null where it can, where there is no file, and for files of other programs. */
export function memoryTrouble(path: string): string | null {
  const header = headerOf(path);
  if (header === null) return null;
  return memoryFileTrouble(path, { applicationId: header.readUInt32BE(APPLICATION_AT), layout: header.readUInt32BE(LAYOUT_AT) });
}

/** Null where it can't be read: whoever opens the file says why. */
function headerOf(path: string): Buffer | null {
  const header = Buffer.alloc(HEADER_BYTES);
  try {
    const fd = openSync(path, 'r');
    try {
      return readSync(fd, header, 0, HEADER_BYTES, 0) === HEADER_BYTES ? header : null;
    } finally {
      closeSync(fd);
    }
  } catch {
    return null;
  }
}
