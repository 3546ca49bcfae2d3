import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { SENTENCE_MODEL } from '@etude/contracts/embedder-names';
import type { Cli } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { memoryPath } from '../home/home.js';

type Where = Pick<Cli, 'settings' | 'home' | 'root'>;

/** Folder of the sentence model's files, whether or not they are there. */
export const embedderFolder = ({ settings: { environment }, root }: Pick<Where, 'settings' | 'root'>): string =>
  resolve(root, environment['ETUDE_EMBEDDER_PATH'] || '.etude/cache/embedder');

/** Whether all files of the sentence model are there. Only sizes are compared, which is quick. */
export const isFetched = (folder: string): boolean =>
  SENTENCE_MODEL.files.every(({ name, bytes }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size === bytes);

const BUILT_IN = ['sentence', 'lexical'] as const;
export type BuiltIn = (typeof BUILT_IN)[number];

/** The embedder of one stack. Its services share one memory, so one choice holds for all of them. */
export interface EmbedderChoice {
  /** null if the environment names the model of a server instead. */
  readonly builtIn: BuiltIn | null;
  /** Name of the server's model; '' for a built-in embedder. */
  readonly model: string;
  /** The choice and its reason, in words for people. */
  readonly state: string;
  /** Drawback of the choice; '' for none. `fix` says how to get rid of it; '' if there is no need or no way. */
  readonly cost: string;
  readonly fix: string;
}

const FETCH = './etude embedder fetch';

const recordPath = (home: string) => join(home, 'embedder');
const isBuiltIn = (name: string | null): name is BuiltIn => BUILT_IN.some((known) => known === name);

/** The built-in embedder or server's model that this stack's memory is searched with; null if there is no memory yet. */
export function recordedEmbedder(home: string): string | null {
  if (!existsSync(recordPath(home))) return existsSync(memoryPath(home)) ? 'lexical' : null;
  const [name = '', model = ''] = readFileSync(recordPath(home), 'utf8').trim().split(' ', 2);
  return name === 'server' ? model : name;
}

/** Call it before memory is made, after memory moved to another embedder, and once memory works with this one. */
export function recordEmbedder(home: string, { builtIn, model }: Pick<EmbedderChoice, 'builtIn' | 'model'>): void {
  mkdirSync(home, { recursive: true });
  writeFileSync(recordPath(home), `${builtIn ?? `server ${model}`}\n`);
}

const chosen = (builtIn: BuiltIn, why: string, fix = ''): EmbedderChoice => ({
  builtIn,
  model: '',
  state: `${builtIn}, works offline; ${why}`,
  cost: builtIn === 'sentence' ? '' : 'similar tasks are found by the words they share; the same wish in other words is mostly missed',
  fix,
});

/**
 * Chooses the embedder that the environment names, else the one that memory was made with, else the best one installed.
 *
 * @throws CliError if the wanted model is not available here, or ETUDE_EMBEDDER has an unknown value
 */
export function chooseEmbedder(cli: Where): EmbedderChoice {
  const { ETUDE_EMBEDDING_MODEL: model, ETUDE_EMBEDDER } = cli.settings.environment;
  if (model) return { builtIn: null, model, state: `${model} of a server`, cost: '', fix: '' };
  const asked = ETUDE_EMBEDDER && ETUDE_EMBEDDER !== 'auto' ? ETUDE_EMBEDDER : null;
  if (asked !== null && !isBuiltIn(asked)) throw new CliError(EXIT.usage, `ETUDE_EMBEDDER is ${asked}; it is auto, sentence or lexical`);
  const folder = embedderFolder(cli);
  const wanted = asked ?? recordedEmbedder(cli.home);
  if (wanted !== null && !isBuiltIn(wanted))
    throw new CliError(EXIT.usage, `the memory in ${cli.home} uses the embedding model ${wanted}, but ETUDE_EMBEDDING_MODEL is not set`, [
      'set ETUDE_EMBEDDING_MODEL and the server as before, or ETUDE_EMBEDDER to a model whose vectors memory has',
    ]);
  if (wanted === 'lexical' && asked === null)
    return chosen(
      'lexical',
      'memory here was made with it',
      './etude memory reembed --to sentence; docs/embeddings.md says what comes then',
    );
  if (wanted === 'lexical') return chosen('lexical', 'ETUDE_EMBEDDER asks for it');
  if (isFetched(folder)) return chosen('sentence', `its files are in ${folder}`);
  if (wanted === null) return chosen('lexical', `the sentence model is not in ${folder}`, FETCH);
  throw new CliError(EXIT.unavailable, `memory or ETUDE_EMBEDDER needs the sentence model, but its files are not in ${folder}`, [
    FETCH,
    'or, if memory has lexical vectors: ETUDE_EMBEDDER=lexical ./etude up',
  ]);
}

/** Variables that tell every service of the stack the choice, so that none chooses for itself. */
export function embedderEnvironment(cli: Where, { builtIn }: EmbedderChoice): Record<string, string> {
  return builtIn === null ? {} : { ETUDE_EMBEDDER: builtIn, ETUDE_EMBEDDER_PATH: embedderFolder(cli) };
}

export interface SettledEmbedder {
  /** Environment of the services. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Call it once memory was opened with this embedder. The next start then uses the same one. */
  readonly worked: () => void;
}

/** Chooses the embedder, and records it if there is no memory yet. If a better choice is possible, a note says how to make it. */
export function settleEmbedder(cli: Where & Pick<Cli, 'out'>): SettledEmbedder {
  const choice = chooseEmbedder(cli);
  if (recordedEmbedder(cli.home) === null) recordEmbedder(cli.home, choice);
  if (choice.fix !== '') cli.out.note(`embedder: ${choice.state}: ${choice.cost}. To change it: ${choice.fix}`);
  return {
    environment: { ...cli.settings.environment, ...embedderEnvironment(cli, choice) },
    worked: () => recordEmbedder(cli.home, choice),
  };
}
