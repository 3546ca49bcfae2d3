import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Episode, MemoryWrite, SkillTest } from '@etude/contracts/memory';
import { ConsolidationRunJob, MemorySettleJob, MemoryWriteJob, SandboxExecute } from '@etude/contracts/queues';
import { episodeOf, storedFactOf as factOf } from '@etude/domain/testing/memory-records';
import { PythonSandboxes } from '@etude/domain/testing/python-sandboxes';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import type { Memory } from '@etude/memory/memory';
import { openMemory } from '@etude/memory/open-memory';
import { type RunningScriptedModel, startScriptedModel } from '@etude/model/scripted-server';
import type { RunningWorker } from '@etude/platform/run-service';
import { ConsolidationStore } from '@etude/queue/memory/consolidation-store';
import { type Consumer, consume } from '@etude/queue/jobs/consumer';
import { reconcileWork } from '@etude/queue/jobs/durable-work';
import { DeadLetters } from '@etude/queue/jobs/dead-letters';
import { ExecutionStore } from '@etude/queue/executions/executions';
import { OutboxReader, RedisMemoryOutbox } from '@etude/queue/memory/memory-outbox';
import { SettlingStore } from '@etude/queue/memory/settling-store';
import { Producer } from '@etude/queue/jobs/producer';
import { TaskStore } from '@etude/queue/tasks/task-store';
import { writeProofKeys } from '@etude/test-support/proof-keys';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { until } from '@etude/test-support/until';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startConsolidationWorker } from './consolidation-worker.js';
import { consolidationWorkerConfig } from './consolidation-worker.config.js';

const tenant = 'acme';
const scope = { tenant, agent: 'solver', user: null };
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
const tests: SkillTest[] = [{ kind: 'io', stdin: '2', expectedStdout: '4', comparison: 'whitespace', tolerance: 0 }];
const code = 'n = int(input())\nprint(n * 2)';
const lessons = JSON.stringify({
  facts: [{ text: 'Doubling is multiplying by two.', category: 'arithmetic', confidence: 0.9 }],
  skill: { description: 'Doubles a number.', scenarios: [] },
});

const episode = (id: string): Episode =>
  episodeOf({
    id: `t00000001-r${id}`,
    scope,
    taskId: 't00000001',
    rolloutId: `t00000001-r${id}`,
    prompt: 'Read a number and print its double.',
    fingerprint: 'double',
    evaluatorKind: 'io_cases',
    entryPoint: null,
    code,
    tests,
    summary: 'Doubled the number.',
    scripted: true,
    createdAt: Date.now() - 1_000,
  });
const redis = redisForFile();

