import { resolve } from 'node:path';
import { TenantId } from '@etude/contracts/ids';
import { isReservedName } from '@etude/contracts/skill-proof';
import type { Cli } from '../cli.js';
import { type Entry, type Flag, hand } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { addKey, type KeyEntry, keysPath, readKeys, type Role, writeKeys } from '../home/home.js';
import { duration } from '../options.js';
import { table } from '../output.js';

const ROLES: readonly Role[] = ['user', 'reviewer', 'operator'];
const SHOWN_CHARS = 12;

interface FileOption {
  readonly file?: string;
}
interface KeyOptions extends FileOption {
  readonly tenant: string;
  readonly role: readonly Role[];
  readonly name: string;
  /** Time until the key expires, in ms. */
  readonly expires?: number;
}

const pathOf = (cli: Cli, { file }: FileOption) => (file === undefined ? keysPath(cli.home) : resolve(file));
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

function print(cli: Cli, key: string, { tenant, roles, name, expires }: Omit<KeyEntry, 'sha256'>, path: string): number {
  cli.out.data({ key, tenant, roles, name, ...(expires === undefined ? {} : { expires }) }, key);
  cli.out.note(`Only the key's digest is stored, in ${path}. The key is not shown again.`);
  return EXIT.ok;
}

/** A running gateway reloads the key file. */
export async function createKey(cli: Cli, options: KeyOptions): Promise<number> {
  const { tenant, role, name, expires } = options;
  const parsed = TenantId.safeParse(tenant);
  if (!parsed.success) throw new CliError(EXIT.usage, `--tenant ${tenant}: ${parsed.error.issues[0]?.message ?? 'is wrong'}`);
  if (isReservedName(name))
    throw new CliError(EXIT.usage, `--name ${name}: this name is reserved for parts of Etude or for subjects of JWTs; choose another name`);
  const entry = { tenant, roles: [...role], name, ...(expires === undefined ? {} : { expires: inMs(expires) }) };
  const path = pathOf(cli, options);
  return print(cli, addKey(path, entry), entry, path);
}

function endOf({ expires }: KeyEntry): string {
  if (expires === undefined) return '-';
  return Date.parse(expires) < Date.now() ? `expired ${expires}` : expires;
}

async function listKeys(cli: Cli, options: FileOption): Promise<number> {
  const keys = readKeys(pathOf(cli, options));
  const rows = keys.map((key) => [key.sha256.slice(0, SHOWN_CHARS), key.tenant, key.roles.join(','), key.name || '-', endOf(key)]);
  cli.out.data({ keys }, table([['DIGEST', 'TENANT', 'ROLES', 'NAME', 'EXPIRES'], ...rows]));
  return EXIT.ok;
}

function keyCalled(keys: readonly KeyEntry[], which: string): KeyEntry {
  const found = keys.filter(({ name, sha256 }) => name === which || (which.length >= 6 && sha256.startsWith(which)));
  if (found.length === 1) return found[0]!;
  const why = found.length === 0 ? `no key is called ${which}` : `${found.length} keys are called ${which}; give the beginning of a digest`;
  throw new CliError(found.length === 0 ? EXIT.notFound : EXIT.usage, why, ['./etude keys list shows names and digests']);
}

async function revokeKey(cli: Cli, options: FileOption, [which = '']: readonly string[]): Promise<number> {
  const path = pathOf(cli, options);
  const keys = readKeys(path);
  const gone = keyCalled(keys, which);
  writeKeys(
    path,
    keys.filter((key) => key !== gone),
  );
  cli.out.data({ revoked: gone.sha256 }, `revoked ${gone.name || gone.sha256.slice(0, SHOWN_CHARS)} of tenant ${gone.tenant}`);
  return EXIT.ok;
}

async function rotateKey(cli: Cli, options: FileOption & { readonly grace: number }, [which = '']: readonly string[]): Promise<number> {
  const path = pathOf(cli, options);
  const keys = readKeys(path);
  const old = keyCalled(keys, which);
  const until = inMs(options.grace);
  const ends = old.expires !== undefined && Date.parse(old.expires) < Date.parse(until) ? old.expires : until;
  writeKeys(
    path,
    keys.map((key) => (key === old ? { ...key, name: key.name && `${key.name} (old)`, expires: ends } : key)),
  );
  const entry = { tenant: old.tenant, roles: old.roles, name: old.name };
  const key = addKey(path, entry);
  cli.out.note(`The old key is valid until ${ends}.`);
  return print(cli, key, entry, path);
}

const FILE: Record<string, string | Flag> = {
  '--file <path>': "key file to use instead of the local stack's, such as one for a Kubernetes Secret",
};

export const KEYS: readonly Entry[] = [
  hand<KeyOptions>({
    command: 'create',
    help: 'create a key and print it; only its digest is stored',
    flags: {
      '--tenant <tenant>': { help: 'the tenant whose data the key may access', required: true },
      '--role <role...>': { help: 'a role of the key; repeatable', choices: ROLES, usual: ['user'] },
      '--name <name>': { help: 'a name for the key', usual: '' },
      '--expires <time>': { help: 'time until the key expires, such as 90d (default: never)', parse: duration },
      ...FILE,
    },
    run: createKey,
  }),
  hand<FileOption>({
    command: 'list',
    help: 'list the keys with their digests, tenants, roles and expiry times',
    flags: FILE,
    run: listKeys,
  }),
  hand<FileOption & { readonly grace: number }>({
    command: 'rotate <key>',
    help: 'replace a key, named by its name or digest; the old key expires after --grace',
    flags: { '--grace <time>': { help: 'time for which the old key stays valid', parse: duration, usual: 86_400_000 }, ...FILE },
    run: rotateKey,
  }),
  hand<FileOption>({ command: 'revoke <key>', help: 'remove a key, by its name or digest', flags: FILE, run: revokeKey }),
];
