import { SandboxExecute } from '@etude/contracts/queues';
import { type Tracing, UNTRACED } from '@etude/contracts/tracing';
import type { RunningWorker } from '@etude/platform/run-service';
import { consume } from '@etude/queue/jobs/consumer';
import { RedisKeys } from '@etude/queue/redis/keys';
import { connectRedis, type QueueLogger } from '@etude/queue/redis/redis';
import { DrivenSandboxes } from '@etude/sandbox/driven-sandboxes';
import type { SandboxDriver } from '@etude/sandbox/sandbox-driver';
import type { SandboxControllerConfig } from './sandbox-controller.config.js';
import { sandboxExecuteProcessor } from './sandbox-execute.processor.js';
import type { RunningSessions } from './sessions/session-service.js';
import { startDriver } from './start-driver.js';

/** Below the 10 s after which a closing service is killed. */
const CLOSE_GRACE_MS = 6_000;

/**
 * Starts the consumer of `sandbox.execute` and the sessions of callers, over one driver. Resolves once it takes jobs and serves sessions;
 * waits for Redis. Any number of controllers may run.
 *
 * @throws EtudeError as `startDriver`, FAILED_PRECONDITION
 */
export async function startSandboxController(
  config: SandboxControllerConfig,
  logger: QueueLogger,
  tracing: Tracing = UNTRACED,
): Promise<RunningWorker> {
  const { ETUDE_REDIS_URL: redisUrl, ETUDE_QUEUE_PREFIX: prefix, ETUDE_SANDBOX_CONCURRENCY: concurrency } = config;
  const driver = await startDriver(config, logger);
  const sandboxes = new DrivenSandboxes(driver, tracing);
  const sessions = await startSessions(config, driver, { logger, tracing }).catch(async (error: unknown) => {
    await driver.close();
    throw error;
  });
  const redis = connectRedis(redisUrl, 'worker', logger);
  const processor = sandboxExecuteProcessor(sandboxes, { redis, keys: new RedisKeys(prefix) });
  const consumer = consume(SandboxExecute, processor, { redisUrl, prefix, concurrency, logger, tracing });
  await consumer.ready();
  return {
    checks: () => ({
      [SandboxExecute.name]: () => consumer.check(),
      sandboxes: async () => driver.check(),
      ...(sessions ? { sessions: () => sessions.check() } : {}),
    }),
    drain: (ms) => consumer.drain(ms),
    // Running executions return to the queue. All sandboxes end, except those of sessions that other controllers can take over.
    async close() {
      await Promise.all([sessions?.close(), consumer.close(CLOSE_GRACE_MS)]);
      sandboxes.close();
      await driver.close();
      redis.disconnect();
    },
  };
}

async function startSessions(
  config: SandboxControllerConfig,
  driver: SandboxDriver,
  watching: { readonly logger: QueueLogger; readonly tracing: Tracing },
): Promise<RunningSessions | null> {
  const token = config.ETUDE_SANDBOX_INTERNAL_TOKEN;
  if (token !== undefined) {
    // Loaded only here, because a gRPC server costs memory.
    const { serveSessions } = await import('./sessions/session-service.js');
    return serveSessions(config, token, driver, watching);
  }
  watching.logger.info({}, 'serving no sessions: ETUDE_SANDBOX_INTERNAL_TOKEN is not set');
  return null;
}
