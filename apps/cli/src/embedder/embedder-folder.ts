import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { SENTENCE_MODEL } from '@etude/contracts/sentence-model';
import type { Cli } from '../cli.js';

type Where = { readonly settings: Pick<Cli['settings'], 'environment'>; readonly root: string };

/** Where the sentence model's files are, or would be. */
export const embedderFolder = ({ settings: { environment }, root }: Where): string =>
  resolve(root, environment['ETUDE_EMBEDDER_PATH'] || '.etude/cache/embedder');

/** By their length alone, which takes no time. */
export const isFetched = (folder: string): boolean =>
  SENTENCE_MODEL.files.every(({ name, bytes }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size === bytes);

export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** Names of the files that are not what was published. Reads 90 MB. */
export async function damagedFiles(folder: string): Promise<string[]> {
  const wrong: string[] = [];
  for (const { name, sha256 } of SENTENCE_MODEL.files) {
    const path = join(folder, name);
    if (!statSync(path, { throwIfNoEntry: false }) || (await sha256Of(path)) !== sha256) wrong.push(name);
  }
  return wrong;
}
