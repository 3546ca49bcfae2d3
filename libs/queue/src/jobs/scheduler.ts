import { isDeepStrictEqual } from 'node:util';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { ConsolidationRunJob, MemoryUpkeepJob, type QueueDeclaration } from '@etude/contracts/queues';
import { z } from 'zod';
import { whileRedisAnswers } from '../redis/redis.js';
import { parseOr } from './job-end.js';
import { declaredOptions, type Producer } from './producer.js';

/** Cron pattern of five or six fields, such as "0 3 * * *", and an IANA time zone, such as "Europe/Berlin". */
export interface ScheduleTimes {
  readonly pattern: string;
  readonly timeZone: string;
}

export interface ScheduledWork {
  readonly nightly: ScheduleTimes & { readonly days: number };
  readonly archive: ScheduleTimes & { readonly scoreMax: number; readonly olderThanDays: number };
  /** A limit of 0 is off. */
  readonly prune: ScheduleTimes & {
    readonly unusedDays: number;
    readonly failingRateMax: number;
    readonly failingUsesMin: number;
    readonly supersededDays: number;
  };
}
export type WorkName = keyof ScheduledWork;

interface Work {
  readonly declaration: QueueDeclaration;
  readonly schedulerId: (tenant: string) => string;
  readonly payload: (tenant: string) => object;
}

const upkeep = (work: 'archive' | 'prune'): Work => ({
  declaration: MemoryUpkeepJob,
  schedulerId: (tenant) => `${work}.${tenant}`,
  payload: (tenant) => ({ v: 1, work, id: `nightly-${tenant}`, tenant }),
});

const WORKS: Readonly<Record<WorkName, Work>> = {
  nightly: {
    declaration: ConsolidationRunJob,
    schedulerId: (tenant) => `nightly.${tenant}.all`,
    payload: (tenant) => ({ v: 1, tenant, runId: 'nightly-all', agent: null, dryRun: false }),
  },
  archive: upkeep('archive'),
  prune: upkeep('prune'),
};

/**
 * Sets or changes a tenant's schedule for one kind of work. Several processes may set the same one. Each firing adds one job, whose
 * id is made from the time of the firing (`QueueDeclaration.firing`).
 *
 * @returns whether the schedule was new or differed from the one before
 * @throws EtudeError INVALID_ARGUMENT for a pattern or a time zone that BullMQ can't read, or a limit out of bounds
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
  try {
    await whileRedisAnswers(producer.redis, added);
    return true;
  } catch (error) {
    if (errorCode(error) !== 'INTERNAL') throw error;
    const message = `the schedule "${pattern}" in time zone "${timeZone}" can't be read: ${(error as Error).message}`;
    throw new EtudeError('INVALID_ARGUMENT', message, {}, { cause: error });
  }
}

/** Removes a schedule. A run in progress continues. @returns whether there was a schedule */
export async function unschedule(producer: Producer, name: WorkName, tenant: string): Promise<boolean> {
  const { declaration, schedulerId } = WORKS[name];
  return whileRedisAnswers(producer.redis, producer.queue(declaration.name).removeJobScheduler(schedulerId(tenant)));
}

const Owner = z.object({ tenant: z.string() });

export async function keptSchedules(producer: Producer) {
  const queues = [ConsolidationRunJob, MemoryUpkeepJob].map(({ name }) => producer.queue(name));
  const all = await whileRedisAnswers(producer.redis, Promise.all(queues.map((queue) => queue.getJobSchedulers())));
  return queues.flatMap((queue, i) =>
    (all[i] ?? []).flatMap(({ key, template }) => {
      const { data: owner } = Owner.safeParse(template?.data);
      return owner ? [{ tenant: owner.tenant, remove: () => queue.removeJobScheduler(key) }] : [];
    }),
  );
}
