import { Consolidation, ConsolidationState } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import { Tasks, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { SERVICES } from '@etude/contracts/grpc';
import { ConsolidationRunJob, RolloutRun } from '@etude/contracts/queues';
import { EtudeError } from '@etude/contracts/errors';
import { consume } from '@etude/queue/jobs/consumer';
import { until } from '@etude/test-support/until';
import { Client, credentials, Metadata, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { collect, gatewayForFile, KEYS, refusal, SPEC, writeKeys } from './gateway.harness.js';

const rig = gatewayForFile();
const bytes = (value: Buffer) => value;
const fields = async (call: Promise<unknown>) => (await refusal(call)).fields;

it('consolidation starts one run per request id', async () => {
  const first = await rig.client(Consolidation).runConsolidation({ days: 3, requestId: 'nightly' });
  const second = await rig.client(Consolidation).runConsolidation({ days: 3, requestId: 'nightly' });
  expect(second.name).toBe(first.name);
  expect(first).toMatchObject({ state: ConsolidationState.QUEUED, dryRun: false });
  const job = await rig.producer.queue(ConsolidationRunJob.name).getJob(first.name.slice('consolidationRuns/'.length));
  expect(job?.data).toMatchObject({ tenant: 'acme', days: 3, agent: null, dryRun: false });
});

describe('queues', () => {
  it('show a dead job with its reason, and redrive the job and its task', async () => {
    const { name } = await rig.tasks().submitTask({ spec: SPEC });
    const id = `${name.slice('tasks/'.length)}-r1`;
    const consumer = consume(RolloutRun, async () => Promise.reject(new EtudeError('MODEL_REFUSED', 'the model would not')), {
      redisUrl: rig.redis.url,
      prefix: rig.prefix,
      concurrency: 1,
    });
    try {
      const dead = await until(
        async () =>
          (await rig.client(Queues, 'ops').listDeadLetters({ queue: 'rollout.run' })).deadLetters.find((letter) => letter.id === id),
        { what: 'the job is dead' },
      );
      expect(dead).toMatchObject({ queue: 'rollout.run', code: 'MODEL_REFUSED', reason: 'the model would not' });
      expect(JSON.parse(dead.payloadJson)).toMatchObject({ tenant: 'acme' });
    } finally {
      await consumer.close(1_000);
    }
    expect(await rig.client(Queues, 'ops').redriveDeadLetters({ queue: 'rollout.run', ids: [id, 'gone'] })).toMatchObject({
      redriven: 1,
      refused: ['gone: there is no such job'],
    });
    expect((await rig.tasks().getTask({ name })).state).toBe(TaskState.QUEUED);
  });

  it('refuse an unknown queue, and a redrive with no or contradictory ids', async () => {
    const queues = rig.client(Queues, 'ops');
    expect(await fields(queues.listDeadLetters({ queue: 'rollout' }))).toEqual(['queue']);
    expect(await fields(queues.redriveDeadLetters({ queue: 'rollout.run' }))).toEqual(['ids']);
    expect(await fields(queues.redriveDeadLetters({ queue: 'rollout.run', ids: ['a'], all: true }))).toEqual(['ids']);
  });
});

it('reflection lists every service', async () => {
  const client = new Client(rig.address, credentials.createInsecure());
  const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
  const call = client.makeBidiStreamRequest(path, bytes, bytes, new Metadata());
  // The request with an empty `list_services`, which is field 7.
  call.end(Buffer.from([0x3a, 0]));
  const answer = Buffer.concat(await Array.fromAsync(call as AsyncIterable<Buffer>)).toString('latin1');
  client.close();
  for (const name of [...Object.values(SERVICES).map(({ typeName }) => typeName), 'grpc.health.v1.Health']) expect(answer).toContain(name);
});

const sandbox = 'sandboxes/s0192f0c8a1b2';

const calls: Array<[string, () => Promise<unknown>]> = [
  ['create', () => rig.client(Sandboxes).createSandbox({})],
  ['execute', () => collect(rig.client(Sandboxes).execute({ name: sandbox, code: '1' }))],
];

it.each(calls)('names the setting that enables sandboxes: %s', async (_method, call) => {
  const refused = await refusal(call());
  expect(refused).toMatchObject({ status: status.FAILED_PRECONDITION, code: 'FAILED_PRECONDITION' });
  expect(refused.message).toContain('ETUDE_SANDBOX_INTERNAL_TOKEN');
});

it('names that setting if a tool session needs a sandbox', async () => {
  const wanted = { prompt: '1', file_names: ['sales.csv'] };
  const answer = await rig.client(Tools).callTool({ tool: 'code_interpreter', agent: 'coder', session: 'report', arguments: wanted });
  expect(answer).toMatchObject({
    success: false,
    error: expect.stringMatching(/sales\.csv.*ETUDE_SANDBOX_INTERNAL_TOKEN.*does\)\. Name a session/),
  });
});

describe('with a key file', () => {
  afterEach(() => writeKeys(rig.keysPath));

  it('refuses a call without a key', async () => {
    expect(await refusal(rig.tasks(null).listTasks({}))).toMatchObject({ status: status.UNAUTHENTICATED, code: 'UNAUTHENTICATED' });
  });

  it.each([['Bearer wrong'], ['Basic a2V5'], [KEYS.acme], ['Bearer'], [`Bearer ${KEYS.acme} x`]])(
    'refuses the header %j',
    async (header) => {
      expect((await refusal(rig.callRaw('/etude.v1.Tasks/ListTasks', Buffer.alloc(0), header))).status).toBe(status.UNAUTHENTICATED);
    },
  );
});

describe('with an anonymous tenant', () => {
  const anonymous = gatewayForFile({ ETUDE_AUTH_ANONYMOUS_TENANT: 'local' });

  it('accepts calls without a key as that tenant, with every role', async () => {
    const { name } = await anonymous.tasks(null).submitTask({ spec: SPEC });
    expect((await anonymous.tasks(null).listTasks({})).tasks.map((task) => task.name)).toContain(name);
    await expect(anonymous.client(Queues, null).listQueues({})).resolves.toBeDefined();
  });

  it('refuses a wrong key', async () => {
    expect((await refusal(anonymous.clientWith(Tasks, 'wrong').listTasks({}))).status).toBe(status.UNAUTHENTICATED);
  });
});
