import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { parseRedisUrl, type RedisAddress } from '@etude/contracts/redis-url';
import { EtudeError } from '@etude/contracts/errors';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import { connect as connectPlain } from 'node:net';
import { connect as connectSecurely } from 'node:tls';

/** Errors of a server that is no longer the primary, or no longer owns our slot. None of these servers has run the command. */
const ELSEWHERE = /^(READONLY|MOVED|CLUSTERDOWN|MASTERDOWN)/;

/** @throws EtudeError INVALID_ARGUMENT for a wrong URL, or if a file that it names is unreadable */
export function connectionOptions(url: string): RedisOptions {
  const address = readAddress(url);
  const { kind, hosts, username, password, name, options, tls } = address;
  const secure = tls ? { tls: tlsOf(address) } : {};
  const base = { username, password, ...secure, reconnectOnError };
  if (kind === 'cluster') return { ...base, ...hosts[0], Connector: slotConnector(address, { ...base, ...hosts[0] }) };
  if (kind === 'single') return { ...base, ...hosts[0], db: Number(name) };
  return {
    ...base,
    sentinels: [...hosts],
    name,
    sentinelUsername: options['sentinel-user'],
    sentinelPassword: options['sentinel-password'],
    ...(tls ? { enableTLSForSentinelMode: true, sentinelTLS: secure.tls } : {}),
  };
}

/** Number of replicas that must have a record before it is acknowledged. */
export const replicasOf = (url: string): number => Number(readAddress(url).options.replicas ?? 0);

/** @throws EtudeError INVALID_ARGUMENT if keys with this prefix aren't all in the cluster slot that the URL names */
export function requireSlot(url: string, prefix: string): void {
  const { kind, name } = readAddress(url);
  if (kind !== 'cluster' || /^[^{]*\{([^}]+)\}/.exec(prefix)?.[1] === name) return;
  const message = `a Redis Cluster needs all keys in one slot; set ETUDE_QUEUE_PREFIX to "{${name}}", or end ETUDE_REDIS_URL with the hash tag of the prefix`;
  throw new EtudeError('INVALID_ARGUMENT', message);
}

function readAddress(url: string): RedisAddress {
  try {
    return parseRedisUrl(url);
  } catch (error) {
    throw new EtudeError('INVALID_ARGUMENT', `ETUDE_REDIS_URL is wrong: ${(error as Error).message}`);
  }
}

function tlsOf({ options }: RedisAddress): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
  const files = (['ca', 'cert', 'key'] as const).flatMap((name) => (options[name] ? [[name, options[name]] as const] : []));
  try {
    return Object.fromEntries(files.map(([name, path]) => [name, readFileSync(path)]));
  } catch (cause) {
    throw new EtudeError(
      'INVALID_ARGUMENT',
      `a certificate file in ETUDE_REDIS_URL cannot be read: ${(cause as Error).message}`,
      {},
      { cause },
    );
  }
}

/** After the reconnect, ioredis sends scripts again. Any other command may be part of a transaction, so it fails. */
function reconnectOnError(error: Error): boolean | 2 {
  if (!ELSEWHERE.test(error.message)) return false;
  return (error as { command?: { name?: string } }).command?.name?.startsWith('eval') ? 2 : true;
}

/** Connects to the cluster node that owns the slot of our keys. So BullMQ, blocking reads and subscribers can use a cluster like a single server. */
function slotConnector({ hosts, name, tls }: RedisAddress, options: RedisOptions) {
  return class extends AbstractConnector {
    constructor() {
      super(2_000);
    }

    override async connect(): Promise<Socket> {
      this.connecting = true;
      const owner = await ownerOf(hosts, name, options);
      if (!this.connecting) throw new Error('Connection is closed.');
      this.stream = tls ? connectSecurely({ ...options.tls, ...owner }) : connectPlain(owner);
      this.stream.once('error', (error: Error) => (this.firstError = error));
      return this.stream;
    }
  };
}

type Owner = RedisAddress['hosts'][number];
type Slots = ReadonlyArray<readonly [first: number, last: number, owner: readonly [host: string | null, port: number]]>;

/** Asks each node in turn which node owns the slot. If none knows, answers the first node: connecting to it then gives the error. */
async function ownerOf(hosts: RedisAddress['hosts'], tag: string, options: RedisOptions): Promise<Owner> {
  for (const node of hosts) {
    const asked = new Redis({
      ...options,
      ...node,
      retryStrategy: () => null,
      connectTimeout: 2_000,
      commandTimeout: 2_000,
      lazyConnect: true,
    });
    // The commands below report the error.
    asked.on('error', () => undefined);
    try {
      await asked.connect();
      const slot = await asked.cluster('KEYSLOT', `{${tag}}`);
      const slots = (await asked.cluster('SLOTS')) as unknown as Slots;
      const [, , [host, port] = [null, 0]] = slots.find(([first, last]) => first <= slot && slot <= last) ?? [];
      if (port) return { host: host || node.host, port };
    } catch {
      // The next node may know.
    } finally {
      asked.disconnect();
    }
  }
  return hosts[0] as Owner;
}
