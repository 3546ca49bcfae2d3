import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where `./etude` puts them. */
export const DEFAULT_FOLDER = fileURLToPath(new URL('../../../../.etude/cache/embedder', import.meta.url));
/** Written by `tools/embedding-graph`; holds no weights. */
export const GRAPH_PATH = fileURLToPath(new URL('../../graphs/all-minilm-l6-v2.onnx', import.meta.url));

/** Name and length in bytes. Their digests are checked when they are fetched; a file that was cut short is seen here. */
const FILES: Readonly<Record<string, number>> = { 'model.safetensors': 90_868_376, 'tokenizer.json': 466_247 };

/** Names of the files of all-MiniLM-L6-v2 that are not in `folder`, or not in their whole length. */
export function missingFiles(folder: string): string[] {
  return Object.entries(FILES)
    .filter(([name, bytes]) => statSync(join(folder, name), { throwIfNoEntry: false })?.size !== bytes)
    .map(([name]) => name);
}
