import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { SENTENCE_MODEL } from '@etude/contracts/embedder-names';
import type { Cli } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { memoryPath } from '../home/home.js';

type Where = Pick<Cli, 'settings' | 'home' | 'root'>;

/** Where the sentence model's files are, or would be. */
export const embedderFolder = ({ settings: { environment }, root }: Pick<Where, 'settings' | 'root'>): string =>
  resolve(root, environment['ETUDE_EMBEDDER_PATH'] || '.etude/cache/embedder');

/** By their length alone, which takes no time. */
export const isFetched = (folder: string): boolean =>
  SENTENCE_MODEL.files.every(({ name, bytes }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size === bytes);

const BUILT_IN = ['sentence', 'lexical'] as const;
export type BuiltIn = (typeof BUILT_IN)[number];

/** What the services of one stack make vectors with. They share one memory, so it is chosen once for all of them. */
export interface EmbedderChoice {
  /** null: the model of a server, which the environment names. */
  readonly builtIn: BuiltIn | null;
  /** Of a server; '' where it is built in. */
  readonly model: string;
  /** In words, for people. */
  readonly state: string;
  /** What the choice costs, and what to do about it; '' for nothing. */
  readonly cost: string;
  readonly fix: string;
}

const FETCH = './etude embedder fetch';

const recordPath = (home: string) => join(home, 'embedder');
const isBuiltIn = (name: string | null): name is BuiltIn => BUILT_IN.some((known) => known === name);

/** What this stack's memory is searched with: an embedder that is built in, or a model of a server; null where there is none yet. */
export function recordedEmbedder(home: string): string | null {
  if (!existsSync(recordPath(home))) return existsSync(memoryPath(home)) ? 'lexical' : null;
  const [name = '', model = ''] = readFileSync(recordPath(home), 'utf8').trim().split(' ', 2);
  return name === 'server' ? model : name;
}

/** To be called where memory is about to be made, was moved to another embedder, or works with this one. */
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
 * The environment first, then what memory was made with, then the best that is here.
 *
 * @throws CliError where the sentence model is wanted and not here, or ETUDE_EMBEDDER names none
 */
export function chooseEmbedder(cli: Where): EmbedderChoice {
  const { ETUDE_EMBEDDING_MODEL: model, ETUDE_EMBEDDER } = cli.settings.environment;
  if (model) return { builtIn: null, model, state: `${model} of a server`, cost: '', fix: '' };
  const asked = ETUDE_EMBEDDER && ETUDE_EMBEDDER !== 'auto' ? ETUDE_EMBEDDER : null;
  if (asked !== null && !isBuiltIn(asked)) throw new CliError(EXIT.usage, `ETUDE_EMBEDDER is ${asked}; it is auto, sentence or lexical`);
  const folder = embedderFolder(cli);
  const wanted = asked ?? recordedEmbedder(cli.home);
  if (wanted !== null && !isBuiltIn(wanted))
    throw new CliError(EXIT.usage, `the memory in ${cli.home} is searched with ${wanted}, and ETUDE_EMBEDDING_MODEL names none`, [
      'set ETUDE_EMBEDDING_MODEL and the server as they were, or ETUDE_EMBEDDER where memory has its vectors',
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
  throw new CliError(EXIT.unavailable, `memory or ETUDE_EMBEDDER wants the sentence model, whose files are not in ${folder}`, [
    FETCH,
    'or, where memory has vectors of it: ETUDE_EMBEDDER=lexical ./etude up',
  ]);
}

/** What every service of the stack is told, so that none of them chooses for itself. */
export function embedderEnvironment(cli: Where, { builtIn }: EmbedderChoice): Record<string, string> {
  return builtIn === null ? {} : { ETUDE_EMBEDDER: builtIn, ETUDE_EMBEDDER_PATH: embedderFolder(cli) };
}

export interface SettledEmbedder {
  /** Of the services. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** To be called once memory was opened with it: the next start takes the same. */
  readonly worked: () => void;
}

/** Chooses, says so, and remembers it for the memory that is about to be made. */
export function settleEmbedder(cli: Where & Pick<Cli, 'out'>): SettledEmbedder {
  const choice = chooseEmbedder(cli);
  if (recordedEmbedder(cli.home) === null) recordEmbedder(cli.home, choice);
  if (choice.fix !== '') cli.out.note(`embedder: ${choice.state}: ${choice.cost}. To change it: ${choice.fix}`);
  return {
    environment: { ...cli.settings.environment, ...embedderEnvironment(cli, choice) },
    worked: () => recordEmbedder(cli.home, choice),
  };
}
