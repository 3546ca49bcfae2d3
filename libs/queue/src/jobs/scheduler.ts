import { isDeepStrictEqual } from 'node:util';
import { ConsolidationRunJob, MemoryUpkeepJob, type QueueDeclaration } from '@etude/contracts/queues';
import type { Clock } from '@etude/domain/ports/clock';
import type { z } from 'zod';
import { type QueueLogger, whileRedisAnswers } from '../redis/redis.js';
import { parseOr } from './job-end.js';
import { declaredOptions, type Producer } from './producer.js';

/** Cron pattern of five or six fields, such as "0 3 * * *", and an IANA time zone, such as "Europe/Berlin". */
export interface ScheduleTimes {
  readonly pattern: string;
  readonly timeZone: string;
}

type Limits<W> = Omit<Extract<z.infer<typeof MemoryUpkeepJob.payload>, { work: W }>, 'v' | 'id' | 'tenant' | 'work'>;

interface ScheduledWork {
  readonly nightly: ScheduleTimes & { readonly days: number };
  readonly archive: ScheduleTimes & Limits<'archive'>;
  readonly prune: ScheduleTimes & Limits<'prune'>;
}
type WorkName = keyof ScheduledWork;

interface Work {
  /** Name of the setting that has the cron pattern, for messages. */
  readonly setting: string;
  readonly declaration: QueueDeclaration;
  readonly schedulerId: (tenant: string) => string;
  readonly payload: (tenant: string) => object;
}

const upkeep = (work: 'archive' | 'prune', setting: string): Work => ({
  setting,
  declaration: MemoryUpkeepJob,
  schedulerId: (tenant) => `${work}.${tenant}`,
  payload: (tenant) => ({ v: 1, work, id: `nightly-${tenant}`, tenant }),
});

const WORKS: Readonly<Record<WorkName, Work>> = {
  nightly: {
    setting: 'ETUDE_CONSOLIDATION_SCHEDULE',
    declaration: ConsolidationRunJob,
    schedulerId: (tenant) => `nightly.${tenant}.all`,
    payload: (tenant) => ({ v: 1, tenant, runId: 'nightly-all', agent: null, dryRun: false }),
  },
  archive: upkeep('archive', 'ETUDE_ARCHIVE_SCHEDULE'),
  prune: upkeep('prune', 'ETUDE_SKILLS_PRUNE_SCHEDULE'),
};

/**
 * Sets or changes a tenant's schedule for one kind of work. Several processes may set the same schedule. Each firing adds one job, whose
 * id is made from the time of the firing (`QueueDeclaration.firing`).
 *
 * @returns whether the schedule was new or changed
 * @throws EtudeError INVALID_ARGUMENT for a limit out of bounds; the error of BullMQ for a pattern or a time zone that it can't read
 */
export async function schedule<W extends WorkName>(
  producer: Producer,
  name: W,
  tenant: string,
  { pattern, timeZone, ...settings }: ScheduledWork[W],
): Promise<boolean> {
  const { declaration, schedulerId, payload } = WORKS[name];
  const data = parseOr(declaration.payload, { ...payload(tenant), ...settings }, 'INVALID_ARGUMENT', `the schedule "${name}"`) as object;
  const queue = producer.queue(declaration.name);
  const template = { data, opts: declaredOptions(declaration) };
  const known = await whileRedisAnswers(producer.redis, queue.getJobScheduler(schedulerId(tenant)));
  // Writing an unchanged schedule again would skip a firing that is due now.
  if (known?.pattern === pattern && known.tz === timeZone && isDeepStrictEqual(known.template, template)) return false;
  const added = queue.upsertJobScheduler(schedulerId(tenant), { pattern, tz: timeZone }, { name: declaration.name, ...template });
  await whileRedisAnswers(producer.redis, added);
  return true;
}

export async function keptSchedules(producer: Producer) {
  const queues = [ConsolidationRunJob, MemoryUpkeepJob].map(({ name }) => producer.queue(name));
  const all = await whileRedisAnswers(producer.redis, Promise.all(queues.map((queue) => queue.getJobSchedulers())));
  return queues.flatMap((queue, i) =>
    (all[i] ?? []).flatMap(({ key, template }) => {
      const { tenant } = (template?.data ?? {}) as { readonly tenant?: string };
      return tenant === undefined ? [] : [{ tenant, remove: () => queue.removeJobScheduler(key) }];
    }),
  );
}

export interface ScheduleParts {
  readonly producer: Producer;
  readonly logger: QueueLogger;
  readonly clock: Clock;
  /** null: this work is not scheduled, and its stored schedules are removed. */
  readonly schedules: { readonly [W in WorkName]: ScheduledWork[W] | null };
}

const NAMES = Object.keys(WORKS) as WorkName[];

/** Time after which schedules are set again, because an erasure removes them, and a worker with older settings may change them. */
const AGAIN_AFTER_MS = 3_600_000;

/** Sets the schedules of every tenant with memories. Redis stores the schedules. Every worker sets the same schedules. */
export class NightlySchedules {
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
    const { producer, logger, schedules, clock } = this.parts;
    this.#setAt.set(tenant, clock.now());
    for (const name of NAMES) {
      const wanted = schedules[name];
      const { setting, declaration, schedulerId } = WORKS[name];
      // Removes the schedule. A run in progress continues.
      const remove = () => whileRedisAnswers(producer.redis, producer.queue(declaration.name).removeJobScheduler(schedulerId(tenant)));
      try {
        const isChanged = wanted === null ? await remove() : await schedule(producer, name, tenant, wanted);
        const change = wanted === null ? 'is not set any more, so the schedule of the tenant was removed' : 'is set for the tenant';
        if (isChanged) logger.info({ tenant, ...wanted }, `${setting} ${change}`);
      } catch (error) {
        this.#setAt.delete(tenant);
        const details = { tenant, ...wanted, error: (error as Error).message };
        logger.error(details, `${setting} could not be set for the tenant; check the value of the setting`);
      }
    }
  }
}
