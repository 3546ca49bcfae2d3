import {
  ConsolidationRunJob,
  MemorySettleJob,
  MemoryUpkeepJob,
  MemoryWriteJob,
  RolloutRun,
  SandboxExecute,
  SkillVerify,
} from '@etude/contracts/queues';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { ExecutionRequest, SessionRequest } from '@etude/contracts/sandbox';
import { TaskSpec, Usage } from '@etude/contracts/task';
import { ConsolidatedAgent, type NamedRecord } from '@etude/contracts/memory-upkeep';
import { factId } from '@etude/domain/facts/fact-plan';
import { transitionOf } from '@etude/domain/testing/memory-records';
import { until } from '@etude/test-support/until';
import type { Redis } from 'ioredis';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SpendStore } from '../spend/spend-store.js';
import { SettlingStore } from '../memory/settling-store.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { endedRollout, never, queueForFile, SOLVED } from '../../test/rig.js';
import { AgentSettingsStore } from '../agents/agent-settings-store.js';
import { ConsolidationStore } from '../memory/consolidation-store.js';
import { ExecutionStore } from '../executions/executions.js';
import { openJournal, openLearning } from '../tasks/journal.js';
import { RedisMemoryOutbox } from '../memory/memory-outbox.js';
import { newSandboxId, SandboxSessionStore } from '../sandboxes/sandbox-sessions.js';
import { schedule } from '../jobs/scheduler.js';
import { RedisToolSessions, ToolCalls } from '../agents/tool-sessions.js';
import { WantedSkills } from '../agents/wanted-skills.js';
import { UpkeepStore } from '../memory/upkeep-store.js';
import { RedisWorlds } from '../worlds/worlds-store.js';
import { QueueErasure } from './queue-erasure.js';

const startQueue = queueForFile();
const USAGE = Usage.parse({});
const LATER = Date.now() + 3_600_000;

interface Person {
  readonly tenant: string;
  readonly agent: string;
  readonly user: string | null;
}

const BOB: Person = { tenant: 'acme', agent: 'coder', user: 'bob-user' };
const EVE: Person = { tenant: 'acme', agent: 'tester', user: 'eve-user' };
const STRANGER: Person = { tenant: 'other', agent: 'coder', user: 'bob-user' };

const specOf = (agent: string) => TaskSpec.parse({ prompt: `of ${agent}`, agent });

function start(stopWaitMs = 5_000) {
  const rig = startQueue();
  const { prefix } = rig.keys;
  const erasure = new QueueErasure(rig.producer, { skillIsGone: async ({ name }) => name.startsWith('gone'), stopWaitMs });
  const sandboxes = new SandboxSessionStore(rig.redis, rig.keys);
  const open = async (tenant: string, requestId: string, labels: Record<string, string> = {}) => {
    const request = SessionRequest.parse({ tenant, requestId, limits: {}, labels });
    return (await sandboxes.open(newSandboxId(), request, { controllerId: 'c1', place: null }, 100)).stored.session.id;
  };
  const { producer, redis, keys } = rig;
  const stores = {
    sandboxes,
    sessions: new RedisToolSessions(redis, keys),
    calls: new ToolCalls(redis, keys),
    outbox: new RedisMemoryOutbox(producer),
    executions: new ExecutionStore(redis, keys),
    worlds: new RedisWorlds(redis, keys),
    runs: new ConsolidationStore(producer),
  };
  /** Takes the rollout of a task for a worker. */
  const take = (taskId: string) => openJournal(redis, keys, { tenant: 'acme', taskId, rolloutId: `${taskId}-r1` });
  return { ...rig, ...stores, prefix, erasure, open, take };
}
type Rig = ReturnType<typeof start>;

