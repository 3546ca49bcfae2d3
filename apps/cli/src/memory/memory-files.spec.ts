import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { status } from '@grpc/grpc-js';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { serviceError } from '../../test/service-error.js';
import { RideOut } from '../calls.js';
import { CliError, EXIT } from '../errors.js';
import { readBytes, writeWhole } from '../files.js';
import { refusalOf } from './documents.js';
import { isExport, linesOf } from './transfer-memory.js';

let dir: string;
beforeEach(() => {
  dir = temporaryFolder();
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

  it('are whole, whichever characters stand where the file is cut for reading', async () => {
    const lines = Array.from({ length: 50 }, (_, n) => 'ä€😀'.repeat(n * 97));
    expect(await Array.fromAsync(linesOf(fileOf('file.jsonl', lines.map((line) => `${line}\n`).join(''))))).toEqual(lines);
  });
});

describe('a file that is written', () => {
  it('appears once it is whole, or leaves nothing behind', async () => {
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

  it.each(['none/x', '.'])('can not be %s', async (path) => {
    await expect(writeWhole(join(dir, path), async () => undefined)).rejects.toMatchObject({ exit: EXIT.usage });
  });
});

it('knows an export by its name, and takes none among others', () => {
  const named = fileOf('a.jsonl', '{"etude":"memory"}\n');
  expect([isExport([named]), isExport(['a.md'])]).toEqual([true, false]);
  expect(() => isExport([named, 'a.md'])).toThrow('import it by itself');
  expect(() => isExport(['/nowhere/a.jsonl'])).toThrow('there is no file');
});

const exhausted = (code: ErrorCode) => serviceError(status.RESOURCE_EXHAUSTED, 'no more', new EtudeError(code, 'no more'));

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

it('goes on behind a document that cannot be read or is refused', () => {
  mkdirSync(join(dir, 'a'));
  expect(refusalOf(thrownBy(() => readBytes(join(dir, 'a'), 9)))).toContain('is a folder');
  expect(refusalOf(Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES', syscall: 'open' }))).toContain('EACCES');
  expect(refusalOf(new CliError(EXIT.usage, 'too large'))).toBe('too large');
  expect(refusalOf(serviceError(status.INVALID_ARGUMENT, 'no text in it'))).toBe('no text in it');
  expect(refusalOf(exhausted('PAYLOAD_TOO_LARGE'))).toBe('no more');
});

it('ends an import where the gateway is to blame, or nobody knows', () => {
  const others = [exhausted('TOO_MANY_CALLS'), exhausted('MEMORY_FULL'), serviceError(status.UNAVAILABLE, 'away'), new TypeError('a bug')];
  expect(others.map(refusalOf)).toEqual([null, null, null, null]);
});

it('tries again where the gateway is busy, and ends where memory is full', async () => {
  const { signal } = new AbortController();
  await expect(new RideOut(signal).wait(exhausted('TOO_MANY_CALLS'))).resolves.toBeUndefined();
  await expect(new RideOut(signal).wait(exhausted('MEMORY_FULL'))).rejects.toMatchObject({ details: 'no more' });
});
