import { SandboxExecute } from '@etude/contracts/queues';
import type { HealthCheck } from '@etude/platform/health';
import { CancelBus } from '@etude/queue/cancel';
import { type Consumer, consume } from '@etude/queue/consumer';
import { ExecutionStore } from '@etude/queue/executions';
import { RedisKeys } from '@etude/queue/keys';
import { connectRedis, type QueueLogger } from '@etude/queue/redis';
import { LocalSandboxes } from '@etude/sandbox/local-sandboxes';
import type { OnApplicationShutdown } from '@nestjs/common';
import type { SandboxControllerConfig } from './sandbox-controller.config.js';
import { sandboxExecuteProcessor } from './sandbox-execute.processor.js';

/** Below the 10 s after which a service is ended. */
const CLOSE_GRACE_MS = 8_000;

/** The consumer of `sandbox.execute` with its sandboxes. Any number of controllers may run. */
export class SandboxController implements OnApplicationShutdown {
  private constructor(
    private readonly sandboxes: LocalSandboxes,
    private readonly redis: ReturnType<typeof connectRedis>,
    private readonly cancels: CancelBus,
    private readonly consumer: Consumer,
  ) {}

  /** Resolves once jobs are being taken; waits for Redis. @throws EtudeError SANDBOX_CONTROL_MISSING */
  static async start(config: SandboxControllerConfig, logger: QueueLogger): Promise<SandboxController> {
    const { ETUDE_REDIS_URL: redisUrl, ETUDE_QUEUE_PREFIX: prefix, ETUDE_SANDBOX_CONCURRENCY: concurrency } = config;
    const sandboxes = await LocalSandboxes.start({
      warm: config.ETUDE_SANDBOX_WARM,
      concurrencyMax: concurrency,
      allowMissingControls: config.ETUDE_SANDBOX_ALLOW_MISSING,
    });
    const redis = connectRedis(redisUrl, 'worker', logger);
    const executions = new ExecutionStore(redis, new RedisKeys(prefix));
    const cancels = new CancelBus(redisUrl, prefix, logger);
    await cancels.ready();
    const consumer = consume(SandboxExecute, sandboxExecuteProcessor({ sandboxes, executions, cancels }), {
      redisUrl,
      prefix,
      concurrency,
      logger,
    });
    await consumer.ready();
    return new SandboxController(sandboxes, redis, cancels, consumer);
  }

  /** For readiness: that executions are being taken. */
  checks(): Record<string, HealthCheck> {
    return { [SandboxExecute.name]: () => this.consumer.check() };
  }

  async onApplicationShutdown(): Promise<void> {
    await this.close();
  }

  /** Running executions go back to waiting and run elsewhere; no sandbox is left. */
  async close(): Promise<void> {
    await this.consumer.close(CLOSE_GRACE_MS);
    await this.sandboxes.close();
    await this.cancels.close();
    this.redis.disconnect();
  }
}
