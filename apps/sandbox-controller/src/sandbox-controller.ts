import { SandboxExecute } from '@etude/contracts/queues';
import type { HealthCheck } from '@etude/platform/health';
import type { RunningWorker } from '@etude/platform/run-service';
import { ExecutionStore } from '@etude/queue/executions/executions';
import { consume, type Consumer } from '@etude/queue/jobs/consumer';
import { RedisKeys } from '@etude/queue/redis/keys';
import { connectRedis, type QueueLogger } from '@etude/queue/redis/redis';
import { CancelBus } from '@etude/queue/redis/channels';
import { DrivenSandboxes } from '@etude/sandbox/driven-sandboxes';
import type { SandboxDriver } from '@etude/sandbox/sandbox-driver';
import type { SandboxControllerConfig } from './sandbox-controller.config.js';
import { sandboxExecuteProcessor, tellOfDeath } from './sandbox-execute.processor.js';
import type { SessionService } from './sessions/session-service.js';
import { startDriver } from './start-driver.js';

/** Below the 10 s after which a closing service is killed. */
const CLOSE_GRACE_MS = 6_000;

interface Parts {
  readonly driver: SandboxDriver;
  readonly sandboxes: DrivenSandboxes;
  readonly redis: ReturnType<typeof connectRedis>;
  readonly consumer: Consumer;
  /** null where ETUDE_SANDBOX_INTERNAL_TOKEN is not set. */
  readonly sessions: SessionService | null;
}

/** The consumer of `sandbox.execute` and the sessions of callers, over one driver. Any number of controllers may run. */
export class SandboxController implements RunningWorker {
  #closed: Promise<void> | null = null;

  private constructor(private readonly parts: Parts) {}

  /** Waits for Redis. Resolves once it takes jobs and serves sessions. @throws EtudeError as `startDriver`, FAILED_PRECONDITION */
  static async start(config: SandboxControllerConfig, logger: QueueLogger): Promise<SandboxController> {
    const { ETUDE_REDIS_URL: redisUrl, ETUDE_QUEUE_PREFIX: prefix, ETUDE_SANDBOX_CONCURRENCY: concurrency } = config;
    const driver = await startDriver(config, logger);
    const sandboxes = new DrivenSandboxes(driver);
    const sessions = await startSessions(config, driver, logger).catch(async (error: unknown) => {
      await driver.close();
      throw error;
    });
    const redis = connectRedis(redisUrl, 'worker', logger);
    const keys = new RedisKeys(prefix);
    const executions = new ExecutionStore(redis, keys);
    const cancels = new CancelBus(redis, keys.cancelExecution);
    await cancels.ready();
    const processor = sandboxExecuteProcessor({ sandboxes, executions, cancels });
    const consumer = consume(SandboxExecute, processor, { redisUrl, prefix, concurrency, logger, onDead: tellOfDeath(executions) });
    await consumer.ready();
    return new SandboxController({ driver, sandboxes, redis, consumer, sessions });
  }

  /** Readiness checks: executions are taken, sandboxes are available, and sessions are served. */
  checks(): Record<string, HealthCheck> {
    const { consumer, driver, sessions } = this.parts;
    const checks: Record<string, HealthCheck> = { [SandboxExecute.name]: () => consumer.check(), sandboxes: async () => driver.check() };
    return sessions ? { ...checks, sessions: () => sessions.check() } : checks;
  }

  /** Running executions return to the queue. All sandboxes end, except those of sessions that other controllers can take over. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { consumer, sessions, sandboxes, driver, redis } = this.parts;
    await Promise.all([sessions?.close(), consumer.close(CLOSE_GRACE_MS)]);
    sandboxes.close();
    await driver.close();
    redis.disconnect();
  }
}

async function startSessions(config: SandboxControllerConfig, driver: SandboxDriver, logger: QueueLogger): Promise<SessionService | null> {
  const token = config.ETUDE_SANDBOX_INTERNAL_TOKEN;
  if (token !== undefined) {
    // Loaded only here, because a gRPC server costs memory.
    const { SessionService: Service } = await import('./sessions/session-service.js');
    return Service.start(config, token, driver, logger);
  }
  logger.info({}, 'serving no sessions: ETUDE_SANDBOX_INTERNAL_TOKEN is not set');
  return null;
}
