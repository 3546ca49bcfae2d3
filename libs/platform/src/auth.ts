import { hash, timingSafeEqual } from 'node:crypto';
import { existsSync } from 'node:fs';
import { EtudeError } from '@etude/contracts/errors';
import { TenantId } from '@etude/contracts/ids';
import { isReservedName, isSystemActor } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import { readJsonFile, watchedFile } from './config.js';

/** A `reviewer` decides on the skills of a tenant. An `operator` runs the installation, and may do all that a reviewer may. */
export const Role = z.enum(['user', 'reviewer', 'operator']);
export type Role = z.infer<typeof Role>;

export interface Identity {
  readonly tenant: string;
  readonly roles: readonly Role[];
  /** Author in histories: the key's name, "subject NAME" for a JWT, or the tenant's name if the key has none. */
  readonly name: string;
  /** The end user that the caller is bound to. Absent: requests may name any user. */
  readonly user?: string;
}

export function hasRole(roles: readonly Role[], role: Role): boolean {
  return roles.includes(role) || (role === 'reviewer' && roles.includes('operator'));
}

const KeyEntry = z.strictObject({
  /** SHA-256 of the key in hexadecimal. The key itself is never stored. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits'),
  tenant: TenantId,
  roles: z.array(Role).min(1).default(['user']),
  name: z
    .string()
    .default('')
    .refine((name) => !isReservedName(name), {
      error: ({ input }) =>
        `${JSON.stringify(input)} is reserved, because histories use it for a part of Etude or the subject of a JWT; give the key another name`,
    }),
  /** RFC 3339 time from which the key is refused. Absent: never. */
  expires: z.iso.datetime({ offset: true }).optional(),
});
const KeyFile = z.strictObject({ keys: z.array(KeyEntry) });

interface Key extends Identity {
  readonly digest: Buffer;
  /** ms since 1970; Infinity: never. */
  readonly expiresAt: number;
}

export interface KeyChange {
  readonly tenant: string;
  readonly call: 'keys.added' | 'keys.removed';
  /** The key's name, and the beginning of the key's digest. */
  readonly target: string;
  /** Digest of the change, equal in every process. */
  readonly digest: string;
}

/** The tenant's name in histories, changed if it could be mistaken for a part of Etude. */
export const tenantName = (tenant: string) => (isSystemActor(tenant) ? `tenant ${tenant}` : tenant);

function readKeys(path: string): readonly Key[] {
  return readJsonFile('key file', path, KeyFile).keys.map(({ sha256, tenant, roles, name, expires }) => ({
    digest: Buffer.from(sha256, 'hex'),
    tenant,
    roles,
    name: name || tenantName(tenant),
    expiresAt: expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires),
  }));
}

function changesOf(before: readonly Key[], after: readonly Key[]): KeyChange[] {
  const whole = after
    .map(({ digest }) => digest.toString('hex'))
    .toSorted()
    .join(' ');
  const changes = (call: KeyChange['call'], keys: readonly Key[], others: readonly Key[]) =>
    keys
      .filter(({ digest }) => !others.some((other) => other.digest.equals(digest)))
      .map(({ tenant, name, digest }) => {
        const hex = digest.toString('hex');
        return { tenant, call, target: `${name} ${hex.slice(0, 12)}`, digest: hash('sha256', `${call} ${hex} ${whole}`) };
      });
  return [...changes('keys.added', after, before), ...changes('keys.removed', before, after)];
}

/**
 * Loads API keys from a file that is read again whenever it changes, so that adding or revoking a key needs no restart.
 *
 * A file that was removed holds no keys. If the file stops parsing, the last good keys stay and the error is reported once.
 * @throws EtudeError FAILED_PRECONDITION if the file is missing, unreadable or wrong
 */
export function loadKeys(
  path: string,
  report: (error: unknown) => void = () => undefined,
  onChange: (change: KeyChange) => void = () => undefined,
) {
  if (!existsSync(path)) {
    const message = `There is no key file ${path}. Create it, for example with {"keys":[{"sha256":"<hex>","tenant":"acme","roles":["user"],"name":"ci"}]}, or set ETUDE_AUTH_KEYS_PATH to the right file.`;
    throw new EtudeError('FAILED_PRECONDITION', message);
  }
  let known: readonly Key[] | null = null;
  const read = () => {
    const next = existsSync(path) ? readKeys(path) : [];
    if (known !== null) for (const change of changesOf(known, next)) onChange(change);
    return (known = next);
  };
  const keys = watchedFile(path, read, report);
  return {
    /** The identity behind a key; null for an unknown key. The check takes the same time for every key. */
    authenticate(bearer: string): Identity | null {
      const digest = hash('sha256', bearer, 'buffer');
      let found: Key | null = null;
      for (const key of keys()) if (timingSafeEqual(key.digest, digest) && Date.now() < key.expiresAt) found = key;
      return found && { tenant: found.tenant, roles: found.roles, name: found.name };
    },
  };
}
export type KeyStore = ReturnType<typeof loadKeys>;
