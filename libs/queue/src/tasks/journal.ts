import { EtudeError } from '@etude/contracts/errors';
import { type TaskEvent, Usage } from '@etude/contracts/task';
import type { Journal, JournalEntry, LearningJournal, Question, Questions } from '@etude/domain/ports/journal';
import { LEARN_FROM } from '@etude/domain/ports/journal';
import type { Redis } from 'ioredis';
import { memberOf, type RedisKeys, RETENTION_MS, type RolloutAddress, taskKeys } from '../redis/keys.js';
import { pairsOf, runScript } from '../redis/redis.js';

type Opening = ['gone'] | ['waiting'] | ['final', string] | ['open', string, string, string, string, string[]];

/** `Journal` in Redis. A redrive starts a new generation, whose epochs count from 1 again. */
export interface RedisJournal extends Journal {
  /** The usage of all steps that were in the journal when it was opened. */
  readonly usage: Usage;
  /** The rollout's entry in the outbox. */
  readonly member: string;
  /** Runs a script of `tasks.lua` under this journal's epoch. @throws EtudeError JOURNAL_FENCED if the script answers -1 */
  write<Answer = number>(script: string, what: string, args: ReadonlyArray<string | number>): Promise<Answer>;
}

/** Takes the elapsed time until now from Redis, and later time from this process's monotonic clock. So a clock that jumps ends no rollout. */
function timesOf(startedAt: string, now: string): Pick<Journal, 'startedAt' | 'elapsedMs'> {
  const openedAt = performance.now();
  const before = Number(now) - Number(startedAt);
  return { startedAt: Number(startedAt), elapsedMs: () => before + performance.now() - openedAt };
}

/**
 * Takes a rollout for this worker: raises its epoch, sets the task running, and loads the journal.
 *
 * @returns null if there is nothing to run: the task is final or gone, or waits for its caller
 * Why in one script: nobody can append to the journal between the new epoch and the load.
 */
export async function openJournal(
  redis: Redis,
  keys: RedisKeys,
  rollout: RolloutAddress,
  { retentionMs = RETENTION_MS }: { readonly retentionMs?: number } = {},
): Promise<RedisJournal | null> {
  const { tenant, taskId, rolloutId } = rollout;
  const places = taskKeys(keys, rollout);
  const [member, wake] = [memberOf(tenant, rolloutId), keys.wake(tenant, taskId)];
  const opening = await runScript<Opening>(redis, 'openRollout', places, [member, wake]);
  if (opening[0] !== 'open') return null;
  const [, generation, epoch, startedAt, now, flat] = opening;
  const entries = readEntries(flat);
  const write = async <Answer = number>(script: string, what: string, args: ReadonlyArray<string | number>): Promise<Answer> => {
    const answer = await runScript<Answer>(redis, script, places, [generation, epoch, wake, ...args]);
    if (answer === -1) throw fenced(what, rolloutId, epoch);
    return answer;
  };
  return {
    member,
    write,
    rolloutId,
    epoch: Number(epoch),
    ...timesOf(startedAt, now),
    entries,
    usage: [...entries.values()].at(-1)?.usage ?? Usage.parse({}),
    async append({ key, value, usage }, events) {
      const stored = JSON.stringify({ value: value ?? null, usage });
      const args = [key, stored, JSON.stringify(usage), ...events.map((event) => JSON.stringify(event))];
      return { cancelRequested: (await write('appendEntry', `step "${key}"`, args)) === 1 };
    },
    async finish(end) {
      const fields = ['state', end.state, 'stopReason', end.stopReason, 'usage', JSON.stringify(end.usage)];
      if (end.result) fields.push('result', JSON.stringify(end.result));
      if (end.error) fields.push('error', JSON.stringify(end.error));
      const last = JSON.stringify({ type: 'state', state: end.state } satisfies TaskEvent);
      const learning = end.learnFrom === undefined ? '' : JSON.stringify({ value: end.learnFrom, usage: Usage.parse({}) });
      await write('finishRollout', 'the end', [member, retentionMs, LEARN_FROM, learning, fields.length, ...fields, last]);
    },
  };
}

/** The journal entries of a rollout, in order, without taking the rollout. Empty if nothing is kept. */
export async function readJournal(redis: Redis, keys: RedisKeys, rolloutId: string): Promise<JournalEntry[]> {
  const stored = await redis.hgetall(keys.journal(rolloutId));
  return [...readEntries(Object.entries(stored).flat()).values()];
}

/** Parses [step key, "<place> <JSON>", ...] into entries, sorted by place. */
export function readEntries(flat: readonly string[]): Map<string, JournalEntry> {
  const stored = pairsOf(flat).map(([key, text]) => {
    const cut = text.indexOf(' ');
    return { place: Number(text.slice(0, cut)), entry: { key, ...(JSON.parse(text.slice(cut)) as { value: unknown; usage: Usage }) } };
  });
  return new Map(stored.toSorted((a, b) => a.place - b.place).map(({ entry }) => [entry.key, entry]));
}

/** `Questions` in Redis, for the worker that holds this journal. Questions and answers are kept in the task's hash. */
export function questionsOf(journal: RedisJournal): Questions {
  return {
    async ask(question: Question) {
      const { key, deadlineAt } = question;
      const event: TaskEvent = { type: 'question', ...question };
      const args = [journal.member, key, deadlineAt, JSON.stringify(question), JSON.stringify(event)];
      const outcome = await journal.write<string>('askQuestion', `question "${key}"`, args);
      return outcome === '' ? null : (JSON.parse(outcome) as { answer: string } | 'expired');
    },
  };
}

/** Takes the learning of an ended rollout for this worker: raises its epoch and loads the journal. @returns null if no learning is pending */
export async function openLearning(redis: Redis, keys: RedisKeys, rollout: RolloutAddress): Promise<LearningJournal | null> {
  const { tenant, taskId, rolloutId } = rollout;
  const places = taskKeys(keys, rollout);
  const [member, wake] = [memberOf(tenant, rolloutId), keys.wake(tenant, taskId)];
  const opening = await runScript<[string, string, string, string[]] | []>(redis, 'openLearning', places, [member]);
  if (opening.length === 0) return null;
  const [epoch, startedAt, now, flat] = opening;
  const write = async (script: string, args: readonly string[]) => {
    if ((await runScript<number>(redis, script, places, [member, wake, epoch, ...args])) !== 1) throw fenced('learning', rolloutId, epoch);
  };
  return {
    rolloutId,
    epoch: Number(epoch),
    ...timesOf(startedAt, now),
    entries: readEntries(flat),
    async append({ key, value, usage }) {
      await write('appendLearning', [key, JSON.stringify({ value: value ?? null, usage }), JSON.stringify(usage)]);
      return { cancelRequested: false };
    },
    finish: ({ state, error }) => write('endLearning', [state, error === null ? '' : JSON.stringify(error)]),
  };
}

function fenced(what: string, rolloutId: string, epoch: string): EtudeError {
  const message = `${what} of rollout ${rolloutId} was refused: the rollout ended or was taken over after epoch ${epoch}; stop and write nothing`;
  return new EtudeError('JOURNAL_FENCED', message);
}