/** Creates one record of every kind for a person. Each contains the person's name. @returns the task's id */
async function live(rig: Rig, person: Person, state: 'queued' | 'running' = 'running'): Promise<string> {
  const { tenant, agent, user } = person;
  const secret = `secret of ${tenant} ${agent} ${user}`;
  const spec = TaskSpec.parse({ prompt: secret, agent, user: user ?? undefined, labels: { owner: `${user}` } });
  const { record } = await rig.tasks.submit(tenant, spec, `request-of-${tenant}-${agent}-${user}-${Math.random()}`);
  const rolloutId = `${record.id}-r1`;
  if (state === 'running') {
    const journal = await openJournal(rig.redis, rig.keys, { tenant, taskId: record.id, rolloutId });
    await journal?.append({ key: 'a1.recall', value: { secret }, usage: USAGE }, [{ type: 'attempt_started', attempt: 1 }]);
  }
  const owner = { agent, user };
  const runs = [{ kind: 'program', code: secret }];
  for (const [executionId, whose] of [
    [`${rolloutId}.a1.execute`, undefined],
    [`verify-${record.id}-1-parse`, owner],
  ] as const) {
    await rig.executions.prepare(ExecutionRequest.parse({ executionId, tenant, limits: {}, runs, owner: whose }));
    await rig.producer.add(SandboxExecute, { v: 1, tenant, executionId, taskId: null });
  }
  await new AgentSettingsStore(rig.redis, rig.keys, ProceduralMemorySettings.parse({})).update(tenant, agent, { maxSkills: 7 });
  const scope = { tenant, agent, user };
  const transition = transitionOf({ scope, prompt: secret, createdAt: Date.now() });
  await rig.outbox.put(tenant, `${rolloutId}.a1.transition`, { kind: 'transition', transition });
  const wish = { ...person, skill: 'wanted', description: secret, example: null };
  await new WantedSkills(rig.producer).request({ wish, requestId: `wish-of-${record.id}` });
  await rig.sessions.putTodos({ ...person, session: 's' }, [{ content: secret, status: 'pending' }]);
  const requestId = `sandbox-${record.id}`;
  const sandbox = await rig.open(tenant, requestId, { of: secret });
  await rig.sessions.keepSandbox({ ...person, session: record.id }, null, sandbox);
  await rig.calls.keep({ ...person, requestId: 'r', content: secret }, { success: false, error: secret });
  await rig.worlds.create(tenant, 'shared', { seed: tenant, width: 8, height: 8 });
  await rig.worlds.move(person, 'shared', { tool: 'move_to', x: -1, y: 0 }, record.id);
  return record.id;
}

/** All keys of the prefix and their values as text, without the marks of erasures. */
async function everything(redis: Redis, prefix: string): Promise<Map<string, string>> {
  const keys = (await redis.keys(`${prefix}:*`)).filter((key) => !key.startsWith(`${prefix}:erased:`));
  const values = await Promise.all(keys.map(async (key) => READS[await redis.type(key)]?.(redis, key)));
  return new Map(keys.map((key, i) => [key, JSON.stringify(values[i])]));
}

const READS: Readonly<Record<string, (redis: Redis, key: string) => Promise<unknown>>> = {
  hash: (redis, key) => redis.hgetall(key),
  set: (redis, key) => redis.smembers(key),
  zset: (redis, key) => redis.zrange(key, '0', '-1'),
  list: (redis, key) => redis.lrange(key, 0, -1),
  stream: (redis, key) => redis.xrange(key, '-', '+'),
  string: (redis, key) => redis.get(key),
};

async function mentions(rig: Rig, text: string): Promise<string[]> {
  const all = await everything(rig.redis, rig.prefix);
  // The random prefix may contain a short text by chance.
  const isMention = ([key, value]: readonly [string, string]) => `${key} ${value}`.replaceAll(rig.prefix, '').includes(text);
  return [...all].flatMap((entry) => (isMention(entry) ? [entry[0]] : [])).toSorted();
}

