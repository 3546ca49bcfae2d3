import { create } from '@bufbuild/protobuf';
import { MemoryHitSchema, MemoryRecordSchema, MemoryStatsSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { expect, it } from 'vitest';
import { hitLines, hitText, recallLines, recordText, statsText } from './memory-lines.js';

const hit = (layer: string, id: string, score: number) => create(MemoryHitSchema, { layer, id, score, kind: 'fact' });

it('puts hits under their layer, the best layer first', () => {
  const hits = [hit('episodic', 'e1', 0.2), hit('semantic', 's2', 0.5), hit('semantic', 's1', 0.9)];
  const lines = hitLines(hits).split('\n');
  expect(lines.filter((line) => line.endsWith(':'))).toEqual(['semantic:', 'episodic:']);
  expect(lines.findIndex((line) => line.includes(' s2 '))).toBeLessThan(lines.findIndex((line) => line.includes(' s1 ')));
});

it('prints ranks as whole numbers', () => {
  const explained = create(MemoryHitSchema, { explanation: { denseRank: 2, bm25: 1 } });
  expect(hitText(explained)).toContain('score: denseRank 2, bm25 1.000');
});

it('says whose a hit is, and that the scripted model wrote it', () => {
  const [first = ''] = hitText(create(MemoryHitSchema, { agent: 'scout', user: 'ann', title: 'fog', scripted: true })).split('\n');
  expect(first).toMatch(/ {2}agent scout {2}user ann {2}similarity .* {2}fog \[scripted\]$/);
  expect(hitText(create(MemoryHitSchema, { agent: 'scout', title: 'fog' }))).not.toMatch(/user|scripted/);
});

it('says what of all that is recalled as facts is none', () => {
  const hits = [hit('semantic', 'f1', 0.9), { ...hit('semantic', 'c1', 0.5), kind: 'chunk' }, hit('semantic', 'f2', 0.1)];
  const lines = recallLines({ facts: hits, experiences: [], procedures: [hit('procedural', 'p1', 1)] }).split('\n');
  const named = lines.flatMap((line) => /^[a-z ]+:$|(?<= )[a-z]\d(?= )/.exec(line) ?? []);
  expect(named).toEqual(['facts:', 'f1', 'f2', 'parts of documents:', 'c1', 'procedures:', 'p1']);
});

it('passes over the fence of code in a preview', () => {
  expect(hitText(create(MemoryHitSchema, { text: '```python\nprint(1)\n```' }))).toContain('\n  print(1)');
});

it('says what notes of applied writes are', () => {
  const stats = create(MemoryStatsSchema, { layers: [{ layer: 'semantic', kind: 'applied', records: 2n }] });
  expect(statsText(stats).split('\n').at(-1)).toMatch(/^applied: .* no memories$/);
  expect(statsText(create(MemoryStatsSchema, {}))).not.toContain('applied');
});

it('prints every field of a record that says something', () => {
  const record = create(MemoryRecordSchema, {
    layer: 'semantic',
    kind: 'fact',
    id: 'f1',
    fields: { fact: 'a', wordings: [], created_at: 'x' },
  });
  expect(recordText(record)).toBe('semantic fact f1\n  \n  fact: a');
});
