import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { fromJson, type JsonObject } from '@bufbuild/protobuf';
import { TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { z } from 'zod';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { decodeUtf8, readBytes } from '../files.js';
import { HumanEvalLine, humanEvalProblem } from './humaneval.js';
import { MbppEntry, mbppProblem } from './mbpp.js';
import { badProblem, type Problem } from './problem.js';

export const FORMATS = ['humaneval', 'mbpp', 'etude'] as const;
export type Format = (typeof FORMATS)[number];

const FILE_MAX_BYTES = 512 * 1024 * 1024;

interface Entry {
  readonly where: string;
  readonly json: unknown;
}

export interface ProblemFile {
  readonly problems: readonly Problem[];
  /** SHA-256 of the file, hexadecimal; a resumed run must find the same. */
  readonly sha256: string;
}

function unpack(path: string): { text: string; sha256: string } {
  const bytes = readBytes(path, FILE_MAX_BYTES);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const zipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  try {
    return { text: decodeUtf8(zipped ? gunzipSync(bytes, { maxOutputLength: FILE_MAX_BYTES }) : bytes, path), sha256 };
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(EXIT.usage, `${path} can't be unpacked: ${(error as Error).message}`, [], { cause: error });
  }
}

function parseLine(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badProblem(where, `is not JSON: ${(error as Error).message}`);
  }
}

/** JSON lines, or one JSON array. Blank lines are skipped and counted. */
function entries(text: string): Entry[] {
  if (text.trimStart().startsWith('[')) {
    const list = parseLine(text, 'the file');
    return (list as unknown[]).map((json, i) => ({ where: `entry ${i + 1}`, json }));
  }
  return text.split('\n').flatMap((line, i) => (line.trim() ? [{ where: `line ${i + 1}`, json: parseLine(line, `line ${i + 1}`) }] : []));
}

function check<S extends z.ZodType>(schema: S, { where, json }: Entry): z.output<S> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw badProblem(where, `${issue?.path.join('.') || 'it'}: ${issue?.message ?? 'is wrong'}`);
}

/** A TaskSpec as proto JSON with an `id` beside its fields; without one its place in the file is its id. */
function ownProblem(entry: Entry): Problem {
  const { id, ...spec } = check(z.looseObject({ id: z.union([z.string().min(1), z.number()]).optional() }), entry);
  try {
    return { id: String(id ?? entry.where.replace(' ', '-')), spec: fromJson(TaskSpecSchema, spec as JsonObject) };
  } catch (error) {
    throw badProblem(entry.where, (error as Error).message);
  }
}

const READERS: Readonly<Record<Format, (entry: Entry) => Problem>> = {
  humaneval: (entry) => humanEvalProblem(check(HumanEvalLine, entry)),
  mbpp: (entry) => {
    const problem = mbppProblem(check(MbppEntry, entry));
    if (!problem) throw badProblem(entry.where, 'test_list calls no function that code defines');
    return problem;
  },
  etude: ownProblem,
};

/** Parses the text of a problem file. @throws CliError with the line that is wrong */
export function parseProblems(format: Format, text: string): Problem[] {
  const seen = new Map<string, string>();
  const problems = entries(text).map((entry) => {
    const problem = READERS[format](entry);
    const before = seen.get(problem.id);
    if (before) throw badProblem(entry.where, `has the id ${problem.id} of ${before}`);
    seen.set(problem.id, entry.where);
    return problem;
  });
  if (problems.length === 0) throw new CliError(EXIT.usage, 'the file has no problems');
  return problems;
}

/** Reads a problem file, gzipped or not. Everything is checked before anything is submitted. @throws CliError */
export function readProblems(format: Format, path: string): ProblemFile {
  const { text, sha256 } = unpack(path);
  try {
    return { problems: parseProblems(format, text), sha256 };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(error.exit, `${path}, ${error.message}`, error.hint, { cause: error });
  }
}
