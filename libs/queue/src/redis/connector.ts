import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { parseRedisUrl, type RedisAddress } from '@etude/contracts/redis-url';
import { EtudeError } from '@etude/contracts/errors';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import { connect as connectPlain } from 'node:net';
import { connect as connectSecurely } from 'node:tls';

/** Failures of a primary that isn't one any more, or of a node that no longer has our slot. None of them has run the command. */
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

/** @throws EtudeError INVALID_ARGUMENT where keys under this prefix would not all be in the slot of the URL */
export function requireSlot(url: string, prefix: string): void {
  const { kind, name } = readAddress(url);
  if (kind !== 'cluster' || /^[^{]*\{([^}]+)\}/.exec(prefix)?.[1] === name) return;
  const message = `a Redis Cluster needs all keys in one slot; set ETUDE_QUEUE_PREFIX to "{${name}}", or end ETUDE_REDIS_URL in its hash tag`;
  throw new EtudeError('INVALID_ARGUMENT', message);
}

function readAddress(url: string): RedisAddress {
  try {
    return parseRedisUrl(url);
  } catch (error) {
    throw new EtudeError('INVALID_ARGUMENT', `ETUDE_REDIS_URL ${(error as Error).message}`);
  }
}

function tlsOf({ options }: RedisAddress): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
  const files = (['ca', 'cert', 'key'] as const).flatMap((name) => (options[name] ? [[name, options[name]] as const] : []));
  try {
    return Object.fromEntries(files.map(([name, path]) => [name, readFileSync(path)]));
  } catch (cause) {
    throw new EtudeError('INVALID_ARGUMENT', `a file of ETUDE_REDIS_URL cannot be read: ${(cause as Error).message}`, {}, { cause });
  }
}

/** Scripts are sent again after the reconnect. Another command may be part of a transaction, so it fails. */
function reconnectOnError(error: Error): boolean | 2 {
  if (!ELSEWHERE.test(error.message)) return false;
  return (error as { command?: { name?: string } }).command?.name?.startsWith('eval') ? 2 : true;
}

/**
 * Connects to the node of a cluster that owns the slot of our keys. So a cluster is used like a single server, by BullMQ, blocking reads
 * and subscribers too.
 */
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

/** Asks one node after the other. If none knows it, the first one is the answer, and its connection gives the reason. */
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
    // The failure is the one of the command below.
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
