import { isDeepStrictEqual } from 'node:util';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { ConsolidationRunJob, MemoryUpkeepJob } from '@etude/contracts/queues';
import type { QueueDeclaration } from '@etude/contracts/queues';
import { z } from 'zod';
import { parseOr } from './job-failure.js';
import { declaredOptions } from './producer.js';
import type { Producer } from './producer.js';
import { whileRedisAnswers } from '../redis/redis.js';

export interface NightlySchedule {
  /** Cron pattern of five or six fields, such as "0 3 * * *". */
  readonly pattern: string;
  /** IANA name, such as "Europe/Berlin". */
  readonly timeZone: string;
  readonly tenant: string;
  readonly agent?: string | null;
  readonly days?: number;
}

/**
 * Has `consolidation.run` fire for a tenant by the clock of a time zone. Calling it again changes the schedule; the same one, from
 * however many processes, is one. Each firing is one run: its id is made from the firing's time (`QueueDeclaration.firing`).
 *
 * @returns whether it is another than before
 * @throws EtudeError INVALID_ARGUMENT for a pattern or time zone that can't be read
 */
export async function scheduleNightly(
  producer: Producer,
  { pattern, timeZone, tenant, agent = null, days = 7 }: NightlySchedule,
): Promise<boolean> {
  const template = parseOr(
    ConsolidationRunJob.payload,
    { v: 1, tenant, runId: `nightly-${agent ?? 'all'}`, agent, days, dryRun: false },
    'INVALID_ARGUMENT',
    'the nightly schedule',
  );
  return upsert(producer, ConsolidationRunJob, schedulerId(tenant, agent), { pattern, timeZone }, template);
}

export interface ArchiveSchedule extends Pick<NightlySchedule, 'pattern' | 'timeZone' | 'tenant'> {
  readonly scoreMax: number;
  readonly olderThanDays: number;
}

/** Has what a tenant hardly needs taken out of retrieval by the clock. As `scheduleNightly` otherwise. */
export async function scheduleArchive(producer: Producer, schedule: ArchiveSchedule): Promise<boolean> {
  return scheduleUpkeep(producer, 'archive', schedule);
}

export interface PruneSchedule extends Pick<NightlySchedule, 'pattern' | 'timeZone' | 'tenant'> {
  /** What is 0 is not looked at. */
  readonly unusedDays: number;
  readonly failingRateMax: number;
  readonly failingUsesMin: number;
  readonly supersededDays: number;
}

/** Has a tenant's skills pruned by the clock. As `scheduleNightly` otherwise. */
export async function schedulePrune(producer: Producer, schedule: PruneSchedule): Promise<boolean> {
  return scheduleUpkeep(producer, 'prune', schedule);
}

const UPKEEP = { archive: 'archiving', prune: 'pruning' } as const;

async function scheduleUpkeep(
  producer: Producer,
  work: keyof typeof UPKEEP,
  { pattern, timeZone, ...more }: ArchiveSchedule | PruneSchedule,
): Promise<boolean> {
  const payload = { v: 1, work, id: `nightly-${more.tenant}`, ...more };
  const template = parseOr(MemoryUpkeepJob.payload, payload, 'INVALID_ARGUMENT', `the schedule of ${UPKEEP[work]}`);
  return upsert(producer, MemoryUpkeepJob, upkeepId(work, more.tenant), { pattern, timeZone }, template);
}

async function upsert(
  producer: Producer,
  declaration: QueueDeclaration,
  id: string,
  { pattern, timeZone }: Pick<NightlySchedule, 'pattern' | 'timeZone'>,
  data: object,
): Promise<boolean> {
  checkTimeZone(timeZone);
  const queue = producer.queue(declaration.name);
  const template = { data, opts: declaredOptions(declaration) };
  const known = await whileRedisAnswers(producer.redis, queue.getJobScheduler(id));
  // Set anew, it would leave out what is due by now.
  if (known?.pattern === pattern && known.tz === timeZone && isDeepStrictEqual(known.template, template)) return false;
  const added = queue.upsertJobScheduler(id, { pattern, tz: timeZone }, { name: declaration.name, ...template });
  try {
    await whileRedisAnswers(producer.redis, added);
    return true;
  } catch (error) {
    if (errorCode(error) !== 'INTERNAL') throw error;
    throw new EtudeError(
      'INVALID_ARGUMENT',
      `the cron pattern "${pattern}" can't be read: ${(error as Error).message}`,
      {},
      { cause: error },
    );
  }
}

/** Ends the schedule; a run that is under way goes on. @returns whether there was one */
export async function unscheduleNightly(producer: Producer, tenant: string, agent: string | null = null): Promise<boolean> {
  return remove(producer, ConsolidationRunJob, schedulerId(tenant, agent));
}

/** As `unscheduleNightly`, of what `scheduleArchive` or `schedulePrune` set. */
export async function unscheduleUpkeep(producer: Producer, work: keyof typeof UPKEEP, tenant: string): Promise<boolean> {
  return remove(producer, MemoryUpkeepJob, upkeepId(work, tenant));
}

async function remove(producer: Producer, { name }: QueueDeclaration, id: string): Promise<boolean> {
  return whileRedisAnswers(producer.redis, producer.queue(name).removeJobScheduler(id));
}

/** One that is kept, of any work. */
export interface KeptSchedule {
  readonly tenant: string;
  /** null: of all agents. */
  readonly agent: string | null;
  /** Ends it. */
  remove(): Promise<boolean>;
}

const Owner = z.object({ tenant: z.string(), agent: z.string().nullish() });

/** Everything that fires by the clock for a tenant. */
export async function keptSchedules(producer: Producer): Promise<readonly KeptSchedule[]> {
  const queues = [ConsolidationRunJob, MemoryUpkeepJob].map(({ name }) => producer.queue(name));
  const all = await whileRedisAnswers(producer.redis, Promise.all(queues.map((queue) => queue.getJobSchedulers())));
  return queues.flatMap((queue, i) =>
    (all[i] ?? []).flatMap(({ key, template }) => {
      const { data: owner } = Owner.safeParse(template?.data);
      return owner ? [{ tenant: owner.tenant, agent: owner.agent ?? null, remove: () => queue.removeJobScheduler(key) }] : [];
    }),
  );
}

const upkeepId = (work: keyof typeof UPKEEP, tenant: string) => `${work}.${tenant}`;
const schedulerId = (tenant: string, agent: string | null) => `nightly.${tenant}.${agent ?? 'all'}`;

function checkTimeZone(timeZone: string): void {
  try {
    Intl.DateTimeFormat('en', { timeZone });
  } catch (error) {
    throw new EtudeError(
      'INVALID_ARGUMENT',
      `"${timeZone}" is no time zone; use an IANA name such as "Europe/Berlin" or "UTC"`,
      {},
      { cause: error },
    );
  }
}
