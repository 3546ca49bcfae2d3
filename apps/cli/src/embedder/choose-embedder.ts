import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cli } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { memoryPath } from '../stack/home.js';
import { embedderFolder, isFetched } from './embedder-folder.js';

export const BUILT_IN = ['sentence', 'lexical'] as const;
export type BuiltIn = (typeof BUILT_IN)[number];

/** What the services of one stack make vectors with. They share one memory, so it is chosen once for all of them. */
export interface EmbedderChoice {
  /** null: the model of a server, which the environment names. */
  readonly builtIn: BuiltIn | null;
  /** In words, for people. */
  readonly state: string;
  /** What the choice costs, and what to do about it; '' for nothing. */
  readonly cost: string;
  readonly fix: string;
}

export const LEXICAL_COST = 'similar tasks are found by the words they share; the same wish in other words is mostly missed';
const FETCH = './etude embedder fetch';

const recordPath = (home: string) => join(home, 'embedder');
const isBuiltIn = (name: string | undefined): name is BuiltIn => BUILT_IN.some((known) => known === name);

/** What this stack's memory was made with; null where there is none yet. */
export function recordedEmbedder(home: string): BuiltIn | null {
  if (!existsSync(recordPath(home))) return existsSync(memoryPath(home)) ? 'lexical' : null;
  const name = readFileSync(recordPath(home), 'utf8').trim();
  return isBuiltIn(name) ? name : null;
}

/** To be called where memory has been made, or moved to another embedder. */
export function recordEmbedder(home: string, { builtIn }: Pick<EmbedderChoice, 'builtIn'>): void {
  mkdirSync(home, { recursive: true });
  writeFileSync(recordPath(home), `${builtIn ?? 'server'}\n`);
}

const lexical = (state: string, fix = ''): EmbedderChoice => ({ builtIn: 'lexical', state, cost: LEXICAL_COST, fix });
const sentence = (folder: string): EmbedderChoice => ({
  builtIn: 'sentence',
  state: `sentence, all-MiniLM-L6-v2 in ${folder}, works offline`,
  cost: '',
  fix: '',
});

/**
 * The environment first, then what memory was made with, then the best that is here.
 *
 * @throws CliError where the sentence model is wanted and not here, or ETUDE_EMBEDDER names none
 */
export function chooseEmbedder(cli: Pick<Cli, 'settings' | 'home' | 'root'>): EmbedderChoice {
  const { environment } = cli.settings;
  const { ETUDE_EMBEDDING_MODEL: model, ETUDE_EMBEDDER: asked = 'auto' } = environment;
  if (model) return { builtIn: null, state: `${model} of a server`, cost: '', fix: '' };
  if (asked !== 'auto' && asked !== '' && !isBuiltIn(asked))
    throw new CliError(EXIT.usage, `ETUDE_EMBEDDER is ${asked}; it is auto, sentence or lexical`);
  const folder = embedderFolder(cli);
  const fetched = isFetched(folder);
  const recorded = recordedEmbedder(cli.home);
  const wanted = isBuiltIn(asked) ? asked : recorded;
  if (wanted === 'sentence' && !fetched) {
    const why = asked === 'sentence' ? 'ETUDE_EMBEDDER is sentence' : `the memory in ${cli.home} was made with the sentence model`;
    throw new CliError(EXIT.unavailable, `${why}, whose files are not in ${folder}`, [FETCH]);
  }
  if (wanted === 'sentence') return sentence(folder);
  if (asked === 'lexical') return lexical('lexical, built in, works offline; ETUDE_EMBEDDER asks for it');
  if (wanted === 'lexical')
    return lexical('lexical, built in, works offline; memory here was made with it', `./etude memory reembed moves it to another`);
  return fetched ? sentence(folder) : lexical(`lexical, built in, works offline; the sentence model is not in ${folder}`, FETCH);
}

/** What every service of the stack is told, so that none of them chooses for itself. */
export function embedderEnvironment(cli: Pick<Cli, 'settings' | 'home' | 'root'>, { builtIn }: EmbedderChoice): Record<string, string> {
  return builtIn === null ? {} : { ETUDE_EMBEDDER: builtIn, ETUDE_EMBEDDER_PATH: embedderFolder(cli) };
}

/** Chooses, says so, remembers it for the memory that is about to be made, and answers the environment of the services. */
export function settleEmbedder(cli: Pick<Cli, 'settings' | 'home' | 'root' | 'out'>): Readonly<Record<string, string | undefined>> {
  const choice = chooseEmbedder(cli);
  if (recordedEmbedder(cli.home) === null) recordEmbedder(cli.home, choice);
  if (choice.builtIn === 'lexical' && choice.fix !== '')
    cli.out.note(`embedder: ${choice.state}: ${choice.cost}. To change it: ${choice.fix}`);
  return { ...cli.settings.environment, ...embedderEnvironment(cli, choice) };
}