describe('erasing outside memory', () => {
  it('removes all data of a user, and no data of others', async () => {
    const rig = start();
    const tasks = [await live(rig, BOB, 'queued'), await live(rig, BOB)];
    const others = [await live(rig, EVE), await live(rig, STRANGER), await live(rig, { ...BOB, user: null })];
    const lasting = async (id: string) => (await mentions(rig, id)).filter((key) => !key.endsWith(':events'));
    const kept = await Promise.all(others.map(lasting));
    await rig.tasks.requestCancel('acme', tasks[1] ?? '');
    const journal = await rig.take(tasks[1] ?? '');
    await journal?.finish({ state: 'cancelled', stopReason: 'cancelled', result: null, error: null, usage: USAGE });
    const before = await rig.erasure.find('acme', { user: 'bob-user' });
    expect(before).toMatchObject({ 'queue.tasks': 2, 'queue.executions': 4, 'queue.outbox': 2 });
    const removed = await rig.erasure.erase('acme', { user: 'bob-user' }, never());
    expect(removed).toMatchObject({ 'queue.tasks': 2, 'queue.executions': 4, 'queue.outbox': 2, 'queue.jobs': 9 });
    expect(await rig.erasure.find('acme', { user: 'bob-user' })).toEqual({});
    const shared = await rig.worlds.get('acme', 'shared');
    expect(shared?.world.characters.map(({ name }) => name)).toEqual(['tester/eve-user', 'coder']);
    expect(
      (await mentions(rig, 'acme coder bob-user')).concat(await mentions(rig, tasks[0] ?? ''), await mentions(rig, tasks[1] ?? '')),
    ).toEqual([]);
    expect(await Promise.all(others.map(lasting))).toEqual(kept);
    expect(await rig.erasure.erase('acme', { user: 'bob-user' }, never())).toEqual({});
  });

  it.each([{ user: 'bob-user' }, { agent: 'coder' }])('ends every sandbox that tool sessions of %o opened or named', async (subject) => {
    const rig = start();
    const { sessions, sandboxes } = rig;
    const open = (requestId: string) => rig.open('acme', requestId);
    const opened = async (person: Person, session: string) => {
      const sandbox = await open(session);
      await sessions.keepSandbox({ ...person, session }, null, sandbox);
      return sandbox;
    };
    const his = await opened(BOB, 'his');
    const named = await open('named');
    await sessions.ownSandbox({ ...BOB, session: named }, named, true);
    const others = [await opened(EVE, 'hers'), await open('nobodys')];
    await rig.erasure.erase('acme', subject, never());
    for (const id of [his, named]) expect(await mentions(rig, id)).toEqual([]);
    for (const id of others) expect((await sandboxes.get('acme', id))?.session.state).toBe('open');
  });

  it('erases an agent with more tasks than one page', async () => {
    const rig = start();
    await Promise.all(Array.from({ length: 1_200 }, (_, i) => rig.tasks.submit('acme', specOf(i % 2 ? 'coder' : 'tester'), '')));
    expect(await rig.erasure.erase('acme', { agent: 'coder' }, never())).toMatchObject({ 'queue.tasks': 600, 'queue.jobs': 600 });
    expect(await rig.erasure.find('acme', { agent: 'coder' })).toEqual({});
    expect((await rig.erasure.find('acme', { agent: 'tester' }))['queue.tasks']).toBe(600);
  });

  it('cancels running work, and fences a worker that ignores the cancel', async () => {
    const rig = start(1_000);
    const taskId = await live(rig, BOB);
    const deaf = await rig.take(taskId);
    await rig.erasure.erase('acme', { user: 'bob-user' }, never());
    expect(await rig.tasks.get('acme', taskId)).toBeNull();
    await expect(deaf?.append({ key: 'a2', value: 'secret', usage: USAGE }, [])).rejects.toMatchObject({ code: 'JOURNAL_FENCED' });
    const runs = [{ kind: 'program', code: '1' }];
    const request = ExecutionRequest.parse({ executionId: `${taskId}-r1.a2`, tenant: 'acme', limits: {}, runs });
    await expect(rig.executions.prepare(request)).rejects.toMatchObject({ code: 'JOURNAL_FENCED' });
    await rig.executions.save('acme', `${taskId}-r1.a1.execute`, { executionId: `${taskId}-r1.a1.execute`, runs: [] });
    const scope = { tenant: 'acme', agent: 'coder', user: 'bob-user' };
    await rig.outbox.put('acme', 'late', { kind: 'transition', transition: transitionOf({ scope, createdAt: Date.now() - 60_000 }) });
    expect(await mentions(rig, taskId)).toEqual([]);
    expect(await rig.redis.exists(rig.keys.memoryOutbox('acme'))).toBe(0);
    await rig.outbox.put('acme', 'new', { kind: 'transition', transition: transitionOf({ scope, createdAt: LATER }) });
    expect(await rig.redis.hkeys(rig.keys.memoryOutbox('acme'))).toEqual(['new']);
  });

  it('stops learning, and removes what it starts from', async () => {
    const rig = start(60_000);
    const attempt = { thought: 'a secret', recalled: [] };
    const address = await endedRollout(rig.producer, rig.tasks, [attempt], specOf('coder'));
    await rig.tasks.startLearning(address);
    const deaf = await openLearning(rig.redis, rig.keys, address);
    await rig.erasure.erase('acme', { agent: 'coder' }, never());
    await expect(deaf?.finish({ state: 'done', error: null })).rejects.toMatchObject({ code: 'JOURNAL_FENCED' });
    expect(await rig.erasure.find('acme', { agent: 'coder' })).toEqual({});
    expect(await mentions(rig, address.taskId)).toEqual([]);
  });

  it('waits for running jobs, and counts those that do not end', async () => {
    const rig = start(700);
    const release = Promise.withResolvers<void>();
    const consumer = rig.startConsumer(SkillVerify, async () => release.promise.then(() => ({ status: 'active' })));
    await consumer.ready();
    const verify = { v: 1, tenant: 'acme', agent: 'coder', version: 1, digest: 'a'.repeat(64) } as const;
    await rig.producer.add(SkillVerify, { ...verify, name: 'slow' });
    await until(async () => (await rig.producer.queue(SkillVerify.name).getActiveCount()) === 1);
    expect(await rig.erasure.erase('acme', { agent: 'coder' }, never())).toEqual({});
    expect(await rig.erasure.find('acme', { agent: 'coder' })).toEqual({ 'queue.jobs': 1 });
    release.resolve();
    await until(async () => (await rig.producer.queue(SkillVerify.name).getCompletedCount()) === 1);
    expect(await rig.erasure.erase('acme', { agent: 'coder' }, never())).toMatchObject({ 'queue.jobs': 1 });
    expect(await mentions(rig, 'coder')).toEqual([]);
  });

  it('removes dead letters and events of queues, and keeps schedules of the tenant', async () => {
    const rig = start();
    rig.startConsumer(SkillVerify, async () => Promise.reject(new Error('nonsense')));
    const verify = { v: 1, tenant: 'acme', version: 1, digest: 'a'.repeat(64) } as const;
    for (const [agent, name] of [
      ['coder', 'one'],
      ['tester', 'gone_one'],
      ['tester', 'two'],
    ] as const)
      await rig.producer.add(SkillVerify, { ...verify, agent, name });
    await rig.producer.add(ConsolidationRunJob, { v: 1, tenant: 'acme', runId: 'c1', agent: 'coder', days: 7, dryRun: false });
    await schedule(rig.producer, 'nightly', 'acme', { pattern: '0 3 * * *', timeZone: 'UTC', days: 7 });
    const queue = rig.producer.queue(SkillVerify.name);
    await until(async () => (await queue.getFailedCount()) === 3);
    await rig.erasure.erase('acme', { agent: 'coder' }, never());
    expect(await rig.erasure.find('acme', { agent: 'coder' })).toEqual({});
    expect((await mentions(rig, 'coder')).filter((key) => !key.includes('tester'))).toEqual([]);
    expect(await queue.getJobCounts('delayed', 'waiting', 'failed')).toEqual({ delayed: 0, waiting: 0, failed: 1 });
    expect((await rig.producer.queue(ConsolidationRunJob.name).getJobSchedulers()).map(({ key }) => key)).toEqual(['nightly.acme.all']);
  });

  it('removes consolidation runs that may quote a user, also running ones', async () => {
    const rig = start();
    const { runs } = rig;
    const all = await runs.create('acme', { agent: null, days: 7, dryRun: false }, 'r1');
    const own = await runs.create('acme', { agent: 'coder', days: 7, dryRun: false }, 'r2');
    const plan = ['fact: bob likes oolong'];
    for (const record of [all, own]) await runs.put({ ...record, state: 'running', plan });
    await rig.erasure.erase('acme', { agent: 'tester' }, never());
    expect([await runs.get('acme', all.id), await runs.get('acme', own.id)]).toMatchObject([null, { plan }]);
    await rig.erasure.erase('acme', { user: 'bob' }, never());
    for (const record of [all, own]) await runs.put({ ...record, state: 'done', plan });
    expect(await mentions(rig, 'oolong')).toEqual([]);
    expect((await runs.create('acme', { agent: 'coder', days: 7, dryRun: false }, 'r2')).id).not.toBe(own.id);
  });

  it('removes all data of a tenant except the marks of its erasure', async () => {
    const rig = start(500);
    await live(rig, BOB, 'queued');
    await live(rig, EVE);
    await rig.worlds.create('acme', 'expired', { seed: 's', width: 8, height: 8 });
    await rig.redis.del(rig.keys.world('acme', 'expired'));
    const stranger = await live(rig, STRANGER);
    await rig.open('acme', 's1', { who: 'bob' });
    await rig.producer.add(ConsolidationRunJob, { v: 1, tenant: 'acme', runId: 'c1', agent: null, days: 7, dryRun: false });
    await rig.producer.queue(MemoryWriteJob.name).add('x', { tenant: 'acme', bad: true }, { jobId: 'bad' });
    const upkeep = { v: 1, tenant: 'acme', id: 'nightly-acme' } as const;
    await rig.producer.add(MemoryUpkeepJob, { ...upkeep, work: 'archive', scoreMax: 1, olderThanDays: 1 });
    await rig.producer.add(MemorySettleJob, { v: 1, tenant: 'acme', at: LATER });
    const pruned = { unusedDays: 1, failingRateMax: 0, failingUsesMin: 1, supersededDays: 0 };
    await rig.producer.add(MemoryUpkeepJob, { ...upkeep, work: 'prune', ...pruned });
    await new SettlingStore(rig.producer).end('acme', 'none', 'The model refused: acme.');
    const spend = new SpendStore(rig.producer, { ETUDE_TENANT_LIMITS: {} });
    await spend.count({ tenant: 'acme', agent: 'a', purpose: 'settle' }, { inputTokens: 1, outputTokens: 1, costUsd: 0 });
    await rig.erasure.erase('acme', { all: true }, never());
    expect(await rig.erasure.find('acme', { all: true })).toEqual({});
    expect(await mentions(rig, 'acme')).toEqual([]);
    expect((await mentions(rig, stranger)).filter((key) => !key.includes(':queue:')).length).toBeGreaterThan(4);
    expect(await rig.producer.queue(RolloutRun.name).getJob(`${stranger}-r1`)).toBeDefined();
  });

  it('keeps data that is newer than the erasure, also when the erasure is repeated', async () => {
    const rig = start(500);
    await live(rig, BOB);
    const newFrom = Date.now() + 1;
    await until(() => Date.now() > newFrom + 1);
    const task = await live(rig, BOB, 'queued');
    await rig.erasure.erase('acme', { user: 'bob-user' }, never(), newFrom);
    expect(await rig.tasks.get('acme', task)).toMatchObject({ state: 'queued' });
    expect(await rig.erasure.find('acme', { user: 'bob-user' }, newFrom)).toEqual({});
    await rig.erasure.erase('acme', { user: 'bob-user' }, never(), newFrom);
    expect(await rig.tasks.get('acme', task)).toMatchObject({ state: 'queued' });
  });

  it('rewrites the append-only file of Redis, and reports when Redis refuses', async () => {
    const rig = start();
    expect((await rig.erasure.purge(never()))[0]).toBe('Redis keeps no append-only file');
    await rig.redis.config('SET', 'appendonly', 'yes');
    onTestFinished(async () => void (await rig.redis.config('SET', 'appendonly', 'no')));
    const aof = async () => {
      const [, dir = ''] = await rig.redis.config('GET', 'dir');
      const [, name = ''] = await rig.redis.config('GET', 'appenddirname');
      const files = await readdir(join(dir, name));
      return (await Promise.all(files.map((each) => readFile(join(dir, name, each), 'latin1')))).join('');
    };
    await rig.redis.set(`${rig.prefix}:x`, 'zanzibar');
    await until(async () => (await aof()).includes('zanzibar'));
    await rig.redis.del(`${rig.prefix}:x`);
    expect((await rig.erasure.purge(never()))[0]).toBe('Redis rewrote its append-only file without the removed data');
    expect(await aof()).not.toContain('zanzibar');
    await rig.redis.call('ACL', 'SETUSER', 'default', '-bgrewriteaof');
    onTestFinished(async () => void (await rig.redis.call('ACL', 'SETUSER', 'default', '+@all')));
    expect((await rig.erasure.purge(never()))[0]).toMatch(/^Redis refused to rewrite its append-only file.*NOPERM/);
  });
});

