import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';

/** An API key or a JWT, or a function that returns one and is called before each call. */
export type Key = string | (() => string);

/** Settings of TLS: paths of PEM files. Without `caFile`, the well-known authorities are trusted. */
export interface Tls {
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
}

export interface ClientSettings {
  /** "host:port" of the gateway. Default: ETUDE_ADDRESS, or the local stack. */
  readonly address?: string;
  /** Default: ETUDE_API_KEY, or the local stack's key. */
  readonly apiKey?: Key;
  /** Default: plain text. */
  readonly tls?: Tls;
  /** Timeout of one call; default 30 s. */
  readonly timeoutMs?: number;
  /** Time for which calls are repeated while the gateway is unreachable; default 30 s, 0: never. */
  readonly retryForMs?: number;
}

/** The folder of a local stack: ETUDE_HOME, or ".etude" here or in a folder above; null without such a folder. */
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

/** Whether the client uses the local stack: neither `given` nor ETUDE_ADDRESS names another gateway. */
export const isLocal = (given: string | undefined) => !given && !process.env['ETUDE_ADDRESS'];

/** @param local whether the client uses the local stack. Another gateway never gets the local stack's key. */
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
