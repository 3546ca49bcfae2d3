import { EtudeError } from '@etude/contracts/errors';
import { type ExecuteEvent, type Sandbox, Sandboxes, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { until } from '@etude/test-support/until';
import { status } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeController, FakeWorld, TOKEN } from './fake-controller.js';
import { collect, gatewayForFile, type KeyName, refusal } from './gateway.harness.js';

const rig = gatewayForFile({ ETUDE_SANDBOX_INTERNAL_TOKEN: TOKEN });
const client = (key: KeyName = 'acme') => rig.client(Sandboxes, key);
const UNKNOWN = 9;
const CHUNK = 512 * 1024;

let world: FakeWorld;
let started: FakeController[] = [];
async function controller(options: { sessions?: number; sessionsMax?: number } = {}): Promise<FakeController> {
  const one = await new FakeController(rig.producer, world, options).start();
  started.push(one);
  return one;
}
const killAll = () => Promise.all(started.splice(0).map((one) => one.kill()));
beforeEach(() => {
  world = new FakeWorld();
});
afterEach(killAll);
afterAll(killAll);

const methodsOf = ({ seen }: FakeController) => seen.map(({ method }) => method);
const text = (events: readonly ExecuteEvent[]) => events.map(({ event }) => (event.case === 'stdout' ? event.value : '')).join('');

async function* upload(name: string, path: string, bytes: number) {
  yield { part: { case: 'header' as const, value: { name, path } } };
  const chunk = new Uint8Array(CHUNK).fill(7);
  for (let at = 0; at < bytes; at += CHUNK) {
    yield { part: { case: 'chunk' as const, value: chunk.subarray(0, Math.min(CHUNK, bytes - at)) } };
  }
}

it('forwards answers to calls of tools and searches', async () => {
  const one = await controller();
  const { name } = await client().createSandbox({});
  const call = { name, executionId: 'e-1', number: 1 };
  await client().answerToolCall({ ...call, answer: { case: 'error', value: 'no' } });
  await client().searchSandboxFiles({ name, text: 'needle' });
  expect(methodsOf(one)).toEqual(['CreateSandbox', 'AnswerToolCall', 'SearchSandboxFiles']);
});

it("does not show the sandboxes of rollouts to their tenant's callers", async () => {
  const one = await controller();
  const { name } = await client().createSandbox({ labels: { 'opened-by': 'rollout' } });
  const { sandboxes } = await client().listSandboxes({});
  expect(sandboxes.map((sandbox) => sandbox.name)).not.toContain(name);
  for (const entering of [
    client().getSandbox({ name }),
    client().closeSandbox({ name }),
    Array.fromAsync(client().execute({ name, code: '1' })),
  ])
    expect(await refusal(entering)).toMatchObject({ code: 'NOT_FOUND' });
  expect(methodsOf(one)).toEqual(['CreateSandbox']);
});

it('ends the sandbox of a task that is cancelled while it waits for an answer', async () => {
  const one = await controller();
  const sandbox = await client().createSandbox({ labels: { 'opened-by': 'rollout' } });
  const { name } = await rig.tasks().submitTask({ spec: { prompt: 'Ask me.' } });
  await rig.emit('acme', name, [], 'a1.s1.t1.open', {}, { number: 0, name: sandbox.name });
  await rig.ask('acme', name, { key: 'a1.s2.t1', text: 'Which?', deadlineAt: Date.now() + 60_000 });
  expect(await rig.tasks().cancelTask({ name })).toMatchObject({ state: TaskState.CANCELLED });
  expect(methodsOf(one)).toEqual(['CreateSandbox', 'CloseSandbox']);
});

