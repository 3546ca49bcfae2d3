import { EtudeError } from '@etude/contracts/errors';
import { SkillRequest } from '@etude/contracts/queues';
import { describe, expect, it } from 'vitest';
import { until } from '@etude/test-support/until';
import { queueForFile } from '../../test/rig.js';
import { DeadLetters } from '../jobs/dead-letters.js';
import { ROUNDS_MAX, type Wish, WantedSkills } from './wanted-skills.js';

const startQueue = queueForFile();
const WISH: Wish = { tenant: 'acme', agent: 'coder', user: null, skill: 'parse_csv', description: 'Reads CSV.', example: { text: 'a,b' } };
const asked = (more: Partial<Wish> = {}, requestId = '') => ({ wish: { ...WISH, ...more }, requestId });

function start() {
  const rig = startQueue();
  return { ...rig, store: new WantedSkills(rig.producer), queue: rig.producer.queue(SkillRequest.name) };
}

describe('WantedSkills', () => {
  it('cuts a wish to the length that a model sees', async () => {
    const { store } = start();
    const wanted = await store.request(asked({ description: 'x'.repeat(5_000), example: { text: 'y'.repeat(20_000) } }));
    expect([wanted.description.length, wanted.example]).toEqual([4_000, null]);
  });

  it('counts a repeated wish instead of storing it twice', async () => {
    const { store, queue } = start();
    const first = await store.request(asked());
    const second = await store.request(asked({ description: 'Other words.' }));
    expect(second).toMatchObject({ id: first.id, asked: 2, priority: 7, description: 'Reads CSV.' });
    expect(await queue.getJobCountByTypes('waiting', 'prioritized')).toBe(1);
    const others = [{ agent: 'tester' }, { user: 'bob' }, { skill: 'write_csv' }, { tenant: 'globex' }];
    const ids = await Promise.all(others.map(async (other) => (await store.request(asked(other))).id));
    expect(new Set([first.id, ...ids]).size).toBe(5);
  });

  it('answers a repeated request without counting it, and refuses its id for another wish', async () => {
    const { store } = start();
    await store.request(asked({}, 'r1'));
    expect(await store.request(asked({}, 'r1'))).toMatchObject({ asked: 1 });
    await expect(store.request(asked({ skill: 'other' }, 'r1'))).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
  });

  it('is written again after its dead job was redriven', async () => {
    const { store, producer, startConsumer } = start();
    const { id } = await store.request(asked());
    const dead = new DeadLetters(producer, { requeue: async () => 'gone', reopenLearning: async () => 'gone' }, store);
    let isDown = true;
    startConsumer(SkillRequest, async ({ tenant, id: wish }) => {
      const { round } = (await store.load(tenant, wish))!;
      const at = { tenant, id: wish, round };
      if (!(await store.begin(at))) return { state: 'failed' as const };
      const end = { registered: isDown ? null : 'parse_csv', scripted: false };
      await store.end(at, { state: isDown ? 'failed' : 'registered', reason: '', ...end });
      if (isDown) throw new EtudeError('MODEL_REFUSED', 'no credit');
      return { state: 'registered' as const };
    });
    await until(async () => (await dead.list(SkillRequest.name, { pageSize: 5 })).items.length === 1, { what: 'a dead letter' });
    isDown = false;
    expect(await dead.redrive(SkillRequest.name, { all: true })).toEqual({ redriven: 1, refused: [] });
    await until(async () => (await store.get('acme', id))?.state === 'registered', { what: 'the skill is registered' });
    expect(await store.reopen('acme', id)).toBe('registered');
    expect(await store.reopen('acme', 'none')).toBe('gone');
  });

  it('starts a new round for a closed wish, up to the limit', async () => {
    const { store } = start();
    const { id } = await store.request(asked());
    const round = (number: number) => ({ tenant: 'acme', id, round: number });
    await store.keepDraft(round(1), '{"first":1}');
    await store.end(round(1), { state: 'failed', reason: 'no JSON', registered: null, scripted: false });
    expect(await store.get('acme', id)).toMatchObject({ state: 'failed', reason: 'no JSON' });
    expect(await store.request(asked())).toMatchObject({ state: 'waiting', reason: '', asked: 2 });
    expect((await store.load('acme', id))?.draft).toBeNull();
    const registered = { state: 'registered', reason: '', registered: 'parse_csv', scripted: true } as const;
    expect(await store.end(round(1), registered)).toBe(false);
    expect(await store.end(round(2), registered)).toBe(true);
    expect(await store.request(asked())).toMatchObject({ state: 'waiting', registered: null, asked: 3 });
    for (let number = 3; number <= ROUNDS_MAX; number += 1) {
      await store.end(round(number), registered);
      await store.request(asked());
    }
    expect(await store.get('acme', id)).toMatchObject({ ...registered, asked: ROUNDS_MAX + 1 });
  });

  it('keeps the first draft, and refuses a draft for a missing wish', async () => {
    const { store } = start();
    const { id } = await store.request(asked());
    const round = { tenant: 'acme', id, round: 1 };
    expect(await store.keepDraft(round, 'first')).toBe('first');
    expect(await store.keepDraft(round, 'second')).toBe('first');
    expect(await store.keepDraft({ ...round, id: 'w0' }, 'x')).toBeNull();
    expect(await store.begin({ ...round, id: 'w0' })).toBe(false);
  });

  it('refuses the draft of a withdrawn wish, and the withdrawal of a written wish', async () => {
    const { store } = start();
    const { id } = await store.request(asked());
    const round = { tenant: 'acme', id, round: 1 };
    const end = { state: 'registered', reason: '', registered: 'parse_csv', scripted: false } as const;
    expect(await store.begin(round)).toBe(true);
    expect(await store.withdraw('acme', id, '')).toMatchObject({ state: 'withdrawn' });
    expect(await store.begin(round, 'answer 1 could not be used')).toBe(false);
    expect(await store.keepDraft(round, 'late')).toBeNull();
    expect(await store.request(asked({ description: 'Other words.' }))).toMatchObject({ state: 'waiting', description: 'Other words.' });
    expect(await store.keepDraft(round, 'late')).toBeNull();
    expect(await store.end(round, end)).toBe(false);
    const next = { ...round, round: 2 };
    expect(await store.keepDraft(next, 'mine')).toBe('mine');
    const refusal = { code: 'FAILED_PRECONDITION', message: expect.stringContaining('is written') as string };
    await expect(store.withdraw('acme', id, '')).rejects.toMatchObject(refusal);
    await store.end(next, end);
    await expect(store.withdraw('acme', id, '')).rejects.toMatchObject({ message: expect.stringContaining('is registered') as string });
  });

  it('lists newest first, a page at a time, for one agent or all', async () => {
    const { store } = start();
    for (const skill of ['a', 'b', 'c', 'd']) await store.request(asked({ skill, agent: skill === 'b' ? 'tester' : 'coder' }));
    const skills = async (options: Parameters<typeof store.list>[1]) => {
      const { wishes, nextAfter } = await store.list('acme', options);
      return [wishes.map(({ skill }) => skill).toSorted(), nextAfter] as const;
    };
    expect((await skills({ limit: 10 }))[0]).toEqual(['a', 'b', 'c', 'd']);
    expect((await skills({ limit: 10, agent: 'tester' }))[0]).toEqual(['b']);
    const seen: string[] = [];
    for (let after: string | null = null, pages = 0; pages < 5; pages += 1) {
      const [names, next] = await skills({ limit: 1, agent: 'coder', after });
      seen.push(...names);
      if (next === null) break;
      after = next;
    }
    expect(seen.toSorted()).toEqual(['a', 'c', 'd']);
    expect((await store.list('globex', { limit: 10 })).wishes).toEqual([]);
    expect(await store.list('acme', { limit: 10, after: 'w0' })).toEqual({ wishes: [], nextAfter: null });
  });
});
