import { statSync } from 'node:fs';
import { CliError, EXIT } from '../errors.js';
import { readBytes } from '../files.js';
import { FILE_MAX_BYTES, LINE_FORMATS, parseEntries, parseProblems, type Problem, type RefusedProblem, unpack } from './problems.js';
import { filesOfFolder, filesOfZip, kattisProblems } from './kattis.js';
import { liveCodeBenchProblem } from './livecodebench.js';
import { usacoProblems } from './usaco.js';

export const FORMATS = [...LINE_FORMATS, 'livecodebench', 'usaco', 'kattis'] as const;
export type Format = (typeof FORMATS)[number];

export interface ProblemSet {
  readonly problems: readonly Problem[];
  readonly refused: readonly RefusedProblem[];
}

/**
 * Reads a file or folder of problems. Everything is checked before anything is submitted.
 *
 * @param asked the format; undefined: the content tells it
 * @throws CliError for a file with an error, without problems, or of an unknown format
 */
export async function readProblemSet(path: string, asked?: Format): Promise<ProblemSet> {
  const all = await readAll(path, asked);
  if (all.length === 0) throw new CliError(EXIT.usage, `${path} has no problems`);
  return {
    problems: all.filter((one): one is Problem => 'spec' in one),
    refused: all.filter((one): one is RefusedProblem => 'refused' in one),
  };
}

/** The parts of a Kattis package that count for a task. */
const isWanted = (path: string) => !/(?:^|\/)(?:submissions|__MACOSX|\.git|input_(?:format_)?validators?)\//.test(path);

async function readAll(path: string, asked?: Format): Promise<ReadonlyArray<Problem | RefusedProblem>> {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return kattisProblems(filesOfFolder(path, isWanted), path);
  const bytes = readBytes(path, FILE_MAX_BYTES);
  const isZip = bytes.subarray(0, 4).toString('latin1') === 'PK\u0003\u0004';
  if (isZip) return kattisProblems(await filesOfZip(bytes, path, isWanted), path);
  const text = unpack(bytes, path);
  const format = asked ?? formatOf(text);
  if (format === null) throw new CliError(EXIT.usage, `the format of ${path} is unknown`, [`pass --format ${FORMATS.join('|')}`]);
  if (format === 'kattis') throw new CliError(EXIT.usage, `${path} is neither a Kattis package nor a zip of one`);
  if (format === 'usaco') return usacoProblems(jsonOf(text), path);
  return format === 'livecodebench' ? parseEntries(liveCodeBenchProblem, text, path) : parseProblems(format, text, path);
}

const MARKS = { livecodebench: 'question_content', humaneval: 'canonical_solution', mbpp: 'test_list', etude: 'evaluator' } as const;

/** Tells a format by the fields of the first entry. */
function formatOf(text: string): Format | null {
  const line = /\S.*/.exec(text)?.[0] ?? '';
  const parsed = jsonOf(line) ?? jsonOf(text);
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (typeof first !== 'object' || first === null) return null;
  const [inner] = Object.values(first) as unknown[];
  if (typeof inner === 'object' && inner !== null && 'problem_level' in inner) return 'usaco';
  return (Object.keys(MARKS) as Array<keyof typeof MARKS>).find((format) => MARKS[format] in first) ?? null;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
