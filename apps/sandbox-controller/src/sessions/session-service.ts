import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { addService, listenGrpc, type ListeningServer } from '@etude/contracts/grpc-server';
import type { Tracing } from '@etude/contracts/tracing';
import { portError } from '@etude/platform/health';
import { serverTls } from '@etude/platform/tls';
import { gauge } from '@etude/platform/metrics';
import { RedisKeys } from '@etude/queue/redis/keys';
import { connectRedis, type QueueLogger } from '@etude/queue/redis/redis';
import { CONTROLLER_HEARTBEAT_MS, type ControllerAnnouncement, ControllerDirectory } from '@etude/queue/sandboxes/controllers';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { limitsFrom } from '@etude/queue/limits/tenant-limits';
import type { SandboxDriver } from '@etude/sandbox/sandbox-driver';
import type { SandboxControllerConfig } from '../sandbox-controller.config.js';
import { internalCallers, sandboxesHandlers } from './sandboxes.handlers.js';
import { SessionHost } from './session-host.js';

const CLOSE_GRACE_MS = 2_000;

/** The address for gateways: `advertised` ("host", "host:port" or undefined). Missing parts are taken from the own address, `host` and `port`. */
export function advertisedAddress(advertised: string | undefined, host: string, port: number): string {
  const address = advertised ?? host;
  if (isIP(address) === 6) return `[${address}]:${port}`;
  return /:\d+$/.test(address) ? address : `${address}:${port}`;
}

interface Watching {
  readonly logger: QueueLogger;
  readonly tracing: Tracing;
}

export interface RunningSessions {
  /** For readiness. @throws Error while Redis does not answer */
  check(): Promise<void>;
  /** Leaves the sessions that other controllers can take over. Ends all other sessions. */
  close(): Promise<void>;
}

/**
 * Serves the sessions of a controller. Waits for Redis, and resolves when gateways can find the controller.
 *
 * @param token value of `ETUDE_SANDBOX_INTERNAL_TOKEN`
 * @throws EtudeError FAILED_PRECONDITION if the port is taken
 */
export async function serveSessions(
  config: SandboxControllerConfig,
  token: string,
  driver: SandboxDriver,
  { logger, tracing }: Watching,
): Promise<RunningSessions> {
  const { ETUDE_REDIS_URL: redisUrl, ETUDE_QUEUE_PREFIX: prefix, ETUDE_SANDBOX_SESSIONS_MAX: sessionsMax } = config;
  const redis = connectRedis(redisUrl, 'producer', logger);
  const keys = new RedisKeys(prefix);
  const store = new SandboxSessionStore(redis, keys);
  const directory = new ControllerDirectory(redis, keys);
  const controllerId = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
  const limitsOf = limitsFrom(config);
  const tenantSessionsMax = (tenant: string) => limitsOf(tenant).sandboxes;
  const host = new SessionHost({ controllerId, driver, store, sessionsMax, tenantSessionsMax, logger });
  gauge({ name: 'etude_sandbox_sessions', help: 'Sessions that this controller holds or opens', collect: () => host.sessionCount });
  const server = await listen(config, token, host, { logger, tracing }).catch((error: unknown) => {
    redis.disconnect();
    throw error;
  });
  const address = advertisedAddress(config.ETUDE_SANDBOX_ADVERTISED_ADDRESS, config.ETUDE_SANDBOX_GRPC_HOST, server.port);
  const upkeep = new SessionUpkeep({ host, store, directory, self: { controllerId, address, sessionsMax }, logger });
  const close = async () => {
    await host.shutDown();
    await upkeep.close().catch(() => undefined);
    await server.close(CLOSE_GRACE_MS);
    redis.disconnect();
  };
  await upkeep.start().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  logger.info({ address, controllerId }, 'serving sessions');
  return { check: async () => void (await redis.ping()), close };
}

