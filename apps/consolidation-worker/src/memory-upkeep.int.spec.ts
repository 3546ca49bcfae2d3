import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EtudeError } from '@etude/contracts/errors';
import { ExecutionRequest } from '@etude/contracts/sandbox';
import { MemoryUpkeepJob } from '@etude/contracts/queues';
import { TaskSpec } from '@etude/contracts/task';
import type { Embedder } from '@etude/domain/ports/model';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { episodeOf, factOf, skillOf, transitionOf } from '@etude/domain/testing/memory-records';
import type { Memory } from '@etude/memory/memory';
import { openMemory } from '@etude/memory/open-memory';
import { consume } from '@etude/queue/jobs/consumer';
import { type DurableWork, reconcileWork } from '@etude/queue/jobs/durable-work';
import { ExecutionStore } from '@etude/queue/executions/executions';
import { RedisMemoryOutbox } from '@etude/queue/memory/memory-outbox';
import { Producer } from '@etude/queue/jobs/producer';
import { TaskStore } from '@etude/queue/tasks/task-store';
import { UpkeepStore } from '@etude/queue/memory/upkeep-store';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { until } from '@etude/test-support/until';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { memoryUpkeepProcessor } from './memory.processors.js';
import type { ReembedDeps } from './move-vectors.js';

const tenant = 'acme';
const BOB = { tenant, agent: 'coder', user: 'bob-user' };
const EVE = { tenant, agent: 'coder', user: 'eve-user' };
const ALL = { tenant, agent: null };
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** The lexical embedder with another name, another length and a delay. */
function otherEmbedder(embedding: () => Promise<void> = async () => undefined): Embedder {
  const lexical = new LexicalEmbedder();
  return {
    profile: { ...lexical.profile, model: 'other', dimension: lexical.profile.dimension / 2 },
    async embed(texts) {
      await embedding();
      return (await lexical.embed(texts)).map((vector) => vector.slice(0, vector.length / 2));
    },
  };
}

const redis = redisForFile();

