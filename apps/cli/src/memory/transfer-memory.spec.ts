import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../exit-codes.js';
import { isExport, refusalLines } from './transfer-memory.js';

function fileOf(name: string, text: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'etude-transfer-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, name), text);
  return join(dir, name);
}

it('says each reason once', () => {
  const same = Array.from({ length: 43 }, (_, i) => ({ line: i + 2, reason: 'its owner was erased' }));
  expect(refusalLines([...same, { line: 50, reason: 'it is no record' }])).toEqual([
    'lines 2, 3, 4, 5, 6 and 38 more: its owner was erased',
    'line 50: it is no record',
  ]);
});

it('knows an export by its first line', async () => {
  expect(await isExport([fileOf('a.jsonl', '{"etude":"memory"}\n')])).toBe(true);
  expect(await isExport([fileOf('a.md', '# a')])).toBe(false);
});

it('refuses a .jsonl that is none, and one among others', async () => {
  await expect(isExport([fileOf('a.jsonl', '{"a":1}\n')])).rejects.toMatchObject({
    exit: EXIT.usage,
    message: expect.stringContaining('must be an export of memory; its first line is not'),
  });
  const paths = [fileOf('a.jsonl', '{"etude":"memory"}\n'), fileOf('a.md', '# a')];
  await expect(isExport(paths)).rejects.toMatchObject({ exit: EXIT.usage });
  await expect(isExport(['/nowhere/a.jsonl'])).rejects.toMatchObject({ exit: EXIT.usage });
});
