import { closeSync, openSync, readSync } from 'node:fs';
import { laterLayout, MEMORY_FILE } from '@etude/contracts/memory-file';

/** Of SQLite's header, big-endian: https://www.sqlite.org/fileformat.html */
const HEADER_BYTES = 100;
const LAYOUT_AT = 60;
const APPLICATION_AT = 68;

/** Why this version can't open a memory file, as its header has it; null where it can, where there is none, and where it is none of ours. */
export function memoryTrouble(path: string): string | null {
  const header = headerOf(path);
  if (header === null || header.readUInt32BE(APPLICATION_AT) !== MEMORY_FILE.applicationId) return null;
  const layout = header.readUInt32BE(LAYOUT_AT);
  return layout > MEMORY_FILE.layout ? laterLayout(path, layout) : null;
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