async function listen(
  config: SandboxControllerConfig,
  token: string,
  host: SessionHost,
  { logger, tracing }: Watching,
): Promise<ListeningServer> {
  const { ETUDE_SANDBOX_GRPC_HOST: address, ETUDE_SANDBOX_GRPC_PORT: port } = config;
  const onMistake = (method: string, errorId: string, error: unknown) =>
    logger.error({ method, errorId, err: error }, 'Call failed with an error that has no code');
  try {
    const add: Parameters<typeof listenGrpc>[2] = (server) =>
      addService(server, Sandboxes, sandboxesHandlers(host, tracing), { open: internalCallers(token), onMistake });
    const report = (error: unknown) => logger.error({ err: error }, 'The TLS files are wrong. The last valid files stay in use');
    return await listenGrpc(address, port, add, serverTls(config, report)?.grpc);
  } catch (error) {
    throw portError(error as Error, address, port, 'ETUDE_SANDBOX_GRPC_PORT');
  }
}

/** A controller without a heartbeat for this long counts as dead. A jump of Redis's clock has no effect, because this process measures the time. */
const CONFIRM_MS = 2_000;

interface SessionUpkeepParts {
  readonly host: SessionHost;
  readonly store: SandboxSessionStore;
  readonly directory: ControllerDirectory;
  readonly self: Pick<ControllerAnnouncement, 'controllerId' | 'address' | 'sessionsMax'>;
  readonly logger: QueueLogger;
}

/** Regular work of a controller: sends its heartbeat, reconciles its sessions with the store, and takes over sessions of dead controllers. */
export class SessionUpkeep {
  readonly #closing = new AbortController();
  #rounds: Promise<void> = Promise.resolve();
  /** Controllers without a heartbeat, and the time when this controller noticed. */
  #suspects = new Map<string, number>();

  constructor(private readonly parts: SessionUpkeepParts) {}

  /** Resolves when gateways can find the controller. Waits for Redis. */
  async start(): Promise<void> {
    await this.#announce();
    this.#rounds = this.#run();
  }

  /** Withdraws the controller, so that other controllers take its sessions over. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#rounds;
    await this.parts.directory.withdraw(this.parts.self.controllerId);
  }

  /** One round. Public for tests. */
  async look(): Promise<void> {
    await this.#announce();
    await this.parts.host.reconcile();
    for (const dead of await this.#dead()) await this.#inherit(dead);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let failing = false;
    while (await sleep(CONTROLLER_HEARTBEAT_MS, true, { signal }).catch(() => false)) {
      try {
        await this.look();
        failing = false;
      } catch (error) {
        if (!failing)
          this.parts.logger.warn({ reason: (error as Error).message }, 'heartbeat or takeover of sessions failed; it is retried');
        failing = true;
      }
    }
  }

  async #announce(): Promise<void> {
    const { directory, self, host } = this.parts;
    await directory.announce({ ...self, sessions: host.sessionCount, ...host.pool });
  }

  /** Ids of dead controllers: they shut down, or had no heartbeat in two rounds CONFIRM_MS apart. */
  async #dead(): Promise<string[]> {
    const now = performance.now();
    const dead = await this.parts.directory.dead();
    this.#suspects = new Map(dead.map(({ controllerId: id }) => [id, this.#suspects.get(id) ?? now]));
    return dead.filter(({ controllerId: id, left }) => left || now - this.#suspects.get(id)! >= CONFIRM_MS).map((one) => one.controllerId);
  }

  /** Takes over the sessions of a dead controller. Other controllers also try, and the first wins. */
  async #inherit(dead: string): Promise<void> {
    const { store, host, directory } = this.parts;
    for (const { tenant, id } of await store.heldBy(dead)) {
      const stored = await store.getUnlessDamaged(tenant, id);
      if (stored?.session.state !== 'open' || stored.controllerId !== dead) continue;
      await host.takeOver(stored);
    }
    await directory.forget(dead);
  }
}
