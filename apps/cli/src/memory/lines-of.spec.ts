import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { linesOf } from './lines-of.js';

const dir = mkdtempSync(join(tmpdir(), 'etude-lines-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function linesIn(content: string, bytesMax?: number): Promise<string[]> {
  const path = join(dir, 'file.jsonl');
  writeFileSync(path, content);
  const lines: string[] = [];
  for await (const line of linesOf(path, bytesMax)) lines.push(line);
  return lines;
}

describe('lines of a file', () => {
  it('end at a line feed alone, whatever else a text may be broken at', async () => {
    const text = JSON.stringify('a\u2028b\u2029c\u0085d\ve\f\u0000');
    expect(await linesIn(`${text}\n${text}\n`)).toEqual([text, text]);
  });

  it.each([
    ['with carriage returns', 'a\r\n\r\nb\r\n', ['a', '', 'b']],
    ['without an end of the last', 'a\nb', ['a', 'b']],
    ['that are empty', '\n\n', ['', '']],
    ['of nothing', '', []],
  ])('are read %s', async (_how, content, lines) => {
    expect(await linesIn(content)).toEqual(lines);
  });

  it('are whole, however long, and whichever characters stand where the file is cut for reading', async () => {
    const lines = Array.from({ length: 50 }, (_, n) => 'ä€😀'.repeat(n * 97));
    expect(await linesIn(lines.map((line) => `${line}\n`).join(''))).toEqual(lines);
  });

  it('stop where no more is to be looked at', async () => {
    expect(await linesIn(`${'a'.repeat(10)}\nb`, 4)).toEqual(['aaaaa']);
  });
});