const FACT: NamedRecord = { name: 'facts/f1', agent: 'coder', user: null };
const itemOf = (id: string) =>
  ({ id, layer: 'semantic', kind: 'fact', title: `title of ${id}`, text: `text of ${id}`, score: 1, similarity: 1 }) as const;

describe('erasing one record outside memory', () => {
  it('removes the journals and recall events of tasks that recalled it, once these are over', async () => {
    const rig = start(300);
    const taskIds = await Promise.all([BOB, { ...BOB, user: null }].map((person) => live(rig, person)));
    const other = await live(rig, EVE);
    const journals = await Promise.all(taskIds.map(rig.take));
    const step = { type: 'step', step: 'a2.recall', attempt: 2, kind: 'recall', durationMs: 1, usage: USAGE, scripted: false } as const;
    const recall = (journal: (typeof journals)[number], id: string) =>
      journal?.append({ key: 'a2.recall', value: [itemOf(id)], usage: USAGE }, [{ ...step, summary: `title of ${id}` }]);
    await recall(journals.at(0) ?? null, 'f1');
    // A memory tool returned the record.
    const outcome = { success: true, result: { records: [itemOf('f1')] } };
    await journals[1]?.append({ key: 'a1.s1.c1.t2', value: { outcome }, usage: USAGE }, [{ type: 'attempt_started', attempt: 1 }]);
    await recall(await rig.take(other), 'f1.2');
    const finish = (i: number) => journals[i]?.finish({ ...SOLVED, usage: USAGE });
    await finish(0);
    expect(await rig.erasure.erase('acme', { record: FACT }, never())).toEqual({ 'queue.journals': 1 });
    expect(await rig.erasure.find('acme', { record: FACT }, LATER)).toEqual({ 'queue.journals': 1 });
    await finish(1);
    expect(await rig.erasure.erase('acme', { record: FACT }, never())).toEqual({ 'queue.journals': 1 });
    expect(await mentions(rig, 'of f1"')).toEqual([]);
    expect(await mentions(rig, 'of f1.2')).toEqual([rig.keys.events('acme', other), rig.keys.journal(`${other}-r1`)]);
    for (const id of taskIds) {
      const events = await rig.redis.xrange(rig.keys.events('acme', id), '-', '+');
      expect(events.at(-1)?.[0]).toBe(await rig.redis.hget(rig.keys.task('acme', id), 'finishedEvent'));
      expect(JSON.stringify(events)).toContain('attempt_started');
      expect(await rig.redis.pttl(rig.keys.events('acme', id))).toBeGreaterThan(0);
    }
  });

  it('removes the attempts to learn from that recalled it, once learning is over', async () => {
    const rig = start(300);
    const address = await endedRollout(rig.producer, rig.tasks, [{ recalled: [itemOf('f1')] }], specOf('coder'));
    expect(await rig.erasure.erase('acme', { record: FACT }, never())).toEqual({});
    expect(await rig.erasure.find('acme', { record: FACT }, LATER)).toEqual({ 'queue.journals': 1 });
    await (await openLearning(rig.redis, rig.keys, address))?.finish({ state: 'failed', error: null });
    expect(await rig.erasure.erase('acme', { record: FACT }, never())).toEqual({ 'queue.journals': 1 });
    expect(await mentions(rig, 'of f1"')).toEqual([]);
    expect(await rig.tasks.reopenLearning('acme', address.taskId)).toBe('gone');
  });

  it('removes the task and the pending writes of an episode, and waits for a pending copy', async () => {
    const rig = start(300);
    const [taskId, other] = [await live(rig, BOB, 'queued'), await live(rig, EVE, 'queued')];
    const record = { name: `episodes/${taskId}-r1`, agent: BOB.agent, user: BOB.user };
    const put = (id: string, change: Parameters<typeof transitionOf>[0]) =>
      rig.outbox.put('acme', id, { kind: 'transition', transition: transitionOf({ createdAt: Date.now(), ...change }) });
    await put('own', { rolloutId: `${taskId}-r1` });
    await put('copy', { rolloutId: 'x1', recalled: [{ ...itemOf(`${taskId}-r1.a1`), layer: 'episodic', kind: 'transition' }] });
    const lasting = async () => (await mentions(rig, other)).filter((key) => !key.endsWith(':events'));
    const kept = await lasting();
    const removed = await rig.erasure.erase('acme', { record }, never());
    expect(removed).toMatchObject({ 'queue.tasks': 1, 'queue.executions': 1, 'queue.outbox': 1 });
    expect(await rig.tasks.get('acme', taskId)).toBeNull();
    expect(await rig.redis.hkeys(rig.keys.memoryOutbox('acme'))).not.toContain('own');
    expect(await rig.erasure.find('acme', { record }, LATER)).toEqual({ 'queue.outbox': 1 });
    expect(await lasting()).toEqual(kept);
  });

  it('removes tool answers, plans of consolidation and receipts that show it', async () => {
    const rig = start(300);
    const text = 'Bob likes oolong.';
    const record = { name: `facts/${factId({ tenant: 'acme', agent: 'coder', user: null }, text)}`, agent: 'coder', user: null };
    const { runs, calls } = rig;
    for (const said of [text, 'Bob likes tea.']) {
      const run = await runs.create('acme', { agent: null, days: 7, dryRun: false }, '');
      const plan = [`fact, general, confidence 0.5: ${said} [from t1, t2]`];
      await runs.report(run).putLine(ConsolidatedAgent.parse({ agent: 'coder', state: 'applied', plan }));
      await runs.put({ ...run, state: 'done' });
    }
    const procedure = { name: 'skills/brew_oolong@1', agent: 'coder', user: null };
    for (const name of ['brew_oolong', 'brew_tea'])
      await calls.keep({ ...BOB, requestId: name, content: name }, { success: true, result: [{ name }] } as never);
    const upkeep = new UpkeepStore(rig.producer);
    for (const supported of [['skills/brew_oolong@1'], ['skills/brew_tea@1']]) {
      const receipt = await upkeep.requestErasure({ tenant: 'acme', requestId: '', asked: {} }, { record: FACT }, { supported });
      await upkeep.putErasure({ receipt: { ...receipt, state: 'succeeded' }, subject: null });
    }
    expect(await rig.erasure.erase('acme', { record }, never(), LATER)).toEqual({ 'queue.consolidations': 1 });
    expect(await rig.erasure.erase('acme', { record: procedure }, never(), LATER)).toEqual({
      'queue.tool-answers': 1,
      'queue.deletions': 1,
    });
    expect((await mentions(rig, 'oolong')).filter((key) => !key.includes('queue:'))).toEqual([]);
    expect(await mentions(rig, 'tea')).toHaveLength(3);
    await runs.create('acme', { agent: null, days: 7, dryRun: false }, '');
    await rig.erasure.erase('acme', { record }, never(), LATER);
    expect(await rig.erasure.find('acme', { record }, LATER)).toEqual({ 'queue.consolidations': 1 });
    expect(await rig.erasure.erase('acme', { user: 'bob-user' }, never(), LATER)).toMatchObject({ 'queue.deletions': 1 });
  });
});
