import { errorCode, isAbort } from '@etude/contracts/errors';
import { SandboxExecute } from '@etude/contracts/queues';
import { type Tracing, UNTRACED } from '@etude/contracts/tracing';
import { counter, gauge, histogram } from '@etude/platform/metrics';
import type { RunningWorker } from '@etude/platform/run-service';
import { consume } from '@etude/queue/jobs/consumer';
import { RedisKeys } from '@etude/queue/redis/keys';
import { connectRedis, type QueueLogger } from '@etude/queue/redis/redis';
import { DrivenSandboxes } from '@etude/sandbox/driven-sandboxes';
import type { ClaimedSandbox, SandboxDriver, SandboxShape } from '@etude/sandbox/sandbox-driver';
import { localOptions, needed, type SandboxControllerConfig } from './sandbox-controller.config.js';
import { sandboxExecuteProcessor } from './sandbox-execute.processor.js';
import type { RunningSessions } from './sessions/session-service.js';

/** Shorter than the 10 s after which a closing service is killed. */
const CLOSE_GRACE_MS = 6_000;

/**
 * Starts the consumer of `sandbox.execute` and the sessions of callers, over one driver. Waits for Redis, and resolves once it takes jobs
 * and serves sessions. Any number of controllers may run.
 *
 * @throws EtudeError those of `startDriver`; FAILED_PRECONDITION if the port for sessions is taken
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

/** How long the first list of the cluster's pods may take. */
const START_TIMEOUT_MS = 60_000;

/**
 * Starts the configured driver and measures its claims. Loads only that driver's code, since the Kubernetes client takes much memory.
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING, SANDBOX_UNAVAILABLE, FAILED_PRECONDITION or INVALID_ARGUMENT for settings
 */
async function startDriver(config: SandboxControllerConfig, logger: QueueLogger): Promise<SandboxDriver> {
  if (config.ETUDE_SANDBOX_DRIVER === 'kubernetes') return measured(await startKubernetes(config, logger));
  const { startLocalDriver } = await import('@etude/sandbox/local-driver');
  return measured(await startLocalDriver(localOptions(config)));
}

async function startKubernetes(config: SandboxControllerConfig, logger: QueueLogger): Promise<SandboxDriver> {
  const [{ KubernetesDriver }, { readTemplates }] = await Promise.all([
    import('@etude/sandbox/kubernetes/kubernetes-driver'),
    import('@etude/sandbox/kubernetes/sandbox-template'),
  ]);
  return KubernetesDriver.start(
    {
      installation: config.ETUDE_SANDBOX_INSTALLATION,
      tokenSecret: needed(config, 'ETUDE_SANDBOX_TOKEN_SECRET'),
      templates: await readTemplates(needed(config, 'ETUDE_SANDBOX_TEMPLATES_PATH')),
      allowMissingControls: config.ETUDE_SANDBOX_ALLOW_MISSING,
      logger,
    },
    { namespace: needed(config, 'ETUDE_SANDBOX_NAMESPACE'), kubeconfigPath: config.ETUDE_SANDBOX_KUBECONFIG_PATH },
    AbortSignal.timeout(START_TIMEOUT_MS),
  );
}

const claims = counter({ name: 'etude_sandbox_claims_total', help: 'Claims of a sandbox, by outcome', labels: ['outcome'] });
const seconds = histogram({ name: 'etude_sandbox_claim_seconds', help: 'How long claims took to get a sandbox' });

function measured(driver: SandboxDriver): SandboxDriver {
  gauge({ name: 'etude_sandbox_warm', help: 'Sandboxes that are ready for a claim', collect: () => driver.counts().free });
  const waiting = () => driver.counts().waiting;
  gauge({ name: 'etude_sandbox_claims_waiting', help: 'Claims that wait until a sandbox is free', collect: waiting });
  const claim = driver.claim.bind(driver);
  return Object.assign(driver, {
    async claim(shape: SandboxShape, signal: AbortSignal): Promise<ClaimedSandbox> {
      const stop = seconds.startTimer();
      let outcome = 'ok';
      try {
        const claimed = await claim(shape, signal);
        stop();
        return claimed;
      } catch (error) {
        outcome = isAbort(error) || signal.aborted ? 'cancelled' : errorCode(error).toLowerCase();
        throw error;
      } finally {
        claims.inc({ outcome });
      }
    },
  });
}
