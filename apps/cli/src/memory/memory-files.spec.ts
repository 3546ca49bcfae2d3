import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { status } from '@grpc/grpc-js';
import { beforeEach, describe, expect, it } from 'vitest';
import { testFolder } from '@etude/test-support/test-folder';
import { serviceError } from '../../test/service-error.js';
import { RideOut } from '../calls.js';
import { CliError, EXIT } from '../errors.js';
import { writeWhole } from '../files.js';
import { isExport, linesOf, refusalOf } from './transfer-memory.js';

let dir: string;
beforeEach(() => {
  dir = testFolder();
});
const fileOf = (name: string, text: string) => {
  writeFileSync(join(dir, name), text);
  return join(dir, name);
};

describe('lines of a file', () => {
  const text = JSON.stringify('a\u2028b\u2029c\u0085d\ve\f\u0000');
  it.each([
    ['end at a line feed alone', `${text}\n${text}\n`, [text, text]],
    ['may lack the last end', 'a\nb', ['a', 'b']],
    ['may be empty', '\n\n', ['', '']],
    ['may be none', '', []],
  ])('%s', async (_how, content, lines) => {
    expect(await Array.fromAsync(linesOf(fileOf('file.jsonl', content)))).toEqual(lines);
  });

  it('are whole even if a read ends within a character', async () => {
    const lines = Array.from({ length: 50 }, (_, n) => 'ä€😀'.repeat(n * 97));
    expect(await Array.fromAsync(linesOf(fileOf('file.jsonl', lines.map((line) => `${line}\n`).join(''))))).toEqual(lines);
  });
});

describe('a file that is written', () => {
  it('appears once it is complete, or leaves no file behind', async () => {
    const path = join(dir, 'all.jsonl');
    const cut = writeWhole(path, async (write) => {
      await write('a');
      throw new Error('cut');
    });
    await expect(cut).rejects.toThrow('cut');
    expect(readdirSync(dir)).toEqual([]);
    await writeWhole(path, async (write) => {
      for (const text of ['a\n', 'b\n']) await write(text);
      expect(existsSync(path)).toBe(false);
    });
    expect([readdirSync(dir), readFileSync(path, 'utf8')]).toEqual([['all.jsonl'], 'a\nb\n']);
  });

  it.each(['none/x', '.'])('cannot be %s', async (path) => {
    await expect(writeWhole(join(dir, path), async () => undefined)).rejects.toMatchObject({ exit: EXIT.usage });
  });
});

it('recognises an export by its name, and refuses other paths beside it', () => {
  const named = fileOf('a.jsonl', '{"etude":"memory"}\n');
  expect([isExport([named]), isExport(['a.md'])]).toEqual([true, false]);
  expect(() => isExport([named, 'a.md'])).toThrow('import only this file');
  expect(() => isExport(['/nowhere/a.jsonl'])).toThrow('there is no file');
});

const exhausted = (code: ErrorCode) => serviceError(status.RESOURCE_EXHAUSTED, 'no more', new EtudeError(code, 'no more'));

const syscall = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES', syscall: 'open' });

it.each([
  [syscall, 'EACCES: permission denied'],
  [new CliError(EXIT.usage, 'too large'), 'too large'],
  [serviceError(status.INVALID_ARGUMENT, 'no text in it'), 'no text in it'],
  [exhausted('PAYLOAD_TOO_LARGE'), 'no more'],
  [exhausted('TOO_MANY_CALLS'), null],
  [exhausted('MEMORY_FULL'), null],
  [serviceError(status.UNAVAILABLE, 'away'), null],
  [new TypeError('a bug'), null],
])('an import continues after a document at fault, and ends after any other error: %s', (error, reason) => {
  expect(refusalOf(error)).toBe(reason);
});

it('retries if the gateway is busy, and stops if memory is full', async () => {
  const { signal } = new AbortController();
  await expect(new RideOut(signal).wait(exhausted('TOO_MANY_CALLS'))).resolves.toBeUndefined();
  await expect(new RideOut(signal).wait(exhausted('MEMORY_FULL'))).rejects.toMatchObject({ details: 'no more' });
});
