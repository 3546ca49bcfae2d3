import { EtudeError } from '@etude/contracts/errors';
import { Usage } from '@etude/contracts/task';
import type { TaskEvent } from '@etude/contracts/task';
import type { Journal, JournalEntry, RolloutEnd } from '@etude/domain/ports/journal';
import type { Redis } from 'ioredis';
import { memberOf, type RedisKeys, RETENTION_MS, type RolloutAddress, taskKeys } from '../redis/keys.js';
import { runScript } from '../redis/redis.js';

type Opening = ['gone'] | ['final', string] | ['open', string, string, string, string, string[]];

/**
 * Takes a rollout for this worker: raises its epoch, sets the task running, and loads the journal.
 *
 * @returns null when the task is final or gone: there is nothing to run
 * Why in one script: nobody can append to the journal between the new epoch and the load.
 */
export async function openJournal(
  redis: Redis,
  keys: RedisKeys,
  rollout: RolloutAddress,
  { retentionMs = RETENTION_MS }: { readonly retentionMs?: number } = {},
): Promise<RedisJournal | null> {
  const args = [memberOf(rollout.tenant, rollout.rolloutId), keys.wake(rollout.tenant, rollout.taskId)];
  const opening = await runScript<Opening>(redis, 'openRollout', taskKeys(keys, rollout), args);
  if (opening[0] !== 'open') return null;
  const [, generation, epoch, startedAt, cancelRequested, flat] = opening;
  return new RedisJournal(redis, keys, rollout, retentionMs, {
    generation,
    epoch: Number(epoch),
    startedAt: Number(startedAt),
    cancelRequested: cancelRequested === '1',
    entries: readEntries(flat),
  });
}

interface Holding {
  readonly generation: string;
  readonly epoch: number;
  readonly startedAt: number;
  readonly cancelRequested: boolean;
  readonly entries: ReadonlyMap<string, JournalEntry>;
}

/** `Journal` in Redis. A redrive starts a new generation, whose epochs count from 1 again. */
export class RedisJournal implements Journal {
  readonly rolloutId: string;
  readonly epoch: number;
  readonly startedAt: number;
  readonly entries: ReadonlyMap<string, JournalEntry>;
  /** Whether a cancel was requested before this worker took the rollout. */
  readonly cancelRequested: boolean;
  readonly #keys: string[];
  readonly #holder: [string, string, string];
  readonly #member: string;

  constructor(
    private readonly redis: Redis,
    keys: RedisKeys,
    rollout: RolloutAddress,
    private readonly retentionMs: number,
    holding: Holding,
  ) {
    this.rolloutId = rollout.rolloutId;
    this.epoch = holding.epoch;
    this.startedAt = holding.startedAt;
    this.entries = holding.entries;
    this.cancelRequested = holding.cancelRequested;
    this.#keys = taskKeys(keys, rollout);
    this.#member = memberOf(rollout.tenant, rollout.rolloutId);
    this.#holder = [holding.generation, String(holding.epoch), keys.wake(rollout.tenant, rollout.taskId)];
  }

  /** The usage of all steps that were in the journal when it was opened. */
  get usage(): Usage {
    return [...this.entries.values()].at(-1)?.usage ?? Usage.parse({});
  }

  async append(entry: JournalEntry, events: readonly TaskEvent[]): Promise<{ cancelRequested: boolean }> {
    const stored = { value: entry.value ?? null, usage: entry.usage };
    const args = [
      ...this.#holder,
      entry.key,
      JSON.stringify(stored),
      JSON.stringify(entry.usage),
      ...events.map((event) => JSON.stringify(event)),
    ];
    const answer = await runScript<number>(this.redis, 'appendEntry', this.#keys, args);
    if (answer < 0) throw this.#fenced(`step "${entry.key}"`);
    return { cancelRequested: answer === 1 };
  }

  async finish(end: RolloutEnd): Promise<void> {
    const fields = ['state', end.state, 'stopReason', end.stopReason, 'usage', JSON.stringify(end.usage)];
    if (end.result) fields.push('result', JSON.stringify(end.result));
    if (end.error) fields.push('error', JSON.stringify(end.error));
    const last = JSON.stringify({ type: 'state', state: end.state } satisfies TaskEvent);
    const args = [...this.#holder, this.#member, this.retentionMs, fields.length, ...fields, last];
    const answer = await runScript<number>(this.redis, 'finishRollout', this.#keys, args);
    if (answer < 0) throw this.#fenced('its end');
  }

  #fenced(what: string): EtudeError {
    return new EtudeError(
      'JOURNAL_FENCED',
      `${what} of rollout ${this.rolloutId} was refused: epoch ${this.epoch} is over, another worker holds it or the task has ended; stop and write nothing`,
    );
  }
}

/** The journal entries of a rollout, in order, without taking the rollout. Empty where nothing is kept. */
export async function readJournal(redis: Redis, keys: RedisKeys, rolloutId: string): Promise<JournalEntry[]> {
  const stored = await redis.hgetall(keys.journal(rolloutId));
  return [...readEntries(Object.entries(stored).flat()).values()];
}

/** Parses [step key, "<place> <JSON>", ...] into entries, sorted by place. */
function readEntries(flat: readonly string[]): Map<string, JournalEntry> {
  const stored: Array<{ place: number; entry: JournalEntry }> = [];
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const [key = '', text = ''] = [flat[i], flat[i + 1]];
    const cut = text.indexOf(' ');
    stored.push({
      place: Number(text.slice(0, cut)),
      entry: { key, ...(JSON.parse(text.slice(cut)) as { value: unknown; usage: Usage }) },
    });
  }
  stored.sort((a, b) => a.place - b.place);
  return new Map(stored.map(({ entry }) => [entry.key, entry]));
}
