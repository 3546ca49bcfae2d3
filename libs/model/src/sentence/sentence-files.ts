import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SENTENCE_MODEL } from '@etude/contracts/sentence-model';

/** Where `./etude` puts them. */
export const DEFAULT_FOLDER = fileURLToPath(new URL('../../../../.etude/cache/embedder', import.meta.url));
/** Written by `tools/embedding-graph`; holds no weights. */
export const GRAPH_PATH = fileURLToPath(new URL('../../graphs/all-minilm-l6-v2.onnx', import.meta.url));

/**
 * Names of the model's files that are not in `folder`, or not in their whole length.
 *
 * Digests are checked when files are fetched; here only what was cut short is seen.
 */
export function missingFiles(folder: string): string[] {
  return SENTENCE_MODEL.files
    .filter(({ name, bytes }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size !== bytes)
    .map(({ name }) => name);
}
