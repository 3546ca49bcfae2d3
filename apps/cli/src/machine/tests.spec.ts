import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { testFolder } from '@etude/test-support/test-folder';
import { createCli, readSettings, ROOT } from '../cli.js';
import { runTests, skippedFiles } from './tests.js';

const finding = (name: string, ok: boolean) => ({ name, ok });
const files = [
  'libs/queue/src/a.int.spec.ts',
  'libs/queue/src/a.spec.ts',
  'libs/sandbox/src/b.int.spec.ts',
  'test/flow/src/c.spec.ts',
  'libs/model/src/d.int.spec.ts',
  'test/cluster/src/e.spec.ts',
];

it('tests that a machine cannot run are those whose programs are missing, each with the reason', () => {
  expect(skippedFiles(files, [finding('redis-server', false), finding('user namespaces', true)])).toEqual([
    { what: 'libs/queue/src/a.int.spec.ts', why: 'needs redis-server' },
    { what: 'test/flow/src/c.spec.ts', why: 'needs redis-server' },
  ]);
  expect(skippedFiles(files, [finding('user namespaces', false)]).map(({ what }) => what)).toEqual([
    'libs/sandbox/src/b.int.spec.ts',
    'test/flow/src/c.spec.ts',
  ]);
});

const BROKEN = {
  'a.spec.ts': `it('x is 1', () => expect(2, 'it is 2').toBe(1)); it('y', () => undefined); it.skip('z', () => undefined);`,
  'b.spec.ts': `import './none.js';`,
  'c.spec.ts': `it('lets go', async () => { void Promise.reject(new Error('nobody caught it')); await new Promise(setImmediate); });`,
};

it('names each failed test, each file that failed outside of its tests, and each unhandled error', () => {
  const dir = testFolder();
  for (const [name, text] of Object.entries(BROKEN)) writeFileSync(join(dir, name), text);
  const report = join(dir, 'outcome.json');
  const vitest = [`${ROOT}/node_modules/vitest/vitest.mjs`, 'run', '--root', dir, '--globals'];
  spawnSync(process.execPath, [...vitest, `--reporter=${ROOT}/tools/vitest-outcome.ts`, `--outputFile=${report}`], { cwd: dir });
  expect(JSON.parse(readFileSync(report, 'utf8'))).toEqual({
    passed: 2,
    failed: [
      { what: 'a.spec.ts: x is 1', why: expect.stringContaining('it is 2') },
      { what: 'b.spec.ts', why: expect.stringContaining('none.js') },
      { what: 'c.spec.ts', why: 'outside of any test: nobody caught it' },
    ],
    skipped: [{ what: 'a.spec.ts: z', why: 'by the test itself' }],
  });
});

it('refuses a filter that matches no file', async () => {
  const cli = createCli(readSettings({}), { timeout: 30_000 }, new AbortController().signal);
  await expect(runTests(cli, ['libs/nothing'])).rejects.toMatchObject({ exit: 2, message: 'no test file has "libs/nothing" in its path' });
});
