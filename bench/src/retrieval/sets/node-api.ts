import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { GeneratedSet } from '../test-set.js';
import { type Labelled, selectSet } from './select.js';

/** Programmers' prose about functions. The first sentence is the query; the rest of the text is the document. */
export const nodeApi: GeneratedSet = {
  name: 'node-api',
  description: "The first sentence of a function's documentation asks for the rest of the same documentation.",
  source: 'npm @types/node, comments of its *.d.ts files (the documentation of Node.js)',
  licence: 'MIT, see LICENSE of the package',
  make: () => selectSet(comments(), { documentsMax: 1_500, queriesMax: 400, charsMax: 1_200 }),
};

function comments(): Labelled[] {
  const folder = dirname(createRequire(import.meta.url).resolve('@types/node/package.json'));
  const files = globSync('**/*.d.ts', { cwd: folder }).toSorted();
  return files.flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/\/\*\*([^]*?)\*\//g)].flatMap(([, comment = ''], i) =>
      labelled(`${file} ${i}`, comment),
    ),
  );
}

/** Leaves out lines with tags, because they are alike for all functions. */
function labelled(key: string, comment: string): Labelled[] {
  const lines = comment.split('\n').map((line) => line.replace(/^\s*\* ?/, ''));
  const tag = lines.findIndex((line) => /^@(?!example)/.test(line.trim()));
  const text = lines
    .slice(0, tag === -1 ? lines.length : tag)
    .join('\n')
    .replaceAll(/\{@link ([^}]+)\}/g, '$1')
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .trim();
  const end = /[.!?](?=\s)/.exec(text);
  if (!end) return [];
  const question = text.slice(0, end.index + 1).replaceAll(/\s+/g, ' ');
  const answer = text.slice(end.index + 1).trim();
  return answer.length < 80 ? [] : [{ key, question: question.length > 300 ? null : question, answer }];
}
