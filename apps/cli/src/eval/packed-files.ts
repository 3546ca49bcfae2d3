import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type Entry, fromBufferPromise } from 'yauzl';
import { CliError, EXIT } from '../errors.js';

/** Files by their path below the folder or archive, with "/". */
export type PackedFiles = ReadonlyMap<string, Buffer>;

const BYTES_MAX = 512 * 1024 * 1024;

function refuseBeyondMax(bytes: number, path: string): void {
  if (bytes > BYTES_MAX) throw new CliError(EXIT.usage, `${path} has more than ${BYTES_MAX / 1024 / 1024} MiB`);
}

/** Links are left out. @param isWanted whether to read the file with this path @throws CliError beyond 512 MiB */
export function filesOfFolder(folder: string, isWanted: (path: string) => boolean): PackedFiles {
  const files = new Map<string, Buffer>();
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    const path = relative(folder, file).replaceAll(sep, '/');
    if (!entry.isFile() || !isWanted(path)) continue;
    refuseBeyondMax((bytes += statSync(file).size), folder);
    files.set(path, readFileSync(file));
  }
  return files;
}

/** Unpacks a zip in memory. @throws CliError beyond 512 MiB, and for an archive that is damaged or encrypted */
export async function filesOfZip(zipped: Buffer, path: string, isWanted: (path: string) => boolean): Promise<PackedFiles> {
  const files = new Map<string, Buffer>();
  let bytes = 0;
  try {
    const zip = await fromBufferPromise(zipped, { lazyEntries: true, strictFileNames: true });
    for await (const entry of zip.eachEntry() as AsyncIterable<Entry>) {
      if (entry.fileName.endsWith('/') || !isWanted(entry.fileName)) continue;
      // The library refuses a file that unpacks to more than its head states.
      refuseBeyondMax((bytes += entry.uncompressedSize), path);
      files.set(entry.fileName, await buffer(await zip.openReadStreamPromise(entry)));
    }
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(EXIT.usage, `${path} can't be unpacked: ${(error as Error).message}`, [], { cause: error });
  }
  return files;
}