describe('the consolidation worker', () => {
  let dir: string;
  let model: RunningScriptedModel;
  let worker: RunningWorker;
  let memory: Memory;
  let producer: Producer;
  let controller: Consumer;
  let prefix: string;
  let runs: ConsolidationStore;

  async function start(env: Record<string, string> = {}): Promise<void> {
    const settings = {
      ETUDE_REDIS_URL: redis.url,
      ETUDE_QUEUE_PREFIX: prefix,
      ETUDE_MEMORY_PATH: join(dir, 'memory.db'),
      ETUDE_EMBEDDER: 'lexical',
      ETUDE_SKILLS_ENABLED: 'true',
      ETUDE_SKILLS_AUTO_REGISTER: 'true',
      ETUDE_SKILLS_APPROVAL: 'automatic',
      ...writeProofKeys(dir),
      OPENAI_BASE_URL: model.url,
      OPENAI_MODEL: model.model,
    };
    worker = await startConsolidationWorker(consolidationWorkerConfig.parse({ ...settings, ...env }), quiet);
  }

  /** Stands in for the sandbox controller. */
  async function runExecutions(): Promise<void> {
    const executions = new ExecutionStore(producer.redis, producer.keys);
    const python = new PythonSandboxes();
    controller = consume(
      SandboxExecute,
      async ({ executionId }) => {
        const stored = await executions.load(tenant, executionId);
        if (stored) await executions.save(tenant, executionId, await python.execute(stored.request));
        return { executionId };
      },
      { redisUrl: redis.url, prefix, concurrency: 2 },
    );
    await controller.ready();
  }

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'etude-consolidation-'));
    prefix = redis.prefix();
    model = await startScriptedModel({ script: { rules: [{ system: 'You extract facts', reply: lessons }] } });
    producer = new Producer(redis.url, prefix);
    runs = new ConsolidationStore(producer);
    memory = await openMemory({ store: { adapter: 'sqlite', path: join(dir, 'memory.db') }, embedder: new LexicalEmbedder() });
    await runExecutions();
  });
  afterEach(async () => {
    await worker.close();
    await controller.close(1_000);
    await producer.close();
    await memory.close();
    await model.close();
    await rm(dir, { recursive: true, force: true });
  });

  const put = (writeId: string, write: MemoryWrite) => new RedisMemoryOutbox(producer).put(tenant, writeId, write);
  const allApplied = () =>
    until(async () => (await new OutboxReader(producer.redis, producer.keys).pending(tenant)) === 0, { what: 'every write applied' });

  /** Settles the tenant's memory until `isOver`. The worker's own job may hold the lease meanwhile. */
  const settle = (isOver: (end: { readonly failure: string | null }) => boolean | Promise<boolean>) =>
    until(
      async () => {
        const end = await producer.addAndWait(MemorySettleJob, { v: 1, tenant, at: Date.now() }, AbortSignal.timeout(30_000));
        return (await isOver(end)) ? end : null;
      },
      { what: 'the end of settling' },
    );

  async function consolidate(dryRun = false) {
    const ask = { agent: null, days: 7, dryRun };
    const record = await runs.create(tenant, ask, '');
    await producer.add(ConsolidationRunJob, { v: 1, tenant, runId: record.id, ...ask });
    return until(
      async () => {
        const now = await runs.get(tenant, record.id);
        return now?.state === 'done' ? now : null;
      },
      { what: 'the run ended' },
    );
  }

  it('compares unsettled facts at its start, and again once the model answers after a failure', async () => {
    const settling = new SettlingStore(producer);
    for (const [at, text] of ['The shop opens at nine', 'The shop opens at ten'].entries())
      await memory.semantic.store(text, factOf({ scope, text, episodes: [], createdAt: 1_000 * (at + 1) }));
    await start({ ETUDE_MODEL_ATTEMPTS_MAX: '1' });
    await until(async () => (await producer.queue(MemorySettleJob.name).getDelayed()).length > 0, {
      what: 'a job for the unsettled facts',
    });
    expect(await settle(({ failure }) => failure !== null)).toMatchObject({
      modelCalls: 0,
      left: 1,
      failure: expect.stringContaining('MODEL_'),
    });
    expect((await settling.spend(tenant)).failure).toContain('MODEL_');
    await model.close();
    await worker.close();
    const pairs = [{ verdict: 'replaces', reason: 'other hours' }];
    model = await startScriptedModel({ script: { rules: [{ system: 'free of repeats', reply: JSON.stringify({ pairs }) }] } });
    await start();
    await settle(async () => (await settling.spend(tenant)).failure === null && (await memory.semantic.unsettled(tenant)) === 0);
    expect((await memory.semantic.list({ tenant, agent: null }, 9)).map(({ text }) => text)).toEqual(['The shop opens at ten']);
  });

  it('reads conversations for facts behind the answer, within the budget', async () => {
    const settling = new SettlingStore(producer);
    const messages = ['Hello!', 'I moved to Graz.'].map((text) => ({ role: 'user', name: 'Ann', text, at: 1_000 }));
    const added = { scope, name: 'chat', title: '', messages, writeId: 'w1', first: null, at: 1_000 };
    const { conversation } = await memory.conversations.add(added);
    await model.close();
    const notes = JSON.stringify({ notes: [{ turn: 1, text: 'Ann moved to Graz.', about: 'home of Ann' }] });
    model = await startScriptedModel({ script: { rules: [{ system: 'worth remembering from a conversation', reply: notes }] } });
    await start();
    await until(async () => (await producer.queue(MemorySettleJob.name).getDelayed()).length > 0, { what: 'a job for the unread turns' });
    await settle(async () => (await memory.conversations.unread(tenant)) === 0);
    const [fact] = await memory.semantic.list({ tenant, agent: null }, 9);
    expect(fact).toMatchObject({ text: 'Ann moved to Graz.', touched: [`conversations/${conversation.id}`], validFrom: 1_000 });
    expect(await settling.spend(tenant)).toMatchObject({ calls: 1 });
  });

  it('keeps a write that fails until its job is redriven', async () => {
    await start();
    const outbox = new OutboxReader(producer.redis, producer.keys);
    const dead = new DeadLetters(producer, new TaskStore(producer));
    const store = (text: string) => producer.redis.hset(producer.keys.memoryOutbox(tenant), 'e1', text);
    // A newer version might write such a record.
    await store('{"kind": "unknown"}');
    await producer.add(MemoryWriteJob, { v: 1, tenant, writeId: 'e1' });
    await until(async () => (await dead.list(MemoryWriteJob.name, { pageSize: 5 })).items.length === 1, { what: 'a dead letter' });
    expect(await outbox.pending(tenant)).toBe(1);
    await store(JSON.stringify({ kind: 'episode', episode: episode('1') }));
    expect(await dead.redrive(MemoryWriteJob.name, { all: true })).toEqual({ redriven: 1, refused: [] });
    await allApplied();
  });

  it('consolidates pending episodes into a fact and an active skill, once', async () => {
    await start();
    await put('e1', { kind: 'episode', episode: episode('1') });
    await put('e2', { kind: 'episode', episode: episode('2') });
    const first = await consolidate();
    expect(first).toMatchObject({
      state: 'done',
      episodesRead: 2,
      groups: 1,
      factsAdded: 1,
      skillsProposed: 1,
      skillsActivated: 1,
      modelCalls: 1,
      scripted: true,
      error: null,
    });
    const facts = await memory.semantic.list(scope, 10);
    expect(facts).toMatchObject([{ episodes: ['t00000001-r1', 't00000001-r2'], source: 'consolidation (scripted)' }]);
    expect(await consolidate()).toMatchObject({
      state: 'done',
      episodesRead: 2,
      factsAdded: 0,
      factsReinforced: 0,
      skillsProposed: 0,
      modelCalls: 0,
    });
    expect(await memory.semantic.list(scope, 10)).toEqual(facts);
    expect(model.calls()).toHaveLength(1);
  });

  it('records why a run failed', async () => {
    await model.close();
    model = await startScriptedModel({ script: { default: { status: 401, error: 'who are you?' } } });
    await start();
    await put('e1', { kind: 'episode', episode: episode('1') });
    await put('e2', { kind: 'episode', episode: episode('2') });
    const { id } = await runs.create(tenant, { agent: null, days: 7, dryRun: false }, '');
    await until(async () => (await producer.queue(ConsolidationRunJob.name).getFailedCount()) === 1, { what: 'a dead letter' });
    await reconcileWork(producer, runs.work, Date.now() + 60_000, (error) => expect.fail(String(error)));
    expect(await runs.get(tenant, id)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/^MODEL_REFUSED: .*401.*who are you/),
      endedAt: expect.any(Number),
    });
  });

  it('schedules the nightly run of a tenant with memories until the setting is removed', async () => {
    await start({ ETUDE_CONSOLIDATION_SCHEDULE: '0 3 * * *', ETUDE_SCHEDULES_TIME_ZONE: 'Europe/Berlin' });
    await put('e1', { kind: 'episode', episode: episode('1') });
    const queue = producer.queue(ConsolidationRunJob.name);
    const due = await until(async () => (await queue.getDelayed())[0], { what: 'a run is due at night' });
    await due.promote();
    await until(async () => (await queue.getCompletedCount()) === 1, { what: 'the nightly run is done' });
    const [key = ''] = await producer.redis.keys(`${producer.keys.consolidation(tenant, 'nightly-all-')}*`);
    expect(await runs.get(tenant, key.split(':').at(-1) ?? '')).toMatchObject({ tenant, agent: null, days: 7, state: 'done', error: null });
    await worker.close();
    await start();
    expect(await queue.getJobSchedulers()).toEqual([]);
  });

  it('is ready while it takes jobs and memory can be read', async () => {
    await start();
    const checks = worker.checks();
    expect(Object.keys(checks)).toHaveLength(7);
    await Promise.all(Object.values(checks).map((check) => check()));
    await rm(join(dir, 'memory.db'));
    await expect(checks['memory']?.()).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE' });
  });
});

