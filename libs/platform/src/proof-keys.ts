import { Buffer } from 'node:buffer';
import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { EtudeError } from '@etude/contracts/errors';
import { z } from 'zod';
import { watchedFile } from './config.js';

/** Settings of the worker that verifies skills. */
export const signingKeyConfig = z.object({
  /** PEM file (PKCS #8) with the Ed25519 key that signs evidence about skills; only its owner may read it. */
  ETUDE_SKILLS_SIGNING_KEY_PATH: z
    .string({ error: 'must be the path of the PEM file with the Ed25519 key that signs evidence about skills' })
    .min(1),
});

/** Settings of every service that runs skills. */
export const publicKeysConfig = z.object({
  /** PEM file with the public keys, or their certificates, that verify evidence about skills. Unset: no evidence is valid. */
  ETUDE_SKILLS_PUBLIC_KEYS_PATH: z.string().min(1).optional(),
});

const HOW =
  'Make one with: openssl genpkey -algorithm ed25519 -out signing-key.pem && openssl pkey -in signing-key.pem -pubout -out public-keys.pem';
const PUBLIC_KEY = /-----BEGIN (PUBLIC KEY|CERTIFICATE)-----[^-]+-----END \1-----/g;

/** Id of a key: the first 16 hexadecimal digits of the SHA-256 of its public key's DER. */
function keyIdOf(key: KeyObject): string {
  const der = (key.type === 'private' ? createPublicKey(key) : key).export({ type: 'spki', format: 'der' });
  return hash('sha256', der).slice(0, 16);
}

/** Signs evidence with the key in a file. @throws EtudeError FAILED_PRECONDITION if the file is missing, unreadable, or holds no Ed25519 key */
export function fileProofSigner(path: string) {
  const key = privateKeyOf(path);
  return { keyId: keyIdOf(key), sign: (text: string) => sign(null, Buffer.from(text, 'utf8'), key).toString('base64') };
}

/** Accepts only signatures by this installation's own key. @throws EtudeError as `fileProofSigner` */
export function ownProofChecker(path: string) {
  const key = createPublicKey(privateKeyOf(path));
  return checkerOf(() => new Map([[keyIdOf(key), key]]));
}

/**
 * Accepts signatures by the public keys in a file, which is read again whenever it changes. Add a new key before the worker signs with it.
 * Remove an old key when its signatures must be refused. Without a path, every signature is refused.
 *
 * If the file is removed or stops parsing, the last good keys stay and the problem is reported once.
 * @throws EtudeError FAILED_PRECONDITION if the file is missing, unreadable, or holds no Ed25519 key
 */
export function fileProofChecker(path: string | undefined, report: (error: unknown) => void = () => undefined) {
  return checkerOf(path === undefined ? () => new Map<string, KeyObject>() : watchedFile(path, () => publicKeysOf(path), report));
}

function checkerOf(keys: () => ReadonlyMap<string, KeyObject>) {
  return {
    isSigned(text: string, keyId: string, signature: string): boolean {
      const key = keys().get(keyId);
      return key !== undefined && verify(null, Buffer.from(text, 'utf8'), key, Buffer.from(signature, 'base64'));
    },
  };
}

function publicKeysOf(path: string): ReadonlyMap<string, KeyObject> {
  const keys = keysIn('ETUDE_SKILLS_PUBLIC_KEYS_PATH', path, (text) => (text.match(PUBLIC_KEY) ?? []).map((one) => createPublicKey(one)));
  return new Map(keys.map((key) => [keyIdOf(key), key]));
}

const privateKeyOf = (path: string) => keysIn('ETUDE_SKILLS_SIGNING_KEY_PATH', path, (text) => [createPrivateKey(text)])[0]!;

/** Errors never quote the contents of a key file. */
function keysIn(setting: string, path: string, parse: (text: string) => readonly KeyObject[]): readonly KeyObject[] {
  const wrong = (why: string) => new EtudeError('FAILED_PRECONDITION', `The key file ${path} of ${setting} ${why}. ${HOW}`);
  let keys: readonly KeyObject[];
  try {
    keys = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const { syscall, code } = error as NodeJS.ErrnoException;
    throw wrong(syscall === undefined ? 'holds no key in PEM' : `can't be read (${code})`);
  }
  if (keys.length === 0) throw wrong('holds no public key');
  const other = keys.find(({ asymmetricKeyType }) => asymmetricKeyType !== 'ed25519');
  if (other !== undefined) throw wrong(`holds a key of type ${other.asymmetricKeyType}, not Ed25519`);
  return keys;
}
