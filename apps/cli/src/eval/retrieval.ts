import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Cli } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { runBench } from '../machine/bench.js';

export interface RetrievalOptions {
  readonly format: 'beir';
  readonly adapter: string;
  readonly embedder?: string;
  readonly half: string;
  readonly sweep?: boolean;
}

/**
 * `etude eval retrieval`: nDCG@10 and recall@100 over sets in BEIR's format; without a folder, over the generated ones. In a
 * process of its own: the command line knows no database and no model.
 */
export async function evalRetrieval(cli: Cli, dirs: readonly string[], options: RetrievalOptions): Promise<number> {
  const missing = dirs.find((dir) => !existsSync(join(dir, 'corpus.jsonl')));
  if (missing !== undefined) {
    throw new CliError(EXIT.notFound, `${missing} is no set in BEIR's format: it has no corpus.jsonl`, [
      'a set is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv',
    ]);
  }
  return runBench(cli, 'retrieval', retrievalArgs(dirs, options));
}

export function retrievalArgs(dirs: readonly string[], { adapter, embedder, half, sweep }: RetrievalOptions): string[] {
  const chosen = embedder === undefined ? [] : ['--embedder', embedder];
  return ['--adapter', adapter, ...chosen, '--half', half, ...(sweep ? ['--sweep'] : []), ...dirs.map((dir) => resolve(dir))];
}
