import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Metadata, status } from '@grpc/grpc-js';
import { expect, it, onTestFinished } from 'vitest';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { readBytes } from '../files.js';
import { refusalOf } from './import-documents.js';

const failed = (code: status, details: string) => Object.assign(new Error(details), { code, details, metadata: new Metadata() });

function thrownBy(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

it('goes on behind a file that cannot be read or is refused', () => {
  const dir = mkdtempSync(join(tmpdir(), 'etude-import-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  mkdirSync(join(dir, 'a'));
  expect(refusalOf(thrownBy(() => readBytes(join(dir, 'a'), 9)))).toContain('is a folder');
  expect(refusalOf(Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES', syscall: 'open' }))).toContain('EACCES');
  expect(refusalOf(new CliError(EXIT.usage, 'too large'))).toBe('too large');
  expect(refusalOf(failed(status.INVALID_ARGUMENT, 'no text in it'))).toBe('no text in it');
});

it('ends where the gateway is to blame, or nobody knows', () => {
  expect(refusalOf(failed(status.UNAVAILABLE, 'away'))).toBeNull();
  expect(refusalOf(failed(status.PERMISSION_DENIED, 'no'))).toBeNull();
  expect(refusalOf(new TypeError('a bug'))).toBeNull();
});
