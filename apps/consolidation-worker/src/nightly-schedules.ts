import type { Clock } from '@etude/domain/ports/clock';
import type { Producer } from '@etude/queue/jobs/producer';
import type { QueueLogger } from '@etude/queue/redis/redis';
import {
  type ArchiveSchedule,
  keptSchedules,
  type PruneSchedule,
  scheduleArchive,
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

export interface ScheduleParts {
  readonly producer: Producer;
  readonly logger: QueueLogger;
  readonly clock: Clock;
  /** null: no tenant is scheduled. */
  readonly times: NightlyTimes | null;
  /** null: nothing is archived by itself. */
  readonly archive: ArchiveTimes | null;
  /** null: no skill is pruned by itself. */
  readonly prune: PruneTimes | null;
}

interface Acts<T> {
  /** Answers whether there was another schedule, or none. */
  readonly begin: (times: T) => Promise<boolean>;
  /** Answers whether there was a schedule. */
  readonly end: () => Promise<boolean>;
}

/** An erasure of the tenant takes its schedules away, and a worker of the settings before may bring others back. */
const AGAIN_AFTER_MS = 3_600_000;

/**
 * Has `consolidation.run`, archiving and pruning fire every night for each tenant that something was learned for. The schedules are kept in Redis;
 * every worker sets the same ones.
 */
export class NightlySchedules {
  /** When this process set those of each tenant. */
  readonly #setAt = new Map<string, number>();

  constructor(private readonly parts: ScheduleParts) {}

  /** Once an hour per tenant and process. A failure is logged and tried again with the tenant's next write: what was learned matters more. */
  async ensure(tenant: string): Promise<void> {
    const { times, archive, prune, clock } = this.parts;
    if (times === null && archive === null && prune === null) return;
    if (clock.now() - (this.#setAt.get(tenant) ?? -Infinity) >= AGAIN_AFTER_MS) await this.#apply(tenant);
  }

  /** What fires for any tenant fires by the present settings from now on, and no more where one was taken away. Before jobs are taken. */
  async renew(): Promise<void> {
    const tenants = new Set((await keptSchedules(this.parts.producer)).map(({ tenant }) => tenant));
    for (const tenant of tenants) await this.#apply(tenant);
  }

  async #apply(tenant: string): Promise<void> {
    const { producer, times, archive, prune, clock } = this.parts;
    this.#setAt.set(tenant, clock.now());
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
    const { logger } = this.parts;
    try {
      const isOther = times === null ? await end() : await begin(times);
      const what = times === null ? 'is not set any more, and nothing fires by it for the tenant' : 'is set for the tenant';
      if (isOther) logger.info({ tenant, ...times }, `${setting} ${what}`);
    } catch (error) {
      this.#setAt.delete(tenant);
      logger.error({ tenant, error: (error as Error).message }, `${setting} could not be set for the tenant; correct it if it is wrong`);
    }
  }
}
