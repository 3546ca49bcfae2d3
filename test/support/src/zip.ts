import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';

interface ZippedFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** Makes a zip of the files. @param folder the folder in the zip; '' for no folder @param mode Unix mode of each file */
export async function zipOf(files: readonly ZippedFile[], folder = '', mode = 0o100644): Promise<Uint8Array> {
  const zip = new ZipFile();
  for (const { path, bytes } of files) zip.addBuffer(Buffer.from(bytes), folder === '' ? path : `${folder}/${path}`, { mode });
  zip.end();
  return buffer(zip.outputStream);
}
