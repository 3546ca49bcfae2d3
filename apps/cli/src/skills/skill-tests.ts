import { fromJson, type JsonObject, type JsonValue, type MessageInitShape } from '@bufbuild/protobuf';
import { ListValueSchema, ValueSchema } from '@bufbuild/protobuf/wkt';
import type { SkillTestCaseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { hasUnnameable, Json, UNNAMEABLE } from '@etude/contracts/json';
import { z } from 'zod';
import { CliError, EXIT } from '../errors.js';
import { readJson, readText } from '../files.js';

type TestCase = MessageInitShape<typeof SkillTestCaseSchema>;

const tolerance = z.number().min(0).default(0);
const Call = z.strictObject({
  kind: z.literal('call').optional(),
  args: z.array(Json).default([]),
  kwargs: z.record(z.string(), Json).default({}),
  expected: Json,
  tolerance,
});
const Program = z
  .strictObject({
    kind: z.literal('io').optional(),
    stdin: z.string().default(''),
    expected_stdout: z.string().optional(),
    expectedStdout: z.string().optional(),
    comparison: z.enum(['whitespace', 'exact', 'numeric']).optional(),
    tolerance,
  })
  .refine((test) => test.expected_stdout !== undefined || test.expectedStdout !== undefined, {
    path: ['expected_stdout'],
    error: 'is missing',
  });
const Python = z.strictObject({ kind: z.literal('python').optional(), setup: z.string().default(''), tests: z.string().min(1) });

const HINT = [
  'calls: [{"args": [2], "kwargs": {}, "expected": 4}, ...]',
  'programs: [{"stdin": "2\\n", "expected_stdout": "4\\n"}, ...]',
  'or a Python file with assertions, that calls the skill by its name',
];

/** Tests of a file: a list in JSON, or Python with assertions, by its name. @throws CliError that names what is wrong where */
export function readTests(path: string): TestCase[] {
  if (/\.py$/i.test(path)) return [pythonTest({ setup: '', tests: withCalls(readText(path), path) })];
  const json = readJson(path);
  const cases = Array.isArray(json) ? json : [json];
  if (cases.length === 0) throw new CliError(EXIT.usage, `${path} has no test in it`, HINT);
  return cases.map((one: unknown, index) => testCase(one, `${path}[${index}]`));
}

/** Functions test_… that nobody calls are called at the end, in their order: else nothing of them would run. @throws CliError */
export function withCalls(code: string, path: string): string {
  const calls: string[] = [];
  for (const [, async = '', name = '', parameters = ''] of code.matchAll(/^(async )?def (test_\w*)\s*\(([^)]*)\)/gm)) {
    const isCalled = [...code.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].length > 1;
    if (isCalled) continue;
    if (async !== '' || parameters.trim() !== '')
      throw new CliError(EXIT.usage, `${path}: nothing calls ${name}, which ${async === '' ? 'takes arguments' : 'is asynchronous'}`, [
        'what stands at the top level is run, and functions test_… without parameters; there is no pytest and there are no fixtures',
      ]);
    calls.push(`${name}()\n`);
  }
  return calls.length === 0 ? code : `${code.trimEnd()}\n\n${calls.join('')}`;
}

/** @param where it stands, for messages */
export function testCase(given: unknown, where: string): TestCase {
  const keys = typeof given === 'object' && given !== null ? Object.keys(given) : [];
  const mark = ['public', 'hidden', 'held_out', 'heldOut'].find((key) => keys.includes(key));
  if (mark !== undefined)
    throw new CliError(EXIT.usage, `${where}: ${mark}: a test of a skill has no such mark`, [
      'tests that are run and never shown go into a file of their own: --held-out FILE',
    ]);
  if (hasUnnameable((given as { readonly kwargs?: unknown } | null)?.kwargs))
    throw new CliError(EXIT.usage, `${where}: kwargs.${UNNAMEABLE}: is no name of an argument`, HINT);
  if (keys.includes('expected')) return callTest(parsed(Call, given, where));
  if (keys.includes('expected_stdout') || keys.includes('expectedStdout')) return programTest(parsed(Program, given, where));
  if (keys.includes('tests')) return pythonTest(parsed(Python, given, where));
  throw new CliError(EXIT.usage, `${where} is no test: it has neither "expected" nor "expected_stdout"`, HINT);
}

function parsed<S extends z.ZodType>(schema: S, given: unknown, where: string): z.output<S> {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new CliError(EXIT.usage, `${where}${issue === undefined ? '' : `: ${issue.path.join('.') || 'test'}: ${issue.message}`}`, HINT);
}

function callTest({ args, kwargs, expected, tolerance: within }: z.output<typeof Call>): TestCase {
  const value = {
    args: fromJson(ListValueSchema, args as JsonValue),
    kwargs: kwargs as JsonObject,
    expected: fromJson(ValueSchema, expected),
    tolerance: within,
  };
  return { test: { case: 'call', value } };
}

function programTest({ stdin, comparison = 'whitespace', tolerance: within, ...test }: z.output<typeof Program>): TestCase {
  const expectedStdout = test.expected_stdout ?? test.expectedStdout ?? '';
  return { test: { case: 'program', value: { stdin, expectedStdout, comparison, tolerance: within } } };
}

function pythonTest({ setup, tests }: Pick<z.output<typeof Python>, 'setup' | 'tests'>): TestCase {
  return { test: { case: 'python', value: { setup, tests } } };
}
