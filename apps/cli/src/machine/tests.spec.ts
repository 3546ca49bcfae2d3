import { describe, expect, it } from 'vitest';
import { createCli, readSettings } from '../cli.js';
import { runTests, skippedFiles } from './tests.js';
import { outcomeOf } from './vitest-outcome.js';

const finding = (name: string, ok: boolean) => ({ name, ok });
const files = [
  'libs/queue/src/a.int.spec.ts',
  'libs/queue/src/a.spec.ts',
  'libs/sandbox/src/b.int.spec.ts',
  'test/flow/src/c.spec.ts',
  'libs/model/src/d.int.spec.ts',
  'test/cluster/src/e.spec.ts',
  'libs/memory/src/qdrant/f.int.spec.ts',
];

describe('tests that a machine can not run', () => {
  it('are none where everything is there', () => {
    expect(skippedFiles(files, [finding('redis-server', true), finding('bubblewrap', true)])).toEqual([]);
  });

  it('are those with real parts that are missing, each with the reason', () => {
    expect(skippedFiles(files, [finding('redis-server', false), finding('user namespaces', true)])).toEqual([
      { what: 'libs/queue/src/a.int.spec.ts', why: 'needs redis-server' },
      { what: 'test/flow/src/c.spec.ts', why: 'needs redis-server' },
    ]);
    expect(skippedFiles(files, [finding('user namespaces', false)]).map(({ what }) => what)).toEqual([
      'libs/sandbox/src/b.int.spec.ts',
      'test/flow/src/c.spec.ts',
    ]);
    expect(skippedFiles(files, [finding('qdrant', false)]).map(({ what }) => what)).toEqual(['libs/memory/src/qdrant/f.int.spec.ts']);
  });
});

const test = (fullName: string, state: string, ...errors: { message: string }[]) => ({ fullName, result: () => ({ state, errors }) });

const file = (name: string, state: string, errors: { message: string }[], ...tests: ReturnType<typeof test>[]) => ({
  moduleId: `/checkout/${name}`,
  children: { allTests: () => tests },
  state: () => state,
  errors: () => errors,
});

it('names each test that failed, each file that failed outside of its tests, and each error that no test waited for', () => {
  const said = { message: 'it is 2\n    at somewhere' };
  const reported = [
    file('libs/a.spec.ts', 'failed', [], test('x is 1', 'failed', said), test('y', 'passed'), test('z', 'skipped')),
    file('b', 'failed', [{ message: 'no such module' }]),
    file('c', 'failed', [], test('y', 'passed')),
    file('d', 'passed', []),
  ];
  const stray = { message: 'nobody caught it\n    at somewhere' };
  expect(outcomeOf('/checkout', reported, [{ ...stray, VITEST_TEST_PATH: '/checkout/libs/d.spec.ts' }, stray])).toEqual({
    passed: 2,
    failed: [
      { what: 'libs/a.spec.ts: x is 1', why: 'it is 2' },
      { what: 'b', why: 'no such module' },
      { what: 'c', why: 'without a message' },
      { what: 'libs/d.spec.ts', why: 'outside of any test: nobody caught it' },
      { what: 'vitest', why: 'outside of any test: nobody caught it' },
    ],
    skipped: [{ what: 'libs/a.spec.ts: z', why: 'by the test itself' }],
  });
});

it('refuses a filter that no file fits', async () => {
  const cli = createCli(readSettings({}), { timeout: 30_000 }, new AbortController().signal);
  await expect(runTests(cli, ['libs/nothing'])).rejects.toMatchObject({ exit: 2, message: 'no test file has "libs/nothing" in its path' });
});
