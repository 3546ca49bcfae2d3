import type { Producer } from '@etude/queue/jobs/producer';
import { type Reconciler, startReconciler } from '@etude/queue/jobs/reconciler';
import type { QueueLogger } from '@etude/queue/redis/redis';
import type { TaskStore } from '@etude/queue/tasks/task-store';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { MemoryAccess } from '../memory/memory-access.js';
import type { SandboxRouter } from '../sandboxes/sandbox-router.js';
import type { HealthReporter } from './health-reporter.js';

export interface UpkeepParts {
  readonly producer: Producer;
  readonly tasks: TaskStore;
  readonly memory: MemoryAccess;
  readonly health: HealthReporter;
  readonly sandboxes: SandboxRouter;
  readonly intervalMs: number;
  readonly logger: QueueLogger;
}

/** What runs beside the calls: health, and the reconciler that closes gaps between tasks and their jobs. Closes the connections last. */
export class Upkeep implements OnApplicationBootstrap, OnApplicationShutdown {
  #reconciler: Reconciler | null = null;

  constructor(private readonly parts: UpkeepParts) {}

  async onApplicationBootstrap(): Promise<void> {
    const { producer, tasks, memory, health, intervalMs, logger } = this.parts;
    await memory.openAtStart();
    this.#reconciler = startReconciler({ producer, tasks, intervalMs, logger });
    void health.start();
  }

  async onApplicationShutdown(): Promise<void> {
    this.parts.health.close();
    this.parts.sandboxes.close();
    await this.#reconciler?.close();
    await this.parts.memory.close();
    await this.parts.producer.close();
  }
}
