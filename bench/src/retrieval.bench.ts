import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { type Half, halfOf } from './retrieval/metrics.js';
import type { Embedder } from '@etude/domain/ports/model';
import { embedderConfig, embedderFrom } from '@etude/model/model-config';
import { round, summaryLine } from './figures.js';
import { readCorpus, readQueries } from './retrieval/beir-files.js';
import { type Answer, askStore, fillStore } from './retrieval/candidates.js';
import { GENERATED_SETS, setFolder } from './retrieval/make-sets.js';
import { type Adapter, ADAPTERS, openFreshStore } from './retrieval/open-store.js';
import { figuresOf, METHODS } from './retrieval/rankings.js';
import { sweepWeights } from './retrieval/sweep.js';
import { VectorCache } from './retrieval/vector-cache.js';

const CACHE = fileURLToPath(new URL('../../.etude/cache/retrieval', import.meta.url));
const EXIT_USAGE = 2;
const say = (text: string) => process.stderr.write(`${text}\n`);

interface Options {
  readonly adapter: Adapter;
  readonly embedder?: string;
  readonly half: Half | 'all';
  readonly sweep: boolean;
  readonly json: boolean;
}

/**
 * Measures search by vectors alone, by words alone, and by both as memory fuses them: `[--adapter sqlite|qdrant]
 * [--embedder sentence|lexical] [--half choose|report|all] [--sweep] [DIR...]`. A DIR holds a set in BEIR's format. Without a DIR,
 * the generated sets are used. Missing sets are made first.
 */
export async function run(args: readonly string[]): Promise<number> {
  try {
    return await measure(args);
  } catch (error) {
    if (errorCode(error) === 'INTERNAL') throw error;
    say(`error: ${(error as Error).message}`);
    return EXIT_USAGE;
  }
}

async function measure(args: readonly string[]): Promise<number> {
  const { positionals, options } = parsed(args);
  const embedder = await chosenEmbedder(options);
  const dirs = positionals.length > 0 ? positionals : await generated();
  const answers: Array<readonly [name: string, answers: readonly Answer[]]> = [];
  for (const dir of dirs) answers.push([basename(dir), await answersOf(dir, embedder, options.adapter)]);
  const { profile } = embedder;
  if (options.sweep) {
    const trials = sweepWeights(
      answers.map(([, of]) => of),
      profile,
    );
    for (const one of trials) say(`weight ${one.denseWeight}: margin ${round(one.margin, 4)}, mean nDCG@10 ${round(one.mean, 4)}`);
  }
  const figures: Record<string, number> = {};
  const rows = answers.map(([name, of]) => {
    const asked = of.filter(({ query }) => options.half === 'all' || halfOf(query.id) === options.half);
    const by = figuresOf(asked, profile);
    for (const method of METHODS) {
      figures[`${name}_ndcg10_${method}`] = round(by[method].ndcg10, 4);
      figures[`${name}_recall100_${method}`] = round(by[method].recall100, 4);
    }
    const cells = METHODS.map((method) => `${method} ${by[method].ndcg10.toFixed(4)} / ${by[method].recall100.toFixed(4)}`);
    return `${name} (${asked.length} queries): ${cells.join(', ')}`;
  });
  for (const method of METHODS) figures[`ndcg10_${method}`] = meanOf(figures, `_ndcg10_${method}`);
  if (!options.json)
    process.stdout.write(
      `${profile.model} (dense weight ${profile.denseWeight}) on ${options.adapter}, nDCG@10 / recall@100\n${rows.join('\n')}\n`,
    );
  process.stdout.write(`${summaryLine('retrieval', figures)}\n`);
  return 0;
}

function parsed(args: readonly string[]): { positionals: readonly string[]; options: Options } {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      adapter: { type: 'string', default: 'sqlite' },
      embedder: { type: 'string' },
      half: { type: 'string', default: 'all' },
      sweep: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const adapter = ADAPTERS.find((known) => known === values.adapter);
  const half = (['choose', 'report', 'all'] as const).find((known) => known === values.half);
  if (!adapter) throw new EtudeError('INVALID_ARGUMENT', `--adapter ${values.adapter}: must be ${ADAPTERS.join(' or ')}`);
  if (!half) throw new EtudeError('INVALID_ARGUMENT', `--half ${values.half}: must be choose, report or all`);
  return { positionals, options: { ...values, adapter, half } };
}

/** The embedder that a service would choose. Its vectors are kept between runs. */
async function chosenEmbedder({ embedder }: Options): Promise<Embedder> {
  const named = embedder === undefined ? {} : { ETUDE_EMBEDDER: embedder };
  const config = embedderConfig.parse({ ...process.env, ...named, ETUDE_EMBEDDING_CACHE_MAX_BYTES: '0' });
  return new VectorCache(await embedderFrom(config, { warn: say }), CACHE);
}

async function generated(): Promise<string[]> {
  const dirs: string[] = [];
  for (const set of GENERATED_SETS) dirs.push(await setFolder(set, CACHE));
  return dirs;
}

async function answersOf(dir: string, embedder: Embedder, adapter: Adapter): Promise<Answer[]> {
  const queries = await readQueries(dir);
  const { store, drop } = await openFreshStore(adapter, embedder.profile);
  try {
    const documents = await fillStore(store, embedder, readCorpus(dir));
    say(`${basename(dir)}: ${documents} documents, ${queries.length} queries`);
    return await askStore(store, embedder, queries);
  } finally {
    await drop();
  }
}

function meanOf(figures: Readonly<Record<string, number>>, ending: string): number {
  const values = Object.entries(figures).flatMap(([name, value]) => (name.endsWith(ending) ? [value] : []));
  return round(values.reduce((sum, value) => sum + value, 0) / values.length, 4);
}
