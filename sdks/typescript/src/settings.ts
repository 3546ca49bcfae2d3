import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';

/** An API key or a JWT, or a function that is asked for one before each call. */
export type Key = string | (() => string);

/** TLS of the connection, by paths of PEM files. Without `caFile`: the well-known authorities. */
export interface Tls {
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
}

export interface ClientSettings {
  /** "host:port" of the gateway. Default: ETUDE_ADDRESS, or the local stack. */
  readonly address?: string;
  /** Default: ETUDE_API_KEY, or the local stack's. */
  readonly apiKey?: Key;
  /** Default: plain text. */
  readonly tls?: Tls;
  /** Of one call; default 30 s. */
  readonly timeoutMs?: number;
  /** Time in which calls are repeated while the gateway is away; default 30 s, 0: never. */
  readonly retryForMs?: number;
}

/** The folder of a local stack: ETUDE_HOME, or ".etude" here or in a folder above; null if there is none. */
function home(): string | null {
  const given = process.env['ETUDE_HOME'];
  if (given) return given;
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.etude', 'ports.json'))) return join(folder, '.etude');
    if (dirname(folder) === folder) return null;
  }
}

export function findAddress(given: string | undefined): string {
  const address = given || process.env['ETUDE_ADDRESS'];
  if (address) return address;
  const folder = home();
  if (folder === null || !existsSync(join(folder, 'ports.json')))
    throw new Error('no gateway: pass address, set ETUDE_ADDRESS, or start a local stack with ./etude up --detach');
  const ports = JSON.parse(readFileSync(join(folder, 'ports.json'), 'utf8')) as { readonly grpc: number };
  return `127.0.0.1:${ports.grpc}`;
}

/** Whether the gateway is the local stack's: neither `given` nor ETUDE_ADDRESS names one. */
export const isLocal = (given: string | undefined) => !given && !process.env['ETUDE_ADDRESS'];

/** @param local whether the local stack's key may be taken: a key is for its own gateway only */
export function findKey(given: Key | undefined, local: boolean): Key {
  const key = given || process.env['ETUDE_API_KEY'];
  if (key) return key;
  const folder = local ? home() : null;
  return folder !== null && existsSync(join(folder, 'key')) ? readFileSync(join(folder, 'key'), 'utf8').trim() : '';
}

export function credentialsOf(tls: Tls | undefined): ChannelCredentials {
  if (!tls) return credentials.createInsecure();
  const [ca, key, cert] = [tls.caFile, tls.keyFile, tls.certFile].map((path) => (path === undefined ? null : readFileSync(path)));
  return credentials.createSsl(ca, key, cert);
}
