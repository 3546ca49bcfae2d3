import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const folder = join(import.meta.dirname, '..', '..', '..', 'docs', 'decisions');
const INDEX = 'README.md';
const files = readdirSync(folder);
const pages = files.filter((name) => name !== INDEX);
const read = (name: string) => readFileSync(join(folder, name), 'utf8');
const entries = read(INDEX)
  .split('\n')
  .filter((line) => line.startsWith('- '));

/** Its line in the index. */
function entryOf(page: string): string {
  const [, title = ''] = /^# \d+\. (.+)\n/.exec(read(page)) ?? [];
  return `- ${Number(page.slice(0, 4))} [${title}](${page})`;
}

/** Targets of links to files, without the part of the page that they lead to. */
function linksOf(name: string): string[] {
  return [...read(name).matchAll(/\]\((?![a-z]+:|#)([^)#\s]+)/g)].map(([, target = '']) => target);
}

it('names every decision by its number and title', () => {
  const odd = pages.filter((page) => {
    const [, number = ''] = /^# ([1-9]\d*)\. \S/.exec(read(page)) ?? [];
    return !/^\d{4}-[a-z0-9-]+\.md$/.test(page) || number !== String(Number(page.slice(0, 4)));
  });
  expect(odd).toEqual([]);
});

it('lists every decision in the index once, by its title', () => {
  expect(entries.toSorted()).toEqual(pages.map(entryOf).toSorted());
});

it('links decisions to pages that are there', () => {
  const broken = files.flatMap((name) => linksOf(name).flatMap((target) => (existsSync(join(folder, target)) ? [] : `${name}: ${target}`)));
  expect(broken).toEqual([]);
});
