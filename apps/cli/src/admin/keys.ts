import type { Cli } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { TenantId } from '@etude/contracts/ids';
import { isSystemActor } from '@etude/contracts/skill-proof';
import { table } from '../output.js';
import { keysPath } from '../stack/home.js';
import { addKey, readKeys, type Role } from '../stack/key-file.js';

export const ROLES: readonly Role[] = ['user', 'reviewer', 'operator'];

export interface KeyOptions {
  readonly tenant: string;
  readonly role: readonly Role[];
  readonly name: string;
}

/** Works on the local stack's key file; a running gateway reads it again by itself. */
export async function createKey(cli: Cli, { tenant, role, name }: KeyOptions): Promise<number> {
  const parsed = TenantId.safeParse(tenant);
  if (!parsed.success) throw new CliError(EXIT.usage, `--tenant ${tenant}: ${parsed.error.issues[0]?.message ?? 'is wrong'}`);
  if (isSystemActor(name))
    throw new CliError(EXIT.usage, `--name ${name}: is how a part of Etude is called in histories; give the key another name`);
  const key = addKey(cli.home, { tenant, roles: [...role], name });
  cli.out.data({ key, tenant, roles: role, name }, key);
  cli.out.note(`Kept as a digest in ${keysPath(cli.home)}; this is the only time the key is shown.`);
  return EXIT.ok;
}

export async function listKeys(cli: Cli): Promise<number> {
  const keys = readKeys(cli.home);
  const rows = keys.map(({ sha256, tenant, roles, name }) => [sha256.slice(0, 12), tenant, roles.join(','), name || '-']);
  cli.out.data({ keys }, table([['DIGEST', 'TENANT', 'ROLES', 'NAME'], ...rows]));
  return EXIT.ok;
}
