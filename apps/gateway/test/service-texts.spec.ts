import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const FILES = ['apps/{gateway,*-worker,sandbox-controller}/src/**/*.ts', 'libs/*/src/**/*.ts'];
/** Texts of tests, which run in a checkout. */
const OF_TESTS = /\.spec\.ts$|-fixture\.ts$/;
const COMMENT = /^\s*(\/?\*|\/\/)/;

it('names the command line in no text of a service as only a checkout has it', () => {
  const files = globSync(FILES, { cwd: ROOT }).filter((path) => !OF_TESTS.test(path));
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((path) => {
    const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
    return lines.filter((line) => line.includes('./etude ') && !COMMENT.test(line)).map((line) => `${path}: ${line.trim()}`);
  });
  expect(found).toEqual([]);
});
