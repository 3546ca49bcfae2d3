import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../exit-codes.js';
import { ExportFile } from './export-file.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'etude-export-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
});

it('appears once it is whole', async () => {
  const path = join(dir, 'all.jsonl');
  const file = await ExportFile.create(path);
  await file.write('a\n');
  await file.write('b\n');
  expect(existsSync(path)).toBe(false);
  await file.finish();
  expect(readFileSync(path, 'utf8')).toBe('a\nb\n');
  expect(readdirSync(dir)).toEqual(['all.jsonl']);
});

it('leaves nothing behind when it is given up', async () => {
  const file = await ExportFile.create(join(dir, 'all.jsonl'));
  await file.write('a\n');
  await file.discard();
  expect(readdirSync(dir)).toEqual([]);
});

it('says why it cannot be written', async () => {
  await expect(ExportFile.create(join(dir, 'none/x'))).rejects.toMatchObject({
    exit: EXIT.usage,
    message: expect.stringContaining(`there is no folder ${join(dir, 'none')}`),
  });
  await expect(ExportFile.create(dir)).rejects.toMatchObject({ exit: EXIT.usage, message: expect.stringContaining('is a folder') });
});
