import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { encodeStatus, STATUS_DETAILS_KEY } from '@etude/contracts/rich-status';
import { Metadata, status } from '@grpc/grpc-js';
import { expect, it, onTestFinished } from 'vitest';
import { RideOut } from '../calls.js';
import { CliError, EXIT } from '../errors.js';
import { readBytes } from '../files.js';
import { mediaTypeOfPath, refusalOf, stopped } from './documents.js';

it.each([
  ['docs/ship.md', 'text/markdown'],
  ['SHIP.TXT', 'text/plain'],
  ['a.htm', 'text/html'],
  ['a.xhtml', 'text/html'],
  ['a.b.pdf', 'application/pdf'],
  ['manual', ''],
  ['ship.md/manual', ''],
])('tells what %s is by its ending', (path, type) => {
  expect(mediaTypeOfPath(path)).toBe(type);
});

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

/** RESOURCE_EXHAUSTED as the gateway answers it, with its own code. */
function exhausted(code: ErrorCode): Error {
  const metadata = new Metadata();
  metadata.set(STATUS_DETAILS_KEY, encodeStatus(new EtudeError(code, 'no more')));
  return Object.assign(new Error('no more'), { code: status.RESOURCE_EXHAUSTED, details: 'no more', metadata });
}

it('takes a file for refused where it is too large, not where the gateway is busy or memory full', () => {
  expect(refusalOf(exhausted('PAYLOAD_TOO_LARGE'))).toBe('no more');
  expect(refusalOf(failed(status.RESOURCE_EXHAUSTED, 'larger than max'))).toBe('larger than max');
  for (const code of ['TOO_MANY_CALLS', 'MEMORY_FULL', 'MODEL_RATE_LIMITED'] as const) expect(refusalOf(exhausted(code))).toBeNull();
});

it('tries again where the gateway is busy, and ends where memory is full', async () => {
  const { signal } = new AbortController();
  await expect(new RideOut(signal).wait(exhausted('TOO_MANY_CALLS'))).resolves.toBeUndefined();
  await expect(new RideOut(signal).wait(exhausted('MEMORY_FULL'))).rejects.toMatchObject({ message: 'no more' });
});

it('says how an import goes on that was ended', () => {
  const { signal } = new AbortController();
  const hint = expect.arrayContaining([expect.stringContaining('run the same again')]);
  expect(stopped({ signal }, exhausted('MEMORY_FULL'), 'h:1')).toMatchObject({ exit: 4, code: 'MEMORY_FULL', hint });
  expect(stopped({ signal: AbortSignal.abort() }, exhausted('MEMORY_FULL'), 'h:1')).not.toMatchObject({ hint });
  expect(stopped({ signal }, new TypeError('a bug'), 'h:1')).toBeInstanceOf(TypeError);
});

it('ends where the gateway is to blame, or nobody knows', () => {
  expect(refusalOf(failed(status.UNAVAILABLE, 'away'))).toBeNull();
  expect(refusalOf(failed(status.PERMISSION_DENIED, 'no'))).toBeNull();
  expect(refusalOf(new TypeError('a bug'))).toBeNull();
});
