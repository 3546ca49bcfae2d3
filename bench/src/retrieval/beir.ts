import { EtudeError } from '@etude/contracts/errors';
import { z } from 'zod';

// BEIR's format (Thakur et al. 2021): a line of JSON per document and query, relevance as tab-separated lines.
const Document = z.object({ _id: z.string().min(1), title: z.string().default(''), text: z.string() });
const Query = z.object({ _id: z.string().min(1), text: z.string().min(1) });

export interface BeirDocument {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

export interface BeirQuery {
  readonly id: string;
  readonly text: string;
}

/** The judgement of a document. A grade of 0 or less means "not relevant". */
export interface BeirJudgement {
  readonly query: string;
  readonly document: string;
  readonly grade: number;
}

/** A line of a file, for messages; from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
}

/** @throws EtudeError INVALID_ARGUMENT with file and line */
export function parseDocumentLine(line: string, place: Place): BeirDocument {
  const { _id: id, title, text } = parsed(Document, line, place);
  return { id, title, text };
}

/** @throws EtudeError INVALID_ARGUMENT with file and line */
export function parseQueryLine(line: string, place: Place): BeirQuery {
  const { _id: id, text } = parsed(Query, line, place);
  return { id, text };
}

/** null for the head line. @throws EtudeError INVALID_ARGUMENT with file and line */
export function parseJudgementLine(line: string, place: Place): BeirJudgement | null {
  const parts = line.split('\t');
  if (place.line === 1 && /^query-?id\tcorpus-?id\tscore$/i.test(line)) return null;
  const [query = '', document = '', grade = ''] = parts;
  if (parts.length !== 3 || query === '' || document === '') {
    throw wrong(place, `has ${parts.length} columns; query id, document id and grade are needed, separated by tabs`);
  }
  if (!/^-?\d+$/.test(grade)) throw wrong(place, `has the grade ${JSON.stringify(grade)}; it must be a whole number`);
  return { query, document, grade: Number(grade) };
}

function parsed<T>(schema: z.ZodType<T>, line: string, place: Place): T {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw wrong(place, `is not JSON: ${(error as Error).message}`);
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path = [], message = '' } = result.error.issues[0] ?? {};
  throw wrong(place, `${path.length > 0 ? `has a wrong ${JSON.stringify(path.join('.'))}` : 'is wrong'}: ${message}`);
}

function wrong({ file, line }: Place, what: string): EtudeError {
  return new EtudeError('INVALID_ARGUMENT', `${file}:${line} ${what}`);
}