function wrongSettings(env: Record<string, string>) {
  return consolidationWorkerConfig.safeParse(env).error?.issues.map(({ path }) => path[0]);
}

describe('consolidationWorkerConfig', () => {
  const needed = { ETUDE_MEMORY_PATH: '/m.db', ETUDE_SKILLS_SIGNING_KEY_PATH: '/key.pem' };

  it('has no default for the signing key', () => {
    expect(wrongSettings({ ETUDE_MEMORY_PATH: '/m.db' })).toEqual(['ETUDE_SKILLS_SIGNING_KEY_PATH']);
    expect(wrongSettings(needed)).toBeUndefined();
  });

  it('requires a limit with a schedule of pruning, and refuses unreadable values', () => {
    const schedule = { ...needed, ETUDE_SKILLS_PRUNE_SCHEDULE: '0 5 * * *' };
    expect(wrongSettings(schedule)).toEqual(['ETUDE_SKILLS_PRUNE_UNUSED_DAYS']);
    expect(wrongSettings({ ...schedule, ETUDE_SKILLS_PRUNE_UNUSED_DAYS: '180' })).toBeUndefined();
    expect(wrongSettings({ ...needed, ETUDE_CONSOLIDATION_SCHEDULE: 'nightly', ETUDE_SCHEDULES_TIME_ZONE: 'Mars/Olympus' })).toEqual([
      'ETUDE_CONSOLIDATION_SCHEDULE',
      'ETUDE_SCHEDULES_TIME_ZONE',
    ]);
  });
});
