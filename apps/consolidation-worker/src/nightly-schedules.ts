import type { Clock } from '@etude/domain/ports/clock';
import type { Producer } from '@etude/queue/jobs/producer';
import { keptSchedules, schedule, type ScheduledWork, unschedule, type WorkName } from '@etude/queue/jobs/scheduler';
import type { QueueLogger } from '@etude/queue/redis/redis';

export interface ScheduleParts {
  readonly producer: Producer;
  readonly logger: QueueLogger;
  readonly clock: Clock;
  /** null: this work is not scheduled, and schedules of it are removed. */
  readonly schedules: { readonly [W in WorkName]: ScheduledWork[W] | null };
}

const SETTINGS: Readonly<Record<WorkName, string>> = {
  nightly: 'ETUDE_CONSOLIDATION_SCHEDULE',
  archive: 'ETUDE_ARCHIVE_SCHEDULE',
  prune: 'ETUDE_SKILLS_PRUNE_SCHEDULE',
};
const NAMES = Object.keys(SETTINGS) as WorkName[];

/** Time after which schedules are set again. An erasure removes them, and a worker with older settings may add others. */
const AGAIN_AFTER_MS = 3_600_000;

/** Sets the schedules of every tenant with memories. Redis stores the schedules. Every worker sets the same ones. */
export class NightlySchedules {
  /** When this process last set the schedules of each tenant. */
  readonly #setAt = new Map<string, number>();

  constructor(private readonly parts: ScheduleParts) {}

  /** Sets the tenant's schedules, once an hour per process. A failure is logged, and retried with the tenant's next write. */
  async ensure(tenant: string): Promise<void> {
    const { schedules, clock } = this.parts;
    if (NAMES.every((name) => schedules[name] === null)) return;
    if (clock.now() - (this.#setAt.get(tenant) ?? -Infinity) >= AGAIN_AFTER_MS) await this.#apply(tenant);
  }

  /** Updates the schedules of all tenants to the present settings. Call it before jobs are taken. */
  async renew(): Promise<void> {
    const tenants = new Set((await keptSchedules(this.parts.producer)).map(({ tenant }) => tenant));
    for (const tenant of tenants) await this.#apply(tenant);
  }

  async #apply(tenant: string): Promise<void> {
    this.#setAt.set(tenant, this.parts.clock.now());
    for (const name of NAMES) await this.#set(name, tenant);
  }

  async #set(name: WorkName, tenant: string): Promise<void> {
    const { producer, logger, schedules } = this.parts;
    const wanted = schedules[name];
    try {
      const isChanged = wanted === null ? await unschedule(producer, name, tenant) : await schedule(producer, name, tenant, wanted);
      const change = wanted === null ? 'is not set any more, so the schedule of the tenant was removed' : 'is set for the tenant';
      if (isChanged) logger.info({ tenant, ...wanted }, `${SETTINGS[name]} ${change}`);
    } catch (error) {
      this.#setAt.delete(tenant);
      const details = { tenant, error: (error as Error).message };
      logger.error(details, `${SETTINGS[name]} could not be set for the tenant; check the value of the setting`);
    }
  }
}
