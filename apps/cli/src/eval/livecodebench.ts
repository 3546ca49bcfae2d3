import { inflateSync } from 'node:zlib';
import { parseExactJson } from '@etude/contracts/json';
import { z } from 'zod';
import { judgedProblem, type Problem, programLimits, type RefusedProblem } from './problems.js';

const Test = z.object({ input: z.string(), output: z.string(), testtype: z.enum(['stdin', 'functional']) });
type Test = z.infer<typeof Test> & { readonly public: boolean };
const Tests = z.array(Test);
const Metadata = z.looseObject({ func_name: z.string().nullish() });

/** One line of LiveCodeBench's test.jsonl (data set livecodebench/code_generation_lite). Tests and metadata are strings of JSON. */
const Entry = z.object({
  question_id: z.string().min(1),
  question_title: z.string(),
  question_content: z.string().min(1),
  starter_code: z.string().default(''),
  public_test_cases: z.union([z.string(), Tests]),
  private_test_cases: z.union([z.string(), Tests]),
  metadata: z.union([z.string(), Metadata]).default('{}'),
});
type Entry = z.infer<typeof Entry>;

const UNPACKED_MAX_BYTES = 512 * 1024 * 1024;

export function liveCodeBenchProblem(json: unknown): Problem | RefusedProblem {
  const entry = Entry.parse(json);
  return judgedProblem(entry.question_id, () => {
    const tests = testsOf(entry);
    const kinds = new Set(tests.map(({ testtype }) => testtype));
    if (kinds.size !== 1)
      throw new Error(kinds.size === 0 ? 'it has no tests' : 'it mixes stdin tests and functional tests; only one kind is supported');
    return kinds.has('stdin') ? programSpec(entry, tests) : functionSpec(entry, tests);
  });
}

function testsOf({ public_test_cases, private_test_cases }: Entry): Test[] {
  const of = (name: string, given: Entry['public_test_cases'], isPublic: boolean) => {
    try {
      const tests = typeof given === 'string' ? Tests.parse(JSON.parse(unpacked(given) || '[]')) : given;
      return tests.map((test) => ({ ...test, public: isPublic }));
    } catch (error) {
      throw new Error(`${name} can't be read: ${(error as Error).message}`, { cause: error });
    }
  };
  return [...of('public_test_cases', public_test_cases, true), ...of('private_test_cases', private_test_cases, false)];
}

/** Private tests are JSON, or a JSON text that was pickled, compressed by zlib and encoded in base64. */
function unpacked(text: string): string {
  if (text === '' || /^\s*\[/.test(text)) return text;
  return unpickledText(inflateSync(Buffer.from(text, 'base64'), { maxOutputLength: UNPACKED_MAX_BYTES }));
}

function programSpec({ question_title, question_content }: Entry, tests: readonly Test[]): object {
  const cases = tests.map(({ input, output, public: isPublic }) => ({ stdin: input, expectedStdout: output, public: isPublic }));
  const ioCases = { cases, comparison: 'COMPARISON_NUMERIC', tolerance: NO_TOLERANCE };
  return { prompt: `# ${question_title}\n\n${question_content}`, limits: programLimits(cases, {}), evaluator: { ioCases } };
}

/** LiveCodeBench compares numbers without any tolerance. The least tolerance is sent, because 0 means the default. */
const NO_TOLERANCE = Number.MIN_VALUE;

function functionSpec({ question_content, starter_code, metadata }: Entry, tests: readonly Test[]): object {
  const { func_name: entryPoint } = typeof metadata === 'string' ? Metadata.parse(JSON.parse(metadata || '{}')) : metadata;
  const stub = functionOf(starter_code);
  if (!entryPoint || !stub.includes(`def ${entryPoint}(`))
    throw new Error("starter_code does not define the function that metadata's func_name names");
  const cases = tests.map(({ input, output, public: isPublic }) => ({
    args: input.split('\n').map(parseExactJson),
    expected: parseExactJson(output),
    public: isPublic,
  }));
  return {
    prompt: `${question_content}\n\nAnswer with this function at the top level, not in a class, and with its imports:\n\n${stub}`,
    evaluator: { functionCases: { entryPoint, cases, tolerance: NO_TOLERANCE } },
  };
}

/** The method of `class Solution` as a function. */
function functionOf(starter: string): string {
  const lines = starter.split('\n').filter((line) => !/^class \w+.*:\s*$/.test(line));
  const indent = /^[ \t]*(?=def )/m.exec(lines.join('\n'))?.[0] ?? '';
  return lines
    .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line))
    .join('\n')
    .replaceAll(/\(self(?:,\s*)?/g, '(')
    .trimEnd();
}

/** Opcodes before or after a text, with the size of their argument in bytes: PROTO, FRAME, MEMOIZE, BINPUT, LONG_BINPUT. */
const PASSED_OVER: Readonly<Record<number, number>> = { 0x80: 1, 0x95: 8, 0x94: 0, 0x71: 1, 0x72: 4 };
/** Opcodes of a text, with the size of its length field in bytes: SHORT_BINUNICODE, BINUNICODE, BINUNICODE8. */
const TEXTS: Readonly<Record<number, number>> = { 0x8c: 1, 0x58: 4, 0x8d: 8 };
const STOP = 0x2e;

/**
 * Reads the text in a Python pickle of protocol 2 to 5, without running any code. Python's pickletools.py describes the format.
 * @throws Error for any other pickle
 */
function unpickledText(pickle: Buffer): string {
  let text: string | null = null;
  for (let at = 0; at < pickle.length;) {
    const code = pickle[at++]!;
    const passed = PASSED_OVER[code];
    const lengthBytes = TEXTS[code];
    if (code === STOP && text !== null) return text;
    if (passed !== undefined) at += passed;
    else if (lengthBytes !== undefined && text === null) {
      // `readUIntLE` reads at most six bytes, which is enough for any file.
      const start = at + lengthBytes;
      const end = start + pickle.subarray(0, start).readUIntLE(at, Math.min(6, lengthBytes));
      text = pickle.toString('utf8', start, end);
      at = end;
    } else break;
  }
  throw new Error('it is a pickle of something other than one text. Pickles are never run. Decode it to JSON in Python first');
}
