import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const DECISIONS = join(ROOT, 'docs', 'decisions');
const INDEX = 'README.md';
const read = (page: string) => readFileSync(join(DECISIONS, page), 'utf8');

it('lists every decision in the index, with its number and title', () => {
  const pages = readdirSync(DECISIONS).filter((name) => name !== INDEX);
  const expected = pages.map((page) => {
    const number = Number(page.slice(0, 4));
    const [, title = ''] = new RegExp(`^# ${number}\\. (.+)\n`).exec(read(page)) ?? [];
    return `- ${number} [${title}](${page})`;
  });
  const entries = read(INDEX).split('\n');
  expect(entries.filter((line) => line.startsWith('- ')).toSorted()).toEqual(expected.toSorted());
});

it('mentions "./etude", which only a checkout has, in no text of a service', () => {
  const sources = ['apps/{gateway,*-worker,sandbox-controller}/src/**/*.ts', 'libs/*/src/**/*.ts'];
  const files = globSync(sources, { cwd: ROOT }).filter((path) => !/\.spec\.ts$|-fixture\.ts$/.test(path));
  expect(files.length).toBeGreaterThan(300);
  const found = files.flatMap((path) => {
    const lines = readFileSync(join(ROOT, path), 'utf8').split('\n');
    return lines.filter((line) => line.includes('./etude ') && !/^\s*(\/?\*|\/\/)/.test(line)).map((line) => `${path}: ${line.trim()}`);
  });
  expect(found).toEqual([]);
});
