import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testFolder } from '@etude/test-support/test-folder';
import { beforeEach, describe, expect, it } from 'vitest';
import { fileProofChecker, fileProofSigner, ownProofChecker } from './proof-keys.js';

let dir: string;
beforeEach(() => void (dir = testFolder()));

const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' });
function pair(name: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const path = join(dir, name);
  writeFileSync(path, pem(privateKey));
  return { path, publicPem: publicKey.export({ type: 'spki', format: 'pem' }) };
}
const publicKeys = (...pems: string[]) => {
  const path = join(dir, 'public.pem');
  writeFileSync(path, pems.join(''));
  return path;
};

describe('proof keys', () => {
  it('accept a signature only from a known key and for its text', () => {
    const [old, present, stranger] = [pair('old'), pair('present'), pair('stranger')];
    const checker = fileProofChecker(publicKeys(old.publicPem, present.publicPem));
    for (const { path } of [old, present]) {
      const signer = fileProofSigner(path);
      const signature = signer.sign('text');
      expect(checker.isSigned('text', signer.keyId, signature)).toBe(true);
      expect(ownProofChecker(path).isSigned('text', signer.keyId, signature)).toBe(true);
      expect(checker.isSigned('other text', signer.keyId, signature)).toBe(false);
      expect(checker.isSigned('text', fileProofSigner(stranger.path).keyId, signature)).toBe(false);
      expect(checker.isSigned('text', signer.keyId, '')).toBe(false);
      expect(checker.isSigned('text', signer.keyId, 'no base64 !')).toBe(false);
    }
    const forged = fileProofSigner(stranger.path);
    expect(checker.isSigned('text', fileProofSigner(old.path).keyId, forged.sign('text'))).toBe(false);
  });

  it('accept no signature without a key file', () => {
    const signer = fileProofSigner(pair('one').path);
    expect(fileProofChecker(undefined).isSigned('text', signer.keyId, signer.sign('text'))).toBe(false);
  });

  it('can be added and removed without a restart', () => {
    const [old, next] = [pair('old'), pair('next')];
    const reported: unknown[] = [];
    const path = publicKeys(old.publicPem);
    const checker = fileProofChecker(path, (error) => reported.push(error));
    const signer = fileProofSigner(next.path);
    const isBelieved = () => checker.isSigned('text', signer.keyId, signer.sign('text'));
    expect(isBelieved()).toBe(false);
    publicKeys(old.publicPem, next.publicPem);
    expect(isBelieved()).toBe(true);
    publicKeys('no keys');
    expect([isBelieved(), isBelieved(), reported.length]).toEqual([true, true, 1]);
    publicKeys(old.publicPem, old.publicPem, old.publicPem);
    expect(isBelieved()).toBe(false);
  });

  it.each([
    ['missing', (path: string) => rmSync(path)],
    ['no key', (path: string) => writeFileSync(path, 'hunter2')],
    ['of another kind', (path: string) => writeFileSync(path, pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey))],
  ])('are refused at start when the file is %s, with a message that does not quote the file', (_what, spoil) => {
    const { path } = pair('one');
    spoil(path);
    for (const open of [() => fileProofSigner(path), () => fileProofChecker(path), () => ownProofChecker(path)]) {
      expect(open).toThrow(expect.objectContaining({ code: 'FAILED_PRECONDITION', message: expect.stringContaining(path) }));
      expect(open).not.toThrow(/hunter2/);
    }
  });
});
