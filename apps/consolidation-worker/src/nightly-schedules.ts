import type { Producer } from '@etude/queue/producer';
import type { QueueLogger } from '@etude/queue/redis';
import { scheduleNightly } from '@etude/queue/scheduler';

export interface NightlyTimes {
  /** Cron. */
  readonly pattern: string;
  readonly timeZone: string;
  readonly days: number;
}

/**
 * Has `consolidation.run` fire every night for each tenant that something was learned for. The schedules are kept in Redis;
 * every worker sets the same ones.
 */
export class NightlySchedules {
  readonly #known = new Set<string>();

  constructor(
    private readonly producer: Producer,
    /** null: no tenant is scheduled. */
    private readonly times: NightlyTimes | null,
    private readonly logger: QueueLogger,
  ) {}

  /** Once per tenant and process. A failure is logged and tried again with the tenant's next write: what was learned matters more. */
  async ensure(tenant: string): Promise<void> {
    if (this.times === null || this.#known.has(tenant)) return;
    this.#known.add(tenant);
    try {
      await scheduleNightly(this.producer, { ...this.times, tenant });
      this.logger.info({ tenant, ...this.times }, 'nightly consolidation is scheduled');
    } catch (error) {
      this.#known.delete(tenant);
      this.logger.error(
        { tenant, error: (error as Error).message },
        'nightly consolidation could not be scheduled; correct ETUDE_CONSOLIDATION_SCHEDULE if it is wrong',
      );
    }
  }
}
