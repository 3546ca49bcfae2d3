import { describe, expect, it } from 'vitest';
import { createCli } from '../cli.js';
import { readSettings } from '../settings.js';
import type { Finding } from './inspect-machine.js';
import { count, runTests, skippedFiles } from './run-tests.js';

const finding = (name: string, ok: boolean): Finding => ({ name, ok, needed: true, state: '', cost: '', fix: '' });
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

describe('count', () => {
  const report = { numPassedTests: 3, numFailedTests: 1, numPendingTests: 1, numTodoTests: 1 };
  const failed = { name: 'a', status: 'failed', message: '', assertionResults: [{ fullName: 'x', status: 'failed' }] };

  it('adds skipped files to skipped tests', () => {
    expect(count({ ...report, testResults: [failed] }, [{ what: 'f', why: 'w' }])).toEqual({ passed: 3, failed: 1, skipped: 3 });
  });

  it('counts a file that could not be loaded as a failure', () => {
    const unloaded = { name: 'b', status: 'failed', message: 'no such module', assertionResults: [] };
    expect(count({ ...report, testResults: [failed, unloaded] }, []).failed).toBe(2);
  });
});

it('refuses a filter that no file fits', async () => {
  const cli = createCli(readSettings({}), { timeout: 30 }, new AbortController().signal);
  await expect(runTests(cli, ['libs/nothing'])).rejects.toMatchObject({ exit: 2, message: 'no test file has "libs/nothing" in its path' });
});
