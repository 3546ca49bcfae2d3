import type { Producer } from '@etude/queue/jobs/producer';
import type { QueueLogger } from '@etude/queue/redis/redis';
import {
  type ArchiveSchedule,
  type PruneSchedule,
  scheduleArchive,
  scheduledTenants,
  scheduleNightly,
  schedulePrune,
  unscheduleNightly,
  unscheduleUpkeep,
} from '@etude/queue/jobs/scheduler';

export interface NightlyTimes {
  /** Cron. */
  readonly pattern: string;
  readonly timeZone: string;
  readonly days: number;
}

export type ArchiveTimes = Omit<ArchiveSchedule, 'tenant'>;
export type PruneTimes = Omit<PruneSchedule, 'tenant'>;

interface Acts<T> {
  readonly begin: (times: T) => Promise<void>;
  /** Answers whether there was a schedule. */
  readonly end: () => Promise<boolean>;
}

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
    if ((times !== null || archive !== null || prune !== null) && !this.#known.has(tenant)) await this.#apply(tenant);
  }

  /** What fires for any tenant fires by the present settings from now on, and no more where one was taken away. Before jobs are taken. */
  async renew(): Promise<void> {
    for (const tenant of await scheduledTenants(this.producer)) await this.#apply(tenant);
  }

  async #apply(tenant: string): Promise<void> {
    const { producer, times, archive, prune } = this;
    this.#known.add(tenant);
    await this.#set(tenant, 'ETUDE_CONSOLIDATION_SCHEDULE', times, {
      begin: (given) => scheduleNightly(producer, { ...given, tenant }),
      end: () => unscheduleNightly(producer, tenant),
    });
    await this.#set(tenant, 'ETUDE_ARCHIVE_SCHEDULE', archive, {
      begin: (given) => scheduleArchive(producer, { ...given, tenant }),
      end: () => unscheduleUpkeep(producer, 'archive', tenant),
    });
    await this.#set(tenant, 'ETUDE_SKILLS_PRUNE_SCHEDULE', prune, {
      begin: (given) => schedulePrune(producer, { ...given, tenant }),
      end: () => unscheduleUpkeep(producer, 'prune', tenant),
    });
  }

  async #set<T extends object>(tenant: string, setting: string, times: T | null, { begin, end }: Acts<T>): Promise<void> {
    try {
      if (times !== null) {
        await begin(times);
        this.logger.info({ tenant, ...times }, `${setting} is set for the tenant`);
      } else if (await end()) this.logger.info({ tenant }, `${setting} is not set any more, and nothing fires by it for the tenant`);
    } catch (error) {
      this.#known.delete(tenant);
      this.logger.error(
        { tenant, error: (error as Error).message },
        `${setting} could not be set for the tenant; correct it if it is wrong`,
      );
    }
  }
}
