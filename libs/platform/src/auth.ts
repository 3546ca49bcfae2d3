import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { EtudeError } from '@etude/contracts/errors';
import { TenantId } from '@etude/contracts/ids';
import { isSystemActor } from '@etude/contracts/skill-proof';
import { z } from 'zod';

/** `reviewer` decides about the skills of a tenant. `operator` looks after the installation, and may do what a reviewer may. */
export const Role = z.enum(['user', 'reviewer', 'operator']);
export type Role = z.infer<typeof Role>;

export interface Identity {
  readonly tenant: string;
  readonly roles: readonly Role[];
  /** Who did it, in histories: the key's name, or the tenant where the key has none. */
  readonly name: string;
}

/** Whether somebody with these roles may do what this one may. */
export function hasRole(roles: readonly Role[], role: Role): boolean {
  return roles.includes(role) || (role === 'reviewer' && roles.includes('operator'));
}

const KeyEntry = z.strictObject({
  /** SHA-256 of the key in hexadecimal; the key itself is stored nowhere. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits'),
  tenant: TenantId,
  roles: z.array(Role).min(1).default(['user']),
  name: z
    .string()
    .default('')
    .refine((name) => !isSystemActor(name), {
      error: ({ input }) => `${JSON.stringify(input)} is how a part of Etude is called in histories; give the key another name`,
    }),
});
const KeyFile = z.strictObject({ keys: z.array(KeyEntry) });

interface Key extends Identity {
  readonly digest: Buffer;
}

const digestOf = (key: string) => createHash('sha256').update(key, 'utf8').digest();

/** What a key file holds for a key. */
export const keySha256 = (key: string) => digestOf(key).toString('hex');

/** A tenant may be called like a part of Etude, and is told from it. */
export const tenantName = (tenant: string) => (isSystemActor(tenant) ? `tenant ${tenant}` : tenant);

function parseKeys(path: string, text: string): readonly Key[] {
  const fail = (why: string) =>
    new EtudeError(
      'FAILED_PRECONDITION',
      `The key file ${path} ${why}. It must look like {"keys":[{"sha256":"<hex>","tenant":"acme","roles":["user"],"name":"ci"}]}.`,
    );
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw fail('is not JSON');
  }
  const parsed = KeyFile.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw fail(`is wrong at ${issue?.path.join('.') || 'its top'}: ${issue?.message ?? 'unknown'}`);
  }
  return parsed.data.keys.map(({ sha256, tenant, roles, name }) => ({
    digest: Buffer.from(sha256, 'hex'),
    tenant,
    roles,
    name: name || tenantName(tenant),
  }));
}

/**
 * API keys out of a file that is read again whenever it changes, so that a key is added or revoked without a restart.
 *
 * A file that was removed holds no keys. One that stopped parsing leaves the last good keys in place and is reported once.
 */
export class KeyStore {
  #keys: readonly Key[] = [];
  #stamp = '';

  private constructor(
    private readonly path: string,
    private readonly report: (error: unknown) => void,
  ) {}

  /** @throws EtudeError FAILED_PRECONDITION where the file is missing, unreadable or wrong */
  static open(path: string, report: (error: unknown) => void = () => undefined): KeyStore {
    const store = new KeyStore(path, report);
    const stamp = store.#stampNow();
    if (stamp === null)
      throw new EtudeError(
        'FAILED_PRECONDITION',
        `The key file ${path} can't be read. Create it, or point ETUDE_AUTH_KEYS_PATH at the right one.`,
      );
    store.#keys = parseKeys(path, readFileSync(path, 'utf8'));
    store.#stamp = stamp;
    return store;
  }

  #stampNow(): string | null {
    const stat = statSync(this.path, { throwIfNoEntry: false, bigint: true });
    return stat ? `${stat.mtimeNs}/${stat.size}/${stat.ino}` : null;
  }

  #refresh(): void {
    try {
      const stamp = this.#stampNow();
      if (stamp === this.#stamp) return;
      this.#stamp = stamp ?? '';
      this.#keys = stamp === null ? [] : parseKeys(this.path, readFileSync(this.path, 'utf8'));
    } catch (error) {
      this.report(error);
    }
  }

  /** Whose key this is; null where it is nobody's. Takes as long for a wrong key as for a right one. */
  authenticate(bearer: string): Identity | null {
    this.#refresh();
    const digest = digestOf(bearer);
    let found: Key | null = null;
    for (const key of this.#keys) if (timingSafeEqual(key.digest, digest)) found = key;
    return found && { tenant: found.tenant, roles: found.roles, name: found.name };
  }
}

export const loadKeys = (path: string, report?: (error: unknown) => void): KeyStore => KeyStore.open(path, report);
