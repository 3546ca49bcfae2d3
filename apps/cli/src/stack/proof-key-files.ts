import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { proofPublicKeysPath, proofSigningKeyPath } from './home.js';

/** The signing key is the consolidation worker's alone. */
export interface ProofKeySettings {
  readonly signing: { readonly ETUDE_SKILLS_SIGNING_KEY_PATH: string };
  readonly believing: { readonly ETUDE_SKILLS_PUBLIC_KEYS_PATH: string };
}

/**
 * The pair of keys that evidence about skills is signed with and believed by, made once per home; readable by their owner only. A
 * signing key without its public one, as after a restored backup, gets it added.
 */
export function ensureProofKeys(home: string): ProofKeySettings {
  mkdirSync(home, { recursive: true });
  const [signing, believed] = [proofSigningKeyPath(home), proofPublicKeysPath(home)];
  if (!existsSync(signing)) {
    const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(signing, pem, { mode: 0o600, flag: 'wx' });
  }
  const own = pemOf(createPublicKey(readFileSync(signing)));
  const known = existsSync(believed) ? readFileSync(believed, 'utf8') : '';
  if (!known.includes(own.trim())) writeFileSync(believed, `${known}${own}`, { mode: 0o600 });
  return { signing: { ETUDE_SKILLS_SIGNING_KEY_PATH: signing }, believing: { ETUDE_SKILLS_PUBLIC_KEYS_PATH: believed } };
}

const pemOf = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' });
