import type { JsonObject } from '@bufbuild/protobuf';
import { type SkillTestCase, SkillTestCaseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { CliError, EXIT } from '../errors.js';
import { messageOf, readJson, readText } from '../files.js';

const HINT = [
  'calls: [{"args": [2], "kwargs": {}, "expected": 4}, ...]',
  'programs: [{"stdin": "2\\n", "expected_stdout": "4\\n"}, ...]',
  'or a Python file with assertions that calls the skill by its name',
  'put tests that are run but never shown into another file: --held-out FILE',
];

/** Kinds of tests. Only tests of this kind have `field`. `usual` holds the defaults of missing fields. */
const KINDS: ReadonlyArray<{ readonly field: string; readonly kind: string; readonly usual: JsonObject }> = [
  { field: 'expected', kind: 'call', usual: { args: [], kwargs: {} } },
  { field: 'expected_stdout', kind: 'program', usual: { comparison: 'whitespace' } },
  { field: 'expectedStdout', kind: 'program', usual: { comparison: 'whitespace' } },
  { field: 'tests', kind: 'python', usual: {} },
];

/** Reads tests from a file: Python with assertions if its name ends in .py, else JSON. @throws CliError with the place of the error */
export function readTests(path: string): SkillTestCase[] {
  if (/\.py$/i.test(path)) return [testCase({ tests: withCalls(readText(path), path) }, path)];
  const json = readJson(path);
  const cases = Array.isArray(json) ? json : [json];
  if (cases.length === 0) throw new CliError(EXIT.usage, `${path} contains no test`, HINT);
  return cases.map((one: unknown, index) => testCase(one, `${path}[${index}]`));
}

/** Appends a call of each function test_… that is never called. @throws CliError if one is async or has parameters */
export function withCalls(code: string, path: string): string {
  const calls: string[] = [];
  for (const [, async = '', name = '', parameters = ''] of code.matchAll(/^(async )?def (test_\w*)\s*\(([^)]*)\)/gm)) {
    if ([...code.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].length > 1) continue;
    if (async !== '' || parameters.trim() !== '') {
      const message = `${path}: nothing calls ${name}; a test_… function is called automatically only if it is not async and has no parameters`;
      throw new CliError(EXIT.usage, message);
    }
    calls.push(`${name}()\n`);
  }
  return calls.length === 0 ? code : `${code.trimEnd()}\n\n${calls.join('')}`;
}

/** @param where place of the test, for messages */
export function testCase(given: unknown, where: string): SkillTestCase {
  const { kind: _kind, ...test } = (typeof given === 'object' && given !== null ? given : {}) as JsonObject;
  const found = KINDS.find(({ field }) => field in test);
  if (!found) throw new CliError(EXIT.usage, `${where} is not a test: it has neither "expected" nor "expected_stdout"`, HINT);
  return messageOf(SkillTestCaseSchema, { [found.kind]: { ...found.usual, ...test } }, where, HINT);
}
