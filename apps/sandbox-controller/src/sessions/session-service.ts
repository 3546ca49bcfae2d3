import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { addService, listenGrpc, type ListeningServer } from '@etude/contracts/grpc-server';
import { portError } from '@etude/platform/health';
import { gauge } from '@etude/platform/metrics';
import { RedisKeys } from '@etude/queue/redis/keys';
import { connectRedis, type QueueLogger } from '@etude/queue/redis/redis';
import { ControllerDirectory } from '@etude/queue/sandboxes/controller-directory';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import type { SandboxDriver } from '@etude/sandbox/sandbox-driver';
import type { SandboxControllerConfig } from '../sandbox-controller.config.js';
import { internalCallers, sandboxesHandlers } from './sandboxes.handlers.js';
import { SessionHost } from './session-host.js';
import { SessionUpkeep } from './session-upkeep.js';

/** How long running calls may take when the service closes. */
const CLOSE_GRACE_MS = 2_000;

/** The address for gateways: `advertised` ("host", "host:port" or undefined), completed with the host and port listened on. */
export function advertisedAddress(advertised: string | undefined, host: string, port: number): string {
  const address = advertised ?? host;
  if (isIP(address) === 6) return `[${address}]:${port}`;
  return /:\d+$/.test(address) ? address : `${address}:${port}`;
}

/** The sessions of a controller and the server over which gateways reach them. */
export class SessionService {
  private constructor(
    private readonly server: ListeningServer,
    private readonly host: SessionHost,
    private readonly upkeep: SessionUpkeep,
    private readonly redis: ReturnType<typeof connectRedis>,
  ) {}

  /**
   * Resolves when gateways can find the service. Waits for Redis.
   *
   * @param token value of `ETUDE_SANDBOX_INTERNAL_TOKEN`
   * @throws EtudeError FAILED_PRECONDITION where the port is taken
   */
  static async start(config: SandboxControllerConfig, token: string, driver: SandboxDriver, logger: QueueLogger): Promise<SessionService> {
    const { ETUDE_REDIS_URL: redisUrl, ETUDE_QUEUE_PREFIX: prefix, ETUDE_SANDBOX_SESSIONS_MAX: sessionsMax } = config;
    const redis = connectRedis(redisUrl, 'producer', logger);
    const keys = new RedisKeys(prefix);
    const store = new SandboxSessionStore(redis, keys);
    const directory = new ControllerDirectory(redis, keys);
    const controllerId = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
    const tenantSessionsMax = config.ETUDE_SANDBOX_SESSIONS_PER_TENANT_MAX;
    const host = new SessionHost({ controllerId, driver, store, sessionsMax, tenantSessionsMax, logger });
    const collect = () => host.sessionCount;
    gauge({ name: 'etude_sandbox_sessions', help: 'Sessions that this controller holds or opens', collect });
    try {
      const server = await listen(config, token, host, logger);
      const address = advertisedAddress(config.ETUDE_SANDBOX_ADVERTISED_ADDRESS, config.ETUDE_SANDBOX_GRPC_HOST, server.port);
      const upkeep = new SessionUpkeep({ host, store, directory, self: { controllerId, address, sessionsMax }, logger });
      const service = new SessionService(server, host, upkeep, redis);
      await upkeep.start().catch(async (error: unknown) => {
        await service.close();
        throw error;
      });
      logger.info({ address, controllerId }, 'serving sessions');
      return service;
    } catch (error) {
      redis.disconnect();
      throw error;
    }
  }

  /** For readiness. */
  async check(): Promise<void> {
    await this.redis.ping();
  }

  /** Leaves sessions to other controllers that can attach to them. Ends all other sessions. */
  async close(): Promise<void> {
    await this.host.shutDown();
    await this.upkeep.close().catch(() => undefined);
    await this.server.close(CLOSE_GRACE_MS);
    this.redis.disconnect();
  }
}

async function listen(config: SandboxControllerConfig, token: string, host: SessionHost, logger: QueueLogger): Promise<ListeningServer> {
  const { ETUDE_SANDBOX_GRPC_HOST: address, ETUDE_SANDBOX_GRPC_PORT: port } = config;
  const onMistake = (method: string, errorId: string, error: unknown) =>
    logger.error({ method, errorId, err: error }, 'Call failed with an error that has no code');
  try {
    return await listenGrpc(address, port, (server) =>
      addService(server, Sandboxes, sandboxesHandlers(host), { open: internalCallers(token), onMistake }),
    );
  } catch (error) {
    throw portError(error as Error, address, port, 'ETUDE_SANDBOX_GRPC_PORT');
  }
}
