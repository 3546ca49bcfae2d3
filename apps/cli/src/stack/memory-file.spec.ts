import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MEMORY_FILE } from '@etude/contracts/memory-file';
import { writeSqliteFile } from '@etude/test-support/sqlite-file';
import { expect, it, onTestFinished } from 'vitest';
import { memoryTrouble } from './memory-file.js';

function file(applicationId: number, layout: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'etude-memory-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'memory.sqlite');
  writeSqliteFile(path, `CREATE TABLE t (x); PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${layout}`);
  return path;
}
const { applicationId, layout } = MEMORY_FILE;

it('a memory file of a later layout is told, with both layouts and what to do', () => {
  const path = file(applicationId, layout + 1);
  expect(memoryTrouble(path)).toMatch(
    new RegExp(`${path} was written by a later version.*layout ${layout + 1}.*reads ${layout}\\..*Stop every service.*install`),
  );
});

it('a memory file from before the first release is told, with the way out', () => {
  expect(memoryTrouble(file(0x4574_7564, 3))).toMatch(/before the first release.*Export it with the version that wrote it/);
});

it('any other file is left to whoever opens it', () => {
  const path = file(applicationId, layout);
  expect([path, file(7, 99), join(path, 'nowhere')].map(memoryTrouble)).toEqual([null, null, null]);
  writeFileSync(path, 'short');
  expect(memoryTrouble(path)).toBeNull();
});
