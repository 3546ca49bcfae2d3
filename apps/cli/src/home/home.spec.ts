import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MEMORY_FILE } from '@etude/contracts/memory-file';
import { writeSqliteFile } from '@etude/test-support/sqlite-file';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  addKey,
  ensureLocalKey,
  ensureProofKeys,
  keyPath,
  keysPath,
  memoryTrouble,
  proofPublicKeysPath,
  proofSigningKeyPath,
  readKeys,
} from './home.js';

describe('key file', () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'etude-keys-'));
  });
  afterEach(() => rmSync(home, { recursive: true }));

  it('keeps digests and never the key', () => {
    const key = addKey(home, { tenant: 'acme', roles: ['user'], name: 'ci' });
    expect(readFileSync(keysPath(home), 'utf8')).not.toContain(key);
    expect(readKeys(home)).toEqual([
      { sha256: createHash('sha256').update(key).digest('hex'), tenant: 'acme', roles: ['user'], name: 'ci' },
    ]);
  });

  it('is readable by its owner only', () => {
    ensureLocalKey(home);
    for (const path of [keyPath(home), keysPath(home)]) expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('keeps the local key from one start to the next', () => {
    ensureLocalKey(home);
    const key = readFileSync(keyPath(home), 'utf8');
    ensureLocalKey(home);
    expect(readFileSync(keyPath(home), 'utf8')).toBe(key);
    expect(readKeys(home)).toHaveLength(1);
  });

  it('makes a new local key where its digest is gone', () => {
    ensureLocalKey(home);
    rmSync(keysPath(home));
    ensureLocalKey(home);
    expect(readKeys(home)[0]?.sha256).toBe(
      createHash('sha256')
        .update(readFileSync(keyPath(home), 'utf8').trim())
        .digest('hex'),
    );
  });
});

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'etude-home-'));
});
afterEach(() => rmSync(home, { recursive: true }));

const read = () => [proofSigningKeyPath(home), proofPublicKeysPath(home)].map((path) => readFileSync(path, 'utf8'));

describe('ensureProofKeys', () => {
  it('makes a pair once, readable by its owner only', () => {
    ensureProofKeys(home);
    const made = read();
    for (const path of [proofSigningKeyPath(home), proofPublicKeysPath(home)]) expect(statSync(path).mode & 0o777).toBe(0o600);
    ensureProofKeys(home);
    expect(read()).toEqual(made);
  });

  it('adds the public key of a signing key and keeps those that there are', () => {
    ensureProofKeys(home);
    const [, old] = read();
    rmSync(proofSigningKeyPath(home));
    ensureProofKeys(home);
    const [, both] = read();
    expect(both?.startsWith(old ?? 'none')).toBe(true);
    expect(both?.match(/BEGIN PUBLIC KEY/g)).toHaveLength(2);
  });
});

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
