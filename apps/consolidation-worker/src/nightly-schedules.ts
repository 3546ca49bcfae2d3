import type { Producer } from '@etude/queue/jobs/producer';
import type { QueueLogger } from '@etude/queue/redis/redis';
import { type ArchiveSchedule, type PruneSchedule, scheduleArchive, scheduleNightly, schedulePrune } from '@etude/queue/jobs/scheduler';

export interface NightlyTimes {
  /** Cron. */
  readonly pattern: string;
  readonly timeZone: string;
  readonly days: number;
}

export type ArchiveTimes = Omit<ArchiveSchedule, 'tenant'>;
export type PruneTimes = Omit<PruneSchedule, 'tenant'>;

/**
 * Has `consolidation.run`, archiving and pruning fire every night for each tenant that something was learned for. The schedules are kept in Redis;
 * every worker sets the same ones.
 */
export class NightlySchedules {
  readonly #known = new Set<string>();

  constructor(
    private readonly producer: Producer,
    /** null: no tenant is scheduled. */
    private readonly times: NightlyTimes | null,
    private readonly logger: QueueLogger,
    /** null: nothing is archived by itself. */
    private readonly archive: ArchiveTimes | null = null,
    /** null: no skill is pruned by itself. */
    private readonly prune: PruneTimes | null = null,
  ) {}

  /** Once per tenant and process. A failure is logged and tried again with the tenant's next write: what was learned matters more. */
  async ensure(tenant: string): Promise<void> {
    const { times, archive, prune } = this;
    if ((times === null && archive === null && prune === null) || this.#known.has(tenant)) return;
    this.#known.add(tenant);
    if (times !== null)
      await this.#schedule(tenant, 'ETUDE_CONSOLIDATION_SCHEDULE', times, () => scheduleNightly(this.producer, { ...times, tenant }));
    if (archive !== null)
      await this.#schedule(tenant, 'ETUDE_ARCHIVE_SCHEDULE', archive, () => scheduleArchive(this.producer, { ...archive, tenant }));
    if (prune !== null)
      await this.#schedule(tenant, 'ETUDE_SKILLS_PRUNE_SCHEDULE', prune, () => schedulePrune(this.producer, { ...prune, tenant }));
  }

  async #schedule(tenant: string, setting: string, times: object, act: () => Promise<void>): Promise<void> {
    try {
      await act();
      this.logger.info({ tenant, ...times }, `${setting} is set for the tenant`);
    } catch (error) {
      this.#known.delete(tenant);
      this.logger.error(
        { tenant, error: (error as Error).message },
        `${setting} could not be set for the tenant; correct it if it is wrong`,
      );
    }
  }
}
