import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';

interface ZippedFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** A zip of the files, within a folder of that name if it has one. @param mode kind and rights of each file, as Unix has them */
export async function zipOf(files: readonly ZippedFile[], folder = '', mode = 0o100644): Promise<Uint8Array> {
  const zip = new ZipFile();
  for (const { path, bytes } of files) zip.addBuffer(Buffer.from(bytes), folder === '' ? path : `${folder}/${path}`, { mode });
  zip.end();
  return buffer(zip.outputStream);
}
