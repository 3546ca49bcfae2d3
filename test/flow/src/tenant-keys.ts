import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';

export const keyOf = (tenant: string) => `key-of-${tenant}`;

/** A key file for the gateway with one key, `keyOf`, for each tenant. */
export function writeKeys(path: string, tenants: readonly string[], role: 'user' | 'operator' = 'user'): void {
  const keys = tenants.map((tenant) => ({
    sha256: createHash('sha256').update(keyOf(tenant)).digest('hex'),
    tenant,
    roles: [...new Set(['user', role])],
  }));
  writeFileSync(path, JSON.stringify({ keys }));
}
