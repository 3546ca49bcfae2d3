import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { SENTENCE_MODEL } from '@etude/contracts/embedder-names';
import type { Cli } from '../cli.js';

type Where = Pick<Cli, 'settings' | 'home' | 'root'>;

/** Folder of the sentence model's files, whether or not they are there. */
export const embedderFolder = ({ settings: { environment }, root }: Pick<Where, 'settings' | 'root'>): string =>
  resolve(root, environment['ETUDE_EMBEDDER_PATH'] || '.etude/cache/embedder');

/** Whether all files of the sentence model are there. Only sizes are compared, which is quick. */
export const isFetched = (folder: string): boolean =>
  SENTENCE_MODEL.files.every(({ name, bytes }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size === bytes);

export const LEXICAL_COST = 'memory finds similar tasks by shared words only; it mostly misses the same task in other words';

/** File with the built-in embedder of the last start. */
const recordPath = (home: string) => join(home, 'embedder');

/**
 * Settings for every service of one stack, because the services share one memory. Empty if the environment names an embedding server's model.
 *
 * ETUDE_EMBEDDER comes from the environment, else from the last start of this stack, else it is the best embedder whose files exist.
 */
export function embedderSettings(cli: Where): { readonly ETUDE_EMBEDDER?: string; readonly ETUDE_EMBEDDER_PATH?: string } {
  const { ETUDE_EMBEDDING_MODEL: model, ETUDE_EMBEDDER: asked } = cli.settings.environment;
  if (model) return {};
  const folder = embedderFolder(cli);
  const last = existsSync(recordPath(cli.home)) ? readFileSync(recordPath(cli.home), 'utf8').trim() : null;
  const best = last ?? (isFetched(folder) ? 'sentence' : 'lexical');
  return { ETUDE_EMBEDDER: asked && asked !== 'auto' ? asked : best, ETUDE_EMBEDDER_PATH: folder };
}

/** Records the embedder after memory was opened with these settings. The next start uses the same embedder. */
export function recordEmbedder(home: string, { ETUDE_EMBEDDER: name }: ReturnType<typeof embedderSettings>): void {
  if (name !== undefined) writeFileSync(recordPath(home), `${name}\n`);
}
