import { create } from '@bufbuild/protobuf';
import { MemoryHitSchema, MemoryRecordSchema, MemoryStatsSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { expect, it } from 'vitest';
import { hitLines, hitText, recordText, statsText } from './memory-lines.js';

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

it('passes over the fence of code in a preview', () => {
  expect(hitText(create(MemoryHitSchema, { text: '```python\nprint(1)\n```' }))).toContain('\n  print(1)');
});

it('says what notes of applied writes are', () => {
  const stats = create(MemoryStatsSchema, { layers: [{ layer: 'semantic', kind: 'applied', records: 2n }] });
  expect(statsText(stats).split('\n').at(-1)).toMatch(/^applied: .* no memories$/);
  expect(statsText(create(MemoryStatsSchema, {}))).not.toContain('applied');
});

it('prints times as dates', () => {
  const record = create(MemoryRecordSchema, { fields: { text: 'a', validTo: 1_700_000_000_000, updatedAt: 0 } });
  expect(recordText(record)).toContain('validTo: 2023-11-14T22:13:20.000Z');
});
