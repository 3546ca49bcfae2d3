import { generateKeyPairSync, hash, randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';

/** File with the API key that the command line uses; readable by its owner only. */
export const keyPath = (home: string) => join(home, 'key');
/** File with the digests of all keys, which the gateway reads. */
export const keysPath = (home: string) => join(home, 'keys.json');
export const logPath = (home: string, name: string) => join(home, 'logs', `${name}.log`);
export const portsPath = (home: string) => join(home, 'ports.json');
export const memoryPath = (home: string) => join(home, 'memory.sqlite');
/** Private key that signs evidence about skills; readable by its owner only. */
export const proofSigningKeyPath = (home: string) => join(home, 'skill-signing-key.pem');
/** Public keys that verify evidence about skills. Evidence signed by other keys isn't trusted. */
export const proofPublicKeysPath = (home: string) => join(home, 'skill-public-keys.pem');

const Role = z.enum(['user', 'reviewer', 'operator']);
export type Role = z.infer<typeof Role>;
const KeyEntry = z.object({
  sha256: z.string(),
  tenant: z.string(),
  roles: z.array(Role).default(['user']),
  name: z.string().default(''),
  /** Time in RFC 3339. Absent: the key never expires. */
  expires: z.string().optional(),
});
export type KeyEntry = z.infer<typeof KeyEntry>;
const KeyFile = z.object({ keys: z.array(KeyEntry) });

/** Replaces a file that only its owner can read, because a key gives access to all data of the key's tenant. */
function writePrivate(path: string, text: string): void {
  const next = `${path}.${process.pid}`;
  writeFileSync(next, text, { mode: 0o600 });
  renameSync(next, path);
}

export function readKeys(path: string): KeyEntry[] {
  if (!existsSync(path)) return [];
  return KeyFile.parse(JSON.parse(readFileSync(path, 'utf8'))).keys;
}

export function writeKeys(path: string, keys: readonly KeyEntry[]): void {
  mkdirSync(dirname(path), { recursive: true });
  writePrivate(path, `${JSON.stringify({ keys }, null, 2)}\n`);
}

/** Adds a key of 256 random bits and returns it; only its SHA-256 is stored. */
export function addKey(path: string, entry: Omit<KeyEntry, 'sha256'>): string {
  const key = `etude_${randomBytes(32).toString('base64url')}`;
  const sha256 = hash('sha256', key);
  writeKeys(path, [...readKeys(path), { sha256, ...entry }]);
  return key;
}

/** Makes the command line's own key once per home, for tenant "local" with every role. */
export function ensureLocalKey(home: string): void {
  const sha256 = existsSync(keyPath(home)) ? hash('sha256', readFileSync(keyPath(home), 'utf8').trim()) : '';
  if (readKeys(keysPath(home)).some((key) => key.sha256 === sha256)) return;
  const key = addKey(keysPath(home), { tenant: 'local', roles: ['user', 'reviewer', 'operator'], name: "the local stack's key" });
  writePrivate(keyPath(home), `${key}\n`);
}

/** Makes the pair of keys that sign and verify evidence about skills, once per home; readable by their owner only. */
export function ensureProofKeys(home: string): void {
  if (existsSync(proofSigningKeyPath(home))) return;
  mkdirSync(home, { recursive: true });
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  // Older public keys stay, because stored evidence was signed with them.
  appendFileSync(proofPublicKeysPath(home), publicKey.export({ type: 'spki', format: 'pem' }), { mode: 0o600 });
  writeFileSync(proofSigningKeyPath(home), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
}
