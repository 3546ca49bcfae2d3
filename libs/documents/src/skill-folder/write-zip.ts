import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';
import { byPath, type FolderFile } from './file-collector.js';

/** The oldest time that a zip can tell, so that the same files give the same bytes. */
const MTIME = new Date(1980, 0, 1);

/** @param folder that all files are put into; empty: none */
export async function zipOf(files: readonly FolderFile[], folder = ''): Promise<Uint8Array> {
  const zip = new ZipFile();
  for (const { path, bytes } of files.toSorted(byPath)) {
    const place = folder === '' ? path : `${folder}/${path}`;
    zip.addBuffer(Buffer.from(bytes), place, { mtime: MTIME, mode: 0o100644, forceDosTimestamp: true });
  }
  zip.end();
  return buffer(zip.outputStream);
}
