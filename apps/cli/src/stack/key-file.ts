import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { keyPath, keysPath } from './home.js';

const Role = z.enum(['user', 'reviewer', 'operator']);
export type Role = z.infer<typeof Role>;
const KeyEntry = z.object({ sha256: z.string(), tenant: z.string(), roles: z.array(Role), name: z.string().default('') });
export type KeyEntry = z.infer<typeof KeyEntry>;
const KeyFile = z.object({ keys: z.array(KeyEntry) });

/** Owner only: whoever reads a key is the tenant. */
function writePrivate(path: string, text: string): void {
  const next = `${path}.${process.pid}`;
  writeFileSync(next, text, { mode: 0o600 });
  chmodSync(next, 0o600);
  renameSync(next, path);
}

/** Digests only. No file, no keys. */
export function readKeys(home: string): KeyEntry[] {
  if (!existsSync(keysPath(home))) return [];
  return KeyFile.parse(JSON.parse(readFileSync(keysPath(home), 'utf8'))).keys;
}

/** Adds a key of 256 random bits and answers it; only its SHA-256 is stored. */
export function addKey(home: string, entry: Omit<KeyEntry, 'sha256'>): string {
  const key = `etude_${randomBytes(32).toString('base64url')}`;
  const sha256 = createHash('sha256').update(key, 'utf8').digest('hex');
  mkdirSync(home, { recursive: true });
  writePrivate(keysPath(home), `${JSON.stringify({ keys: [...readKeys(home), { sha256, ...entry }] }, null, 2)}\n`);
  return key;
}

/** The command line's own key, made once per home: tenant "local", with every role. */
export function ensureLocalKey(home: string): void {
  const known = readKeys(home);
  if (existsSync(keyPath(home))) {
    const sha256 = createHash('sha256')
      .update(readFileSync(keyPath(home), 'utf8').trim(), 'utf8')
      .digest('hex');
    if (known.some((key) => key.sha256 === sha256)) return;
  }
  writePrivate(
    keyPath(home),
    `${addKey(home, { tenant: 'local', roles: ['user', 'reviewer', 'operator'], name: 'etude command line' })}\n`,
  );
}
