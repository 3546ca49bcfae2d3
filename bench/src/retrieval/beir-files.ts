import { createReadStream, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { EtudeError } from '@etude/contracts/errors';
import { type BeirDocument, type Place, parseDocumentLine, parseJudgementLine, parseQueryLine } from './beir.js';
import type { Relevance } from './metrics.js';
import type { Origin, TestSet } from './test-set.js';

const CORPUS = 'corpus.jsonl';
const QUERIES = 'queries.jsonl';
const JUDGEMENTS = join('qrels', 'test.tsv');

export interface JudgedQuery {
  readonly id: string;
  readonly text: string;
  readonly relevance: Relevance;
}

/** Every document, one after the other. @throws EtudeError INVALID_ARGUMENT with file and line, also for a repeated id */
export async function* readCorpus(dir: string): AsyncIterable<BeirDocument> {
  const seen = new Set<string>();
  for await (const [line, place] of linesOf(join(dir, CORPUS))) {
    const document = parseDocumentLine(line, place);
    requireNew(seen, document.id, place);
    yield document;
  }
}

/** Queries that were judged, in the file's order. @throws EtudeError INVALID_ARGUMENT */
export async function readQueries(dir: string): Promise<JudgedQuery[]> {
  const judgements = new Map<string, Map<string, number>>();
  for await (const [line, place] of linesOf(join(dir, JUDGEMENTS))) {
    const judgement = parseJudgementLine(line, place);
    if (!judgement) continue;
    const { query, document, grade } = judgement;
    judgements.set(query, (judgements.get(query) ?? new Map<string, number>()).set(document, grade));
  }
  const queries: JudgedQuery[] = [];
  const seen = new Set<string>();
  for await (const [line, place] of linesOf(join(dir, QUERIES))) {
    const { id, text } = parseQueryLine(line, place);
    requireNew(seen, id, place);
    const relevance = judgements.get(id);
    if (relevance) queries.push({ id, text, relevance });
  }
  const unknown = [...judgements.keys()].find((id) => !seen.has(id));
  if (unknown !== undefined) {
    throw new EtudeError(
      'INVALID_ARGUMENT',
      `${join(dir, JUDGEMENTS)} judges query ${JSON.stringify(unknown)}, which is not in ${QUERIES}`,
    );
  }
  if (queries.length === 0) throw new EtudeError('INVALID_ARGUMENT', `${dir} has no query that was judged`);
  return queries;
}

/** Writes a set, whole or not at all. ORIGIN.md in the folder names its source. */
export function writeBeir(dir: string, set: TestSet, { name, description, source, licence }: Origin): void {
  const partial = `${dir}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(join(partial, 'qrels'), { recursive: true });
  const write = (file: string, lines: readonly string[]) => writeFileSync(join(partial, file), lines.map((line) => `${line}\n`).join(''));
  write(
    CORPUS,
    set.documents.map(({ id, title, text }) => JSON.stringify({ _id: id, title, text })),
  );
  write(
    QUERIES,
    set.queries.map(({ id, text }) => JSON.stringify({ _id: id, text })),
  );
  write(JUDGEMENTS, ['query-id\tcorpus-id\tscore', ...set.judgements.map((one) => `${one.query}\t${one.document}\t${one.grade}`)]);
  const counts = `${set.documents.length} documents, ${set.queries.length} queries, ${set.judgements.length} judgements`;
  write('ORIGIN.md', [`# ${name}`, '', description, '', `- Source: ${source}`, `- Licence: ${licence}`, `- ${counts}`]);
  rmSync(dir, { recursive: true, force: true });
  renameSync(partial, dir);
}

function requireNew(seen: Set<string>, id: string, { file, line }: Place): void {
  if (seen.has(id)) throw new EtudeError('INVALID_ARGUMENT', `${file}:${line} has the id ${JSON.stringify(id)} a second time`);
  seen.add(id);
}

async function* linesOf(file: string): AsyncIterable<[string, Place]> {
  if (!existsSync(file)) {
    throw new EtudeError('NOT_FOUND', `there is no ${file}; a BEIR folder has ${CORPUS}, ${QUERIES} and ${JUDGEMENTS}`);
  }
  let line = 0;
  for await (const text of createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY })) {
    line += 1;
    if (text.trim() !== '') yield [text, { file, line }];
  }
}
