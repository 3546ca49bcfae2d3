import { describe, expect, it } from 'vitest';
import { createCli, readSettings } from '../cli.js';
import { outcomeOf, runTests, skippedFiles } from './tests.js';

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

const assertion = (fullName: string, status: string, ...failureMessages: string[]) => ({ fullName, status, failureMessages });

const file = (name: string, status: string, message: string, ...assertionResults: ReturnType<typeof assertion>[]) => ({
  name: `/checkout/${name}`,
  status,
  message,
  assertionResults,
});

it('names each test that failed, and each file that failed outside of its tests', () => {
  const said = 'Error: it is 2\n    at somewhere';
  const testResults = [
    file('libs/a.spec.ts', 'failed', '', assertion('x is 1', 'failed', said), assertion('y', 'passed'), assertion('z', 'skipped')),
    file('b', 'failed', 'no such module'),
    file('c', 'failed', '', assertion('y', 'passed')),
    file('d', 'passed', ''),
  ];
  expect(outcomeOf('/checkout', { numPassedTests: 3, testResults })).toEqual({
    passed: 3,
    failed: [
      { what: 'libs/a.spec.ts: x is 1', why: 'Error: it is 2' },
      { what: 'b', why: 'no such module' },
      { what: 'c', why: 'without a message' },
    ],
    skipped: [{ what: 'libs/a.spec.ts: z', why: 'by the test itself' }],
  });
});

it('refuses a filter that no file fits', async () => {
  const cli = createCli(readSettings({}), { timeout: 30_000 }, new AbortController().signal);
  await expect(runTests(cli, ['libs/nothing'])).rejects.toMatchObject({ exit: 2, message: 'no test file has "libs/nothing" in its path' });
});
