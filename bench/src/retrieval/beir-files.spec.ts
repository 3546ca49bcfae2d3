import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readCorpus, readQueries, writeBeir } from './beir-files.js';
import { selectSet } from './sets/select.js';

const ORIGIN = { name: 's', description: 'd', source: 'o', licence: 'l' };
const LABELLED = Array.from({ length: 30 }, (_, i) => ({
  key: `k${i}`,
  question: i % 3 === 0 ? `what does the function number ${'x'.repeat(i + 2)} do` : null,
  answer: `answer ${i}`,
}));
const SIZE = { documentsMax: 20, queriesMax: 5, charsMax: 100 };

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('BEIR folders', () => {
  let dir: string;
  beforeEach(() => {
    dir = join(mkdtempSync(join(tmpdir(), 'beir-')), 'set');
  });
  afterEach(() => rmSync(join(dir, '..'), { recursive: true, force: true }));

  it('give back the set that was written, whatever order it was made in', async () => {
    const set = selectSet(LABELLED, SIZE);
    expect(selectSet(LABELLED.toReversed(), SIZE)).toEqual(set);
    writeBeir(dir, set, ORIGIN);
    expect(await all(readCorpus(dir))).toEqual(set.documents);
    const queries = await readQueries(dir);
    expect(queries.map(({ id, text }) => ({ id, text }))).toEqual(set.queries);
    expect(queries.every(({ relevance }) => relevance.size === 1)).toBe(true);
  });

  it('say which file and line is wrong', async () => {
    writeBeir(dir, selectSet(LABELLED, SIZE), ORIGIN);
    writeFileSync(join(dir, 'corpus.jsonl'), '{"_id":"a","text":""}\n\n{"_id":"a","text":""}\n');
    await expect(all(readCorpus(dir))).rejects.toThrow(/corpus\.jsonl:3 has the id "a" a second time/);
    writeFileSync(join(dir, 'qrels/test.tsv'), 'query-id\tcorpus-id\tscore\nnone\ta\t1\n');
    await expect(readQueries(dir)).rejects.toThrow(/judges query "none", which is not in queries\.jsonl/);
    rmSync(join(dir, 'qrels/test.tsv'));
    await expect(readQueries(dir)).rejects.toThrow(/there is no .*test\.tsv; a BEIR folder has/);
  });
});
