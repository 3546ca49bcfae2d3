import { describe, expect, it } from 'vitest';
import { createCli, readSettings } from '../cli.js';
import { failures, runTests, skippedFiles } from './tests.js';

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
  startTime: 0,
  endTime: 0,
  assertionResults,
});

describe('failures', () => {
  it('are named by file and test, with the first line of what each said', () => {
    const said = 'Error: it is 2\n    at somewhere';
    const testResults = [
      file('libs/a.spec.ts', 'failed', '', assertion('x is 1', 'failed', said), assertion('y', 'passed')),
      file('b', 'passed', ''),
    ];
    expect(failures('/checkout', { numPassedTests: 3, testResults })).toEqual([{ what: 'libs/a.spec.ts: x is 1', why: 'Error: it is 2' }]);
  });

  it('are also files that could not be loaded or that failed outside of their tests', () => {
    const testResults = [file('a', 'failed', 'no such module'), file('b', 'failed', '', assertion('y', 'passed'))];
    expect(failures('/checkout', { numPassedTests: 3, testResults })).toEqual([
      { what: 'a', why: 'no such module' },
      { what: 'b', why: 'without a message' },
    ]);
  });
});

it('refuses a filter that no file fits', async () => {
  const cli = createCli(readSettings({}), { timeout: 30_000 }, new AbortController().signal);
  await expect(runTests(cli, ['libs/nothing'])).rejects.toMatchObject({ exit: 2, message: 'no test file has "libs/nothing" in its path' });
});