describe('the choice of a controller', () => {
  it('creates a sandbox at the controller with the fewest sessions', async () => {
    const busy = await controller({ sessions: 5 });
    const idle = await controller({ sessions: 1 });
    const sandbox = await client().createSandbox({ labels: { a: 'b' } });
    expect(sandbox).toMatchObject({ state: SandboxState.OPEN, template: 'default', labels: { a: 'b' } });
    expect([methodsOf(busy), methodsOf(idle)]).toEqual([[], ['CreateSandbox']]);
    expect(idle.seen[0]).toMatchObject({ tenant: 'acme', deadline: false });
  });

  it('creates a sandbox at the next controller if the first has no room', async () => {
    const full = await controller();
    const other = await controller({ sessions: 3 });
    full.refusal = new EtudeError('SANDBOX_CAPACITY', 'all are busy', { metadata: { exit: 'capacity' } });
    await client().createSandbox({});
    expect([methodsOf(full), methodsOf(other)]).toEqual([['CreateSandbox'], ['CreateSandbox']]);
  });

  it('asks no other controller if the tenant has reached its limit', async () => {
    const first = await controller();
    const other = await controller({ sessions: 3 });
    first.refusal = new EtudeError('SANDBOX_CAPACITY', 'you have too many', { retryAfterMs: 7_000, metadata: { openMax: '2' } });
    expect(await refusal(client().createSandbox({}))).toMatchObject({
      status: status.RESOURCE_EXHAUSTED,
      code: 'SANDBOX_CAPACITY',
      retryAfterMs: 7_000,
    });
    expect(methodsOf(other)).toEqual([]);
  });

  it('refuses to create a sandbox while no controller is live', async () => {
    expect(await refusal(client().createSandbox({}))).toMatchObject({ status: status.UNAVAILABLE, code: 'SANDBOX_UNAVAILABLE' });
  });

  it('calls the owner of the sandbox, and another controller once the owner is dead', async () => {
    const owner = await controller({ sessions: 2 });
    const { name } = await client().createSandbox({});
    const other = await controller();
    await client().renewSandbox({ name, ttl: { seconds: 60n } }, { timeoutMs: 60_000 });
    expect(owner.seen.at(-1)).toEqual({ method: 'RenewSandbox', tenant: 'acme', deadline: true });
    await owner.kill();
    await client().renewSandbox({ name, ttl: { seconds: 60n } });
    expect(methodsOf(other)).toEqual(['RenewSandbox']);
  });

  it('answers calls for a closed sandbox from Redis, without a controller', async () => {
    const one = await controller();
    const { name } = await client().createSandbox({});
    await client().closeSandbox({ name });
    await one.kill();
    expect(await client().getSandbox({ name })).toMatchObject({ name, state: SandboxState.CLOSED });
    expect(await client().closeSandbox({ name })).toMatchObject({ name, state: SandboxState.CLOSED });
    expect(await refusal(collect(client().execute({ name, code: 'x' })))).toMatchObject({
      status: status.FAILED_PRECONDITION,
      message: expect.stringContaining(`${name} was closed`) as string,
    });
    const { sandboxes } = await client().listSandboxes({ state: SandboxState.CLOSED });
    expect(sandboxes.map((sandbox) => sandbox.name)).toContain(name);
  });
});

describe('an execution', () => {
  let sandbox: Sandbox;
  let owner: FakeController;
  beforeEach(async () => {
    owner = await controller();
    sandbox = await client().createSandbox({});
  });
  const execute = (code: string, more: { executionId?: string; resumeToken?: string } = {}) =>
    client().execute({ name: sandbox.name, code, ...more });

  it('is streamed in order, and every event has the same execution id', async () => {
    const events = await collect(execute('one two three'));
    expect(text(events)).toBe('one\ntwo\nthree\n');
    expect(events.at(-1)?.event).toMatchObject({ case: 'result', value: { exit: 'ok' } });
    expect(new Set(events.map(({ executionId }) => executionId)).size).toBe(1);
  });

  it('continues at the next owner when its controller dies, without missing or repeated events', async () => {
    owner.breakAfter = 2;
    const next = await controller({ sessions: 9 });
    const events = await collect(execute('a b c d e'));
    expect(text(events)).toBe('a\nb\nc\nd\ne\n');
    expect(events.at(-1)?.event.case).toBe('result');
    expect(world.ran).toEqual(['a b c d e']);
    expect(methodsOf(next)).toEqual(['Execute']);
  });

  it('fails with the reason if its sandbox was lost', async () => {
    const sessions = new SandboxSessionStore(rig.producer.redis, rig.producer.keys);
    const following = refusal(collect(execute('wait', { executionId: 'lost' })));
    await until(() => world.ran.length === 1);
    await sessions.end('acme', sandbox.name.slice('sandboxes/'.length), 1, 'lost', 'node_lost: the node is gone');
    await owner.kill();
    expect(await following).toMatchObject({ code: 'FAILED_PRECONDITION', message: expect.stringContaining('the node is gone') as string });
  });
});

describe('a file', () => {
  let name: string;
  let owner: FakeController;
  beforeEach(async () => {
    owner = await controller();
    ({ name } = await client().createSandbox({}));
  });

  it('continues a download at the next owner when the controller dies', async () => {
    const content = Buffer.from(Array.from({ length: 3 * CHUNK }, (_, n) => n % 251));
    world.files.set(`${name}/cut`, content);
    owner.breakAfter = 1;
    const next = await controller({ sessions: 9 });
    const parts: Uint8Array[] = [];
    for await (const part of client().downloadFile({ name, path: 'cut' })) parts.push(part.chunk);
    expect(Buffer.concat(parts).equals(content)).toBe(true);
    expect(methodsOf(next)).toEqual(['DownloadFile']);
  });
});

describe('a wrong field is named', () => {
  const wrong: Array<[string, () => Promise<unknown>]> = [
    ['name', () => client().getSandbox({ name: 'tasks/t1' })],
    ['page_size', () => client().listSandboxes({ pageSize: 201 })],
    ['page_token', () => client().listSandboxes({ pageToken: 'x' })],
    ['state', () => client().listSandboxes({ state: UNKNOWN as unknown as SandboxState })],
    ['header.name', () => client().uploadFile(upload('x', 'x', 1))],
  ];

  it.each(wrong)('%s', async (field, call) => {
    expect(await refusal(call())).toMatchObject({ status: status.INVALID_ARGUMENT, fields: [field] });
  });
});
