import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { SENTENCE_MODEL } from '@etude/contracts/embedder-names';
import type { Cli } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { memoryPath } from '../home/home.js';

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

export const BUILT_IN = ['sentence', 'lexical'] as const;
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

const LEXICAL_COST = 'similar tasks are found by the words they share; the same wish in other words is mostly missed';
const FETCH = './etude embedder fetch';

const recordPath = (home: string) => join(home, 'embedder');
const isBuiltIn = (name: string | undefined): name is BuiltIn => BUILT_IN.some((known) => known === name);

/** Before the name of a server's model. */
const SERVER = 'server';

/** What this stack's memory is searched with: an embedder that is built in, or a model of a server; null where there is none yet. */
export function recordedEmbedder(home: string): string | null {
  if (!existsSync(recordPath(home))) return existsSync(memoryPath(home)) ? 'lexical' : null;
  const [name = '', model = ''] = readFileSync(recordPath(home), 'utf8').trim().split(' ', 2);
  return name === SERVER ? model || 'a model of a server' : name;
}

/** To be called where memory is about to be made, was moved to another embedder, or works with this one. */
export function recordEmbedder(home: string, { builtIn, model }: Pick<EmbedderChoice, 'builtIn' | 'model'>): void {
  mkdirSync(home, { recursive: true });
  writeFileSync(recordPath(home), `${builtIn ?? `${SERVER} ${model}`}\n`);
}

const lexical = (state: string, fix = ''): EmbedderChoice => ({ builtIn: 'lexical', model: '', state, cost: LEXICAL_COST, fix });
const sentence = (folder: string): EmbedderChoice => ({
  builtIn: 'sentence',
  model: '',
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
  if (model) return { builtIn: null, model, state: `${model} of a server`, cost: '', fix: '' };
  if (asked !== 'auto' && asked !== '' && !isBuiltIn(asked))
    throw new CliError(EXIT.usage, `ETUDE_EMBEDDER is ${asked}; it is auto, sentence or lexical`);
  const folder = embedderFolder(cli);
  const fetched = isFetched(folder);
  const recorded = recordedEmbedder(cli.home);
  const wanted = isBuiltIn(asked) ? asked : recorded;
  if (wanted !== null && !isBuiltIn(wanted))
    throw new CliError(EXIT.usage, `the memory in ${cli.home} is searched with ${wanted}, and ETUDE_EMBEDDING_MODEL names none`, [
      'set ETUDE_EMBEDDING_MODEL and the server as they were',
      'or, where memory has its vectors: ETUDE_EMBEDDER=sentence ./etude up',
    ]);
  if (wanted === 'sentence' && !fetched) {
    const why = asked === 'sentence' ? 'ETUDE_EMBEDDER is sentence' : `the memory in ${cli.home} was made with the sentence model`;
    throw new CliError(EXIT.unavailable, `${why}, whose files are not in ${folder}`, [
      FETCH,
      'or, where memory has vectors of it: ETUDE_EMBEDDER=lexical ./etude up',
    ]);
  }
  if (wanted === 'sentence') return sentence(folder);
  if (asked === 'lexical') return lexical('lexical, built in, works offline; ETUDE_EMBEDDER asks for it');
  if (wanted === 'lexical')
    return lexical(
      'lexical, built in, works offline; memory here was made with it',
      `./etude memory reembed --to sentence; what comes then is in docs/embeddings.md, "Moving to another embedder"`,
    );
  return fetched ? sentence(folder) : lexical(`lexical, built in, works offline; the sentence model is not in ${folder}`, FETCH);
}

/** What every service of the stack is told, so that none of them chooses for itself. */
export function embedderEnvironment(cli: Pick<Cli, 'settings' | 'home' | 'root'>, { builtIn }: EmbedderChoice): Record<string, string> {
  return builtIn === null ? {} : { ETUDE_EMBEDDER: builtIn, ETUDE_EMBEDDER_PATH: embedderFolder(cli) };
}

export interface SettledEmbedder {
  /** Of the services. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** To be called once memory was opened with it: the next start takes the same. */
  readonly worked: () => void;
}

/** Chooses, says so, and remembers it for the memory that is about to be made. */
export function settleEmbedder(cli: Pick<Cli, 'settings' | 'home' | 'root' | 'out'>): SettledEmbedder {
  const choice = chooseEmbedder(cli);
  if (recordedEmbedder(cli.home) === null) recordEmbedder(cli.home, choice);
  if (choice.builtIn === 'lexical' && choice.fix !== '')
    cli.out.note(`embedder: ${choice.state}: ${choice.cost}. To change it: ${choice.fix}`);
  return {
    environment: { ...cli.settings.environment, ...embedderEnvironment(cli, choice) },
    worked: () => recordEmbedder(cli.home, choice),
  };
}
