import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function writeProofKeys(dir: string): { ETUDE_SKILLS_SIGNING_KEY_PATH: string; ETUDE_SKILLS_PUBLIC_KEYS_PATH: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const [signing, believed] = [join(dir, 'skill-signing-key.pem'), join(dir, 'skill-public-keys.pem')];
  writeFileSync(signing, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  writeFileSync(believed, publicKey.export({ type: 'spki', format: 'pem' }));
  return { ETUDE_SKILLS_SIGNING_KEY_PATH: signing, ETUDE_SKILLS_PUBLIC_KEYS_PATH: believed };
}
