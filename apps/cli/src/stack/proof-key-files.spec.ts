import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { proofPublicKeysPath, proofSigningKeyPath } from './home.js';
import { ensureProofKeys } from './proof-key-files.js';

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
