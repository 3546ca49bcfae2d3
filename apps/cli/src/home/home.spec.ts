import { hash } from 'node:crypto';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { testFolder } from '@etude/test-support/test-folder';
import { addKey, ensureLocalKey, ensureProofKeys, keyPath, keysPath, proofPublicKeysPath, proofSigningKeyPath, readKeys } from './home.js';

let home: string;
beforeEach(() => void (home = testFolder()));

describe('key file', () => {
  it('keeps digests and never the key', () => {
    const key = addKey(keysPath(home), { tenant: 'acme', roles: ['user'], name: 'ci' });
    expect(readFileSync(keysPath(home), 'utf8')).not.toContain(key);
    expect(readKeys(keysPath(home))).toEqual([{ sha256: hash('sha256', key), tenant: 'acme', roles: ['user'], name: 'ci' }]);
  });

  it('makes a new local key if its digest is missing, readable by its owner only', () => {
    ensureLocalKey(home);
    for (const path of [keyPath(home), keysPath(home)]) expect(statSync(path).mode & 0o777).toBe(0o600);
    rmSync(keysPath(home));
    ensureLocalKey(home);
    expect(readKeys(keysPath(home))[0]?.sha256).toBe(hash('sha256', readFileSync(keyPath(home), 'utf8').trim()));
  });
});

const read = () => [proofSigningKeyPath(home), proofPublicKeysPath(home)].map((path) => readFileSync(path, 'utf8'));

describe('ensureProofKeys', () => {
  it('makes a pair once, readable by its owner only', () => {
    ensureProofKeys(home);
    const made = read();
    ensureProofKeys(home);
    expect(read()).toEqual(made);
    for (const path of [proofSigningKeyPath(home), proofPublicKeysPath(home)]) expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('adds a public key and keeps the existing public keys', () => {
    ensureProofKeys(home);
    const [, old] = read();
    rmSync(proofSigningKeyPath(home));
    ensureProofKeys(home);
    const [, both] = read();
    expect(both?.startsWith(old ?? 'none')).toBe(true);
    expect(both?.match(/BEGIN PUBLIC KEY/g)).toHaveLength(2);
  });
});
