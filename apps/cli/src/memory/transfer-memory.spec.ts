import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../errors.js';
import { isExport, linesOf, refusalLines, writeWhole } from './transfer-memory.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'etude-lines-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
});

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

it('appears once it is whole', async () => {
  const path = join(dir, 'all.jsonl');
  await writeWhole(path, async (write) => {
    await write('a\n');
    await write('b\n');
    expect(existsSync(path)).toBe(false);
  });
  expect(readFileSync(path, 'utf8')).toBe('a\nb\n');
  expect(readdirSync(dir)).toEqual(['all.jsonl']);
});

it('leaves nothing behind when it is given up', async () => {
  const broken = writeWhole(join(dir, 'all.jsonl'), async (write) => {
    await write('a\n');
    throw new Error('cut');
  });
  await expect(broken).rejects.toThrow('cut');
  expect(readdirSync(dir)).toEqual([]);
});

it.each(['none/x', '.'])('says that %s cannot be written', async (path) => {
  await expect(writeWhole(join(dir, path), async () => undefined)).rejects.toMatchObject({ exit: EXIT.usage });
});

function fileOf(name: string, text: string): string {
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