describe('memory upkeep', () => {
  let dir: string;
  let prefix: string;
  let memory: Memory;
  let producer: Producer;
  let store: UpkeepStore;
  let closers: Array<() => Promise<unknown>>;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'etude-upkeep-'));
    prefix = redis.prefix();
    memory = await openMemory({ store: { adapter: 'sqlite', path: join(dir, 'memory.db') }, embedder: new LexicalEmbedder() });
    producer = new Producer(redis.url, prefix);
    store = new UpkeepStore(producer);
    closers = [];
  });
  afterEach(async () => {
    for (const close of closers) await close();
    await producer.close();
    await memory.close();
    await rm(dir, { recursive: true });
  });

  async function work(embedderOf: ReembedDeps['embedderOf'] = async () => otherEmbedder()): Promise<void> {
    const usedModel = new LexicalEmbedder().profile.model;
    const clock = { now: Date.now };
    const processor = memoryUpkeepProcessor({ memory, producer, store, clock, usedModel, embedderOf, stopWaitMs: 2_000 });
    const consumer = consume(MemoryUpkeepJob, processor, { redisUrl: redis.url, prefix, concurrency: 2, logger: quiet });
    closers.push(() => consumer.close(2_000));
    await consumer.ready();
  }

  async function live(scope: typeof BOB, n = ''): Promise<void> {
    const secret = `secret of ${scope.user}`;
    const id = `${scope.user}${n}`;
    const { appliedWrites, semantic } = memory;
    const createdAt = Date.now();
    await appliedWrites.apply(tenant, `w1-${id}`, {
      kind: 'transition',
      transition: transitionOf({ id, scope, prompt: secret, createdAt }),
    });
    await appliedWrites.apply(tenant, `w2-${id}`, { kind: 'episode', episode: episodeOf({ id, scope, summary: secret, createdAt }) });
    const skill = skillOf({ scope, name: `${scope.user.slice(0, 3)}_skill`, description: secret, createdAt });
    await appliedWrites.apply(tenant, `w3-${id}`, { kind: 'skill', skill });
    await semantic.store(`w4-${id}`, factOf({ scope, text: `${secret} is ${id}.`, createdAt }));
    const spec = TaskSpec.parse({ prompt: secret, agent: scope.agent, user: scope.user, evaluator: { kind: 'none' } });
    const { record } = await new TaskStore(producer).submit(tenant, spec, `request-${id}`);
    const execution = { executionId: `${record.id}-r1.a1`, tenant, limits: {}, runs: [{ kind: 'program', code: secret }] };
    await new ExecutionStore(producer.redis, producer.keys).prepare(ExecutionRequest.parse(execution));
    const write = { kind: 'episode', episode: episodeOf({ id: `late-${id}`, scope, summary: secret, createdAt }) } as const;
    await new RedisMemoryOutbox(producer).put(tenant, `late-${id}`, write);
  }

  const ended = async (id: string) =>
    until(async () => {
      const receipt = (await store.loadErasure(tenant, id))?.receipt;
      return receipt?.state === 'running' ? null : receipt;
    });

  const askErasure = () => store.requestErasure({ tenant, requestId: 'r1', asked: BOB.user }, { user: BOB.user });
  const erased = async () => ended((await askErasure()).id);

  /** Waits for the dead letter of the only job, and has its record reconciled. */
  async function dead(of: DurableWork): Promise<void> {
    await until(async () => (await producer.queue(MemoryUpkeepJob.name).getFailedCount()) === 1);
    expect(await reconcileWork(producer, of, Date.now() + 60_000, (error) => expect.fail(String(error)))).toBe(1);
  }

  it('erases a user everywhere and verifies that nothing is left', async () => {
    await live(BOB);
    await live(EVE);
    await work();
    const done = await erased();
    expect(done).toMatchObject({ state: 'succeeded', error: null, finishedAt: expect.any(Number) });
    expect(done?.removed).toMatchObject({
      'memory.episodic.transition': 1,
      'memory.episodic.episode': 1,
      'memory.semantic.fact': 1,
      'memory.semantic.summary': 1,
      'memory.procedural.skill': 1,
      'queue.tasks': 1,
      'queue.executions': 1,
      'queue.outbox': 1,
    });
    expect(Object.keys(done?.left ?? {})).toEqual(Object.keys(done?.removed ?? {}));
    expect(new Set(Object.values(done?.left ?? {}))).toEqual(new Set([0]));
    expect(done?.notes.length).toBeGreaterThan(0);
    const dump = JSON.stringify(
      await Promise.all((await producer.redis.keys(`${prefix}:erasure:*`)).map((key) => producer.redis.get(key))),
    );
    expect(dump).not.toContain('bob');
    expect((await memory.upkeep.stats(tenant)).layers.find(({ kind }) => kind === 'fact')?.records).toBe(1);
    expect(await memory.semantic.list({ ...ALL, user: 'eve-user' }, 9)).toHaveLength(1);
    expect(await askErasure()).toEqual(done);
  });

  it('reports what is left after its last attempt, and continues when redriven', async () => {
    await live(BOB);
    const { upkeep } = memory;
    const find = upkeep.findErased.bind(upkeep);
    upkeep.findErased = async () => ({ 'memory.semantic.fact': 3 });
    const receipt = await askErasure();
    const queue = producer.queue(MemoryUpkeepJob.name);
    await queue.remove(`erase.${receipt.id}`);
    await queue.add('x', { v: 1, work: 'erase', tenant, id: receipt.id }, { jobId: `erase.${receipt.id}`, attempts: 1 });
    await work();
    await dead(store.erasures);
    const failed = (await store.loadErasure(tenant, receipt.id))?.receipt;
    expect(failed).toMatchObject({ state: 'failed', left: { 'memory.semantic.fact': 3, 'queue.tasks': 0 } });
    expect(failed?.error).toContain('3 of memory.semantic.fact are not erased yet');
    upkeep.findErased = find;
    await (await queue.getJob(`erase.${receipt.id}`))?.retry('failed', { resetAttemptsMade: true });
    expect(await until(async () => ((await store.loadErasure(tenant, receipt.id))?.receipt.state === 'succeeded' ? true : null))).toBe(
      true,
    );
  });

  /** Calls `happen` after the first erasure of memory, at a later millisecond. @returns a function with the number of erasures */
  function afterFirstErase(happen: () => Promise<void>): () => number {
    const { upkeep } = memory;
    const erase = upkeep.erase.bind(upkeep);
    let times = 0;
    upkeep.erase = async (owners, options) => {
      const removed = await erase(owners, options);
      if ((times += 1) > 1) return removed;
      await until(() => Date.now() > (options?.before ?? 0));
      await happen();
      return removed;
    };
    return () => times;
  }

  it('erases memories and tasks that are written while it runs', async () => {
    await live(BOB);
    afterFirstErase(async () => {
      const createdAt = Date.now();
      await memory.semantic.store('new', factOf({ scope: BOB, id: 'new', text: 'Told meanwhile.', createdAt }));
      const spec = TaskSpec.parse({ prompt: 'Asked meanwhile', agent: BOB.agent, user: BOB.user, evaluator: { kind: 'none' } });
      await new TaskStore(producer).submit(tenant, spec, 'request-new');
    });
    await work();
    expect(await erased()).toMatchObject({
      state: 'succeeded',
      removed: { 'memory.semantic.fact': 2, 'queue.tasks': 2 },
    });
    expect(await memory.semantic.list({ ...ALL, user: 'bob-user' }, 9)).toEqual([]);
    expect(await memory.upkeep.findErased({ tenant, user: 'bob-user' }, Number.MAX_SAFE_INTEGER)).toEqual({});
  });

  it('keeps records stored under the same name later, however often it is retried', async () => {
    await live(BOB);
    const times = afterFirstErase(async () => {
      const fact = factOf({ scope: BOB, id: 'new', text: 'Another person has this name now.', createdAt: Date.now() });
      await memory.semantic.store('new', fact);
      throw new EtudeError('MEMORY_UNAVAILABLE', 'the worker was cut off');
    });
    await work();
    const done = await erased();
    expect(done).toMatchObject({
      state: 'succeeded',
      removed: { 'memory.semantic.fact': 1, 'memory.episodic.episode': 1, 'queue.tasks': 1 },
    });
    expect(times()).toBe(2);
    expect((await memory.semantic.list({ ...ALL, user: 'bob-user' }, 9)).map(({ text }) => text)).toEqual([
      'Another person has this name now.',
    ]);
  });

  it('completes the deletion of a record whose gateway and first worker died', async () => {
    await live(BOB);
    await live(EVE);
    const [fact] = await memory.semantic.list({ ...ALL, user: 'bob-user' }, 1);
    const record = { name: `facts/${fact?.id}`, agent: BOB.agent, user: BOB.user };
    const plan = await memory.upkeep.planDeletion(tenant, record);
    const asked = { id: fact?.id };
    const request = { tenant, requestId: 'd1', asked };
    const receipt = await store.requestErasure(request, { record }, { ...plan, supported: ['facts/other'] });
    const times = afterFirstErase(() => Promise.reject(new EtudeError('MEMORY_UNAVAILABLE', 'the worker was cut off')));
    await work();
    const done = await ended(receipt.id);
    expect(done).toMatchObject({
      state: 'succeeded',
      removed: { 'memory.semantic.fact': 1 },
      left: { 'memory.semantic.fact': 0 },
      supported: ['facts/other'],
    });
    expect(times()).toBe(2);
    expect(await memory.semantic.get(ALL, fact?.id ?? '')).toBeNull();
    expect((await memory.upkeep.stats(tenant)).layers.find(({ kind }) => kind === 'fact')?.records).toBe(1);
    expect(await store.earlierDeletion(request)).toEqual(done);
    expect(await store.earlierDeletion({ ...request, requestId: 'd2' })).toBeNull();
    await expect(store.earlierDeletion({ ...request, asked: { id: 'f2' } })).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
    const kept = await producer.redis.get(producer.keys.erasure(tenant, receipt.id));
    expect(kept).not.toContain(fact?.id);
  });

  it('moves all vectors to another model and drops those of a third', async () => {
    for (let i = 0; i < 5; i += 1) await live(BOB, String(i));
    await memory.store.addModel({ name: 'third', dimension: 4 });
    await work();
    expect(await store.startReembedding({ model: 'other', dropModel: 'third' })).toMatchObject({ state: 'running' });
    const ready = await until(async () => ((await store.reembedding()).state === 'ready' ? store.reembedding() : null));
    expect(ready).toMatchObject({ done: ready?.total, error: null });
    expect((await memory.store.models()).map(({ name, state }) => [name, state])).toContainEqual(['other', 'ready']);
    expect((await memory.store.models()).map(({ name }) => name)).not.toContain('third');
  });

  it.each([
    [{ model: 'other', dropModel: 'lexical' }, /services use this model/],
    [{ model: 'bogus' }, /INVALID_ARGUMENT: .*bogus.*sentence, lexical, or a model of the embeddings server with --dimension/],
  ])('refuses an impossible move and gives the reason: %j', async (asked, why) => {
    await work(async (model) => {
      if (model === 'bogus') throw new Error('ETUDE_EMBEDDING_DIMENSION is not set');
      return otherEmbedder();
    });
    await store.startReembedding(asked);
    await dead(store.reembeddings);
    expect(await store.reembedding()).toMatchObject({ state: 'failed', error: expect.stringMatching(why) });
    expect((await memory.store.models()).map(({ name }) => name)).toEqual(['lexical-hash-1']);
  });

  it('stops a move on request, and lets a new move start', async () => {
    for (let i = 0; i < 3; i += 1) await live(BOB, String(i));
    const begun = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    await work(async () =>
      otherEmbedder(async () => {
        begun.resolve();
        await release.promise;
      }),
    );
    const first = await store.startReembedding({ model: 'other' });
    await begun.promise;
    expect((await store.stopReembedding()).state).toBe('stopped');
    release.resolve();
    await until(async () => (await producer.queue(MemoryUpkeepJob.name).getJob(`reembed.${first.id}`))?.isCompleted());
    expect((await store.reembedding()).state).toBe('stopped');
    expect((await store.startReembedding({ model: 'other' })).id).not.toBe(first.id);
    await until(async () => (await store.reembedding()).state === 'ready');
  });

  it('reconciles the tenant of each request', async () => {
    await live(BOB);
    await work();
    const report = await store.reconcile(new AbortController().signal);
    expect(report).toMatchObject({ repaired: [], problems: [] });
    expect(report.checked['records']).toBeGreaterThan(0);
  });
});
