import * as fc from 'fast-check';
import { type TaskEvent, Usage } from '@etude/contracts/task';
import { journalConformance } from '@etude/domain/testing/journal-conformance';
import { describe, expect, it, onTestFinished } from 'vitest';
import { never, queueForFile, SOLVED } from '../../test/rig.js';
import { openLearning, type RedisJournal } from './journal.js';
import { taskKeys } from '../redis/keys.js';
import { connectRedis } from '../redis/redis.js';
import { readEvents, type StoredEvent, type TextEvent } from './events.js';

const startQueue = queueForFile();

async function makeRollout(retentionMs?: number) {
  const rig = startQueue(retentionMs);
  const { tasks, redis, keys } = rig;
  const { record, address, open } = await rig.submit();
  const events = async () =>
    (await redis.xrange(keys.events('acme', record.id), '-', '+')).map(([, fields]) => JSON.parse(fields[1] ?? '') as TaskEvent);
  const task = async () => {
    const found = await tasks.get('acme', record.id);
    if (!found) throw new Error('the task is gone');
    return found;
  };
  const cancel = async () => void (await tasks.requestCancel('acme', record.id));
  return { ...rig, openLearning: () => openLearning(redis, keys, address), address, open, events, task, cancel };
}

journalConformance(makeRollout);

describe('journal in Redis', () => {
  it('expires all keys of a task together after its end', async () => {
    const { redis, keys, address, open } = await makeRollout(60_000);
    const journal = await open();
    await journal?.append({ key: 'a1.draft', value: 1, usage: Usage.parse({}) }, []);
    await journal?.finish({ ...SOLVED, usage: Usage.parse({}) });
    const [task, rollout, entries, events] = taskKeys(keys, address);
    const ttls = await Promise.all([task, rollout, entries, events].map((key) => redis.pttl(key ?? '')));
    expect(ttls.every((ttl) => ttl > 50_000 && ttl <= 60_000)).toBe(true);
  });

  it('loses and repeats no entry under random takeovers', async () => {
    const step = fc.record({ worker: fc.nat(1), act: fc.constantFrom('open', 'append', 'append', 'append', 'repeat', 'race') });
    const { redisUrl } = startQueue().options;
    const connections = [connectRedis(redisUrl, 'worker'), connectRedis(redisUrl, 'worker')];
    onTestFinished(() => connections.forEach((connection) => connection.disconnect()));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
        const rollout = await makeRollout();
        const model = new TwoWorkers((worker) => rollout.open(connections[worker]));
        for (const { worker, act } of steps) await model.act(worker, act);
        expect(model.breaches).toEqual([]);
        const final = await rollout.open();
        expect([...(final?.entries.keys() ?? [])]).toEqual(model.accepted);
        const told = (await rollout.events()).filter(({ type }) => type === 'step').map((event) => (event as { step: string }).step);
        expect(told).toEqual(model.accepted);
        expect(final?.usage.steps).toBe(model.accepted.length);
        expect(final?.epoch).toBe(model.openings + 1);
      }),
      { numRuns: 60 },
    );
  });
});

/** Two workers that run the same deterministic rollout. Each continues after the entries that it has seen. */
class TwoWorkers {
  readonly accepted: string[] = [];
  /** Violations of the journal's invariants. */
  readonly breaches: string[] = [];
  openings = 0;
  readonly #journals: Array<RedisJournal | null> = [null, null];
  readonly #seen = [0, 0];

  constructor(private readonly open: (worker: number) => Promise<RedisJournal | null>) {}

  async act(worker: number, act: string): Promise<void> {
    if (act === 'open' || !this.#journals[worker]) return this.#open(worker);
    if (act === 'repeat') return this.#append(worker, Math.max(0, (this.#seen[worker] ?? 0) - 1));
    if (act === 'race') return void (await Promise.all([this.#append(0, this.#seen[0] ?? 0), this.#append(1, this.#seen[1] ?? 0)]));
    return this.#append(worker, this.#seen[worker] ?? 0);
  }

  async #open(worker: number): Promise<void> {
    this.openings++;
    const journal = await this.open(worker);
    this.#journals[worker] = journal;
    this.#seen[worker] = journal?.entries.size ?? 0;
  }

  async #append(worker: number, n: number): Promise<void> {
    const journal = this.#journals[worker];
    if (!journal) return;
    const key = `a1.s${n}`;
    const usage = Usage.parse({ steps: n + 1 });
    const event: TaskEvent = { type: 'step', step: key, attempt: 1, kind: 'draft', summary: '', durationMs: 0, usage, scripted: false };
    try {
      await journal.append({ key, value: `${worker}.${n}`, usage }, [event]);
      if (!this.accepted.includes(key)) this.accepted.push(key);
      this.#seen[worker] = Math.max(this.#seen[worker] ?? 0, n + 1);
      if (journal.epoch !== this.openings) this.breaches.push(`epoch ${journal.epoch} wrote ${key} after opening ${this.openings}`);
    } catch (error) {
      if ((error as { code?: string }).code !== 'JOURNAL_FENCED') throw error;
      if (journal.epoch === this.openings) this.breaches.push(`the holder was refused ${key}`);
    }
  }
}

async function start() {
  const { tasks, redis, keys, submit } = startQueue();
  const { record, open } = await submit();
  const journal = (await open()) as RedisJournal;
  const read = (afterId: string | null = null, signal = never()) =>
    readEvents(redis, keys, { tenant: 'acme', taskId: record.id, afterId }, signal);
  const step = (n: number) =>
    journal.append({ key: `a1.s${n}`, value: n, usage: Usage.parse({}) }, [{ type: 'attempt_started', attempt: n }]);
  const finish = () => journal.finish({ ...SOLVED, usage: Usage.parse({}) });
  return { tasks, record, open, read, step, finish };
}

const states = (events: ReadonlyArray<StoredEvent | TextEvent>) =>
  events.map(({ event }) => (event.type === 'state' ? event.state : event.type));

describe('reading events', () => {
  it('resumes after any event without missing or repeating one', async () => {
    const { read, step, finish } = await start();
    for (let n = 1; n <= 250; n++) await step(n);
    await finish();
    const all = await Array.fromAsync(read());
    for (const from of [0, 1, 99, 100, 101, 200, all.length - 2, all.length - 1]) {
      expect((await Array.fromAsync(read(all[from]?.id))).map(({ id }) => id)).toEqual(all.slice(from + 1).map(({ id }) => id));
    }
  });

  it('continues after the end of a redriven run', async () => {
    const { read, tasks, record, open } = await start();
    await tasks.markFailed('acme', record.id, { code: 'INTERNAL', message: 'x' }, Date.now());
    const [end] = (await Array.fromAsync(read())).slice(-1);
    await tasks.requeue('acme', record.id);
    const fromStart = Array.fromAsync(read());
    const fromEnd = Array.fromAsync(read(end?.id));
    const again = await open();
    await again?.finish({ state: 'failed', stopReason: 'attempts', result: null, usage: Usage.parse({}), error: null });
    expect(states(await fromStart)).toEqual(['queued', 'running', 'failed', 'queued', 'running', 'failed', 'finished']);
    expect(states(await fromEnd)).toEqual(['queued', 'running', 'failed', 'finished']);
  });
});
