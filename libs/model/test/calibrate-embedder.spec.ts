import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { testFolder } from '@etude/test-support/test-folder';
import { describe, expect, it } from 'vitest';
import { builtInPairs, calibrateEmbedder, readPairs } from '../src/calibrate-main.js';

function pairsFile(content: string): string {
  const path = join(testFolder(), 'pairs.jsonl');
  writeFileSync(path, content);
  return path;
}

const report = (pairs = builtInPairs()) => calibrateEmbedder(pairs, new LexicalEmbedder(), new AbortController().signal);

describe('calibrating an embedder', () => {
  it('finds settings that judge at least as many pairs right as the current ones', async () => {
    const { fitted, now, cosines } = await report();
    expect(fitted?.settings).toHaveLength(3);
    expect(fitted?.sameness).toBeGreaterThanOrEqual(now.sameness);
    expect(cosines.words?.p50).toBeGreaterThan(cosines.no?.p50 ?? 1);
    expect(cosines.unrelated?.pairs).toBeGreaterThan(1_000);
  });

  it('fits nothing without pairs of every kind', async () => {
    expect(await report([{ a: 'sort a list', b: 'sort lists', same: 'words' }])).toMatchObject({ fitted: null });
  });

  it('reads pairs, one a line', () => {
    const path = pairsFile('{"a":"x","b":"y","same":"no"}\r\n\n{"a":"x","b":"x","same":"words"}\n');
    expect(readPairs(path)).toEqual([
      { a: 'x', b: 'y', same: 'no' },
      { a: 'x', b: 'x', same: 'words' },
    ]);
  });

  it.each([
    ['{"a":"x","b":"y","same":"no"}\n{"a":"x"', 'line 2: not JSON'],
    ['{"a":"x","b":"y","same":"maybe"}', 'line 1: same'],
    ['{"a":"","b":"y","same":"no"}', 'line 1: a'],
    ['\n', 'has no pair'],
  ])('refuses %j', (content, message) => {
    expect(() => readPairs(pairsFile(content))).toThrow(message);
  });
});
