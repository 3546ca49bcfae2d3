import { type Learning, Usage } from '@etude/contracts/task';
import type { TaskEvent, TaskState } from '@etude/contracts/task';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Journal, type JournalEntry, LEARN_FROM, type LearningJournal, type RolloutEnd } from '../src/ports/journal.js';

/** One rollout of a newly accepted task, as callers see it. */
export interface JournalSubject {
  /** Takes over the rollout, as a worker does. null if there is nothing to run. */
  open(): Promise<Journal | null>;
  /** Every event of the task so far. The first event is `queued`. */
  events(): Promise<readonly TaskEvent[]>;
  /** Takes over the learning of the rollout. null if no learning is pending. */
  openLearning(): Promise<LearningJournal | null>;
  task(): Promise<{ state: TaskState; usage: Usage; learning: Learning }>;
  /** Requests cancellation of the task, as a caller does. */
  cancel(): Promise<void>;
}

const usage = (steps: number) => Usage.parse({ steps, inputTokens: 7 * steps });
const entry = (key: string, steps: number, value: unknown = { text: `answer of ${key}` }): JournalEntry => ({
  key,
  value,
  usage: usage(steps),
});
const started = (attempt: number): TaskEvent => ({ type: 'attempt_started', attempt });
const END: RolloutEnd = { state: 'failed', stopReason: 'attempts', result: null, usage: usage(3), error: null };
const FENCED = { code: 'JOURNAL_FENCED' };

const learn = async (subject: JournalSubject): Promise<LearningJournal> => (await subject.openLearning())!;

/** The promises of every `Journal`. Each call of `make` returns a new rollout. */
export function journalConformance(make: () => Promise<JournalSubject>): void {
  describe('journal', () => {
    let subject: JournalSubject;
    beforeEach(async () => {
      subject = await make();
    });
    const open = async (): Promise<Journal> => {
      const journal = await subject.open();
      if (!journal) throw new Error('there was nothing to open');
      return journal;
    };

    it('starts empty under the first epoch', async () => {
      const journal = await open();
      expect([journal.epoch, journal.entries.size]).toEqual([1, 0]);
      expect(await subject.task()).toMatchObject({ state: 'running', usage: usage(0) });
      expect(await subject.events()).toEqual([
        { type: 'state', state: 'queued' },
        { type: 'state', state: 'running' },
      ]);
    });

    it('passes every entry to the next holder in order', async () => {
      const first = await open();
      const value = { list: [1, 'two', null, { deep: true }], empty: '', text: 'é\u0000\n"' };
      await first.append(entry('a1.draft', 1, value), []);
      await first.append(entry('a1.b', 2, null), []);
      await first.append(entry('a1.a', 3, 0), []);
      const second = await open();
      expect([...second.entries.values()]).toEqual([entry('a1.draft', 1, value), entry('a1.b', 2, null), entry('a1.a', 3, 0)]);
      expect([...second.entries.keys()]).toEqual(['a1.draft', 'a1.b', 'a1.a']);
    });

    it('keeps its start across takeovers', async () => {
      const first = await open();
      const second = await open();
      expect(second.startedAt).toBe(first.startedAt);
      expect(second.epoch).toBe(2);
      expect((await subject.events()).at(-1)).toEqual({ type: 'worker', epoch: 2 });
    });

    it('keeps the first entry when one is repeated', async () => {
      const journal = await open();
      await journal.append(entry('a1.draft', 1, 'first'), [started(1)]);
      await journal.append(entry('a1.draft', 9, 'second'), [started(9)]);
      expect((await open()).entries.get('a1.draft')).toEqual(entry('a1.draft', 1, 'first'));
      expect(await subject.events()).not.toContainEqual(started(9));
      expect((await subject.task()).usage).toEqual(usage(1));
    });

    it('refuses a holder that was replaced', async () => {
      const old = await open();
      await old.append(entry('a1.draft', 1), []);
      const current = await open();
      await expect(old.append(entry('a1.code', 2), [started(8)])).rejects.toMatchObject(FENCED);
      await expect(old.finish(END)).rejects.toMatchObject(FENCED);
      expect(await subject.events()).not.toContainEqual(started(8));
      expect((await subject.task()).state).toBe('running');
      await current.append(entry('a1.code', 2), []);
      expect([...(await open()).entries.keys()]).toEqual(['a1.draft', 'a1.code']);
    });

    it('reports a requested cancellation to the holder', async () => {
      const journal = await open();
      expect(await journal.append(entry('a1.draft', 1), [])).toEqual({ cancelRequested: false });
      await subject.cancel();
      expect(await journal.append(entry('a1.code', 2), [])).toEqual({ cancelRequested: true });
    });

    it('ends the task with finished as last event', async () => {
      const journal = await open();
      await journal.append(entry('a1.draft', 1), []);
      await journal.finish(END);
      expect((await subject.events()).slice(-2)).toEqual([{ type: 'state', state: 'failed' }, { type: 'finished' }]);
      expect(await subject.task()).toMatchObject({ state: 'failed', usage: usage(3) });
    });

    it('refuses changes after its end', async () => {
      const journal = await open();
      await journal.finish(END);
      await journal.finish({ ...END, state: 'succeeded', stopReason: 'solved' });
      expect((await subject.events()).filter(({ type }) => type === 'finished')).toHaveLength(1);
      expect((await subject.task()).state).toBe('failed');
      await expect(journal.append(entry('a1.draft', 1), [])).rejects.toMatchObject(FENCED);
      expect(await subject.open()).toBeNull();
      expect(await subject.openLearning()).toBeNull();
    });

    describe('of learning', () => {
      const lessons: JournalEntry = { key: 't.lessons', value: { text: 'Read.' }, usage: usage(1) };
      beforeEach(async () => {
        const journal = await open();
        await journal.append(entry('a1.draft', 1), []);
        await journal.finish({ ...END, learnFrom: [] });
      });

      it('starts from what the end of the rollout left, while the task is final', async () => {
        expect([...(await learn(subject)).entries.keys()]).toEqual(['a1.draft', LEARN_FROM]);
        expect(await subject.task()).toMatchObject({ state: 'failed', learning: { state: 'pending', usage: usage(0), error: null } });
        expect(await subject.open()).toBeNull();
      });

      it('passes its entries on, fences the earlier holder, and counts its own usage', async () => {
        const first = await learn(subject);
        await first.append(lessons, [started(9)]);
        const second = await learn(subject);
        expect(second.entries.get('t.lessons')).toEqual(lessons);
        expect(second.startedAt).toBe(first.startedAt);
        await expect(first.append({ ...lessons, key: 't.skill' }, [])).rejects.toMatchObject(FENCED);
        await expect(first.finish({ state: 'done', error: null })).rejects.toMatchObject(FENCED);
        expect(await subject.task()).toMatchObject({ usage: usage(3), learning: { state: 'pending', usage: usage(1) } });
        expect((await subject.events()).at(-1)).toEqual({ type: 'finished' });
      });

      it('ends once', async () => {
        const journal = await learn(subject);
        const error = { code: 'MODEL_REFUSED', message: 'no' };
        await journal.finish({ state: 'failed', error });
        expect(await subject.task()).toMatchObject({ state: 'failed', learning: { state: 'failed', error } });
        await expect(journal.append(lessons, [])).rejects.toMatchObject(FENCED);
        expect(await subject.openLearning()).toBeNull();
      });
    });
  });
}
