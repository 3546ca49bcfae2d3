// Tests the installed package against the real stack at ETUDE_ADDRESS, whose model is scripted by ../../python/tests/model.yaml.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { create, toBinary } from '@bufbuild/protobuf';
import { Etude, InvalidArgumentError, NotFoundError, SkillFailedError, TaskFailedError, TaskState, UnavailableError } from '@etude/client';
import { TaskEventSchema } from '@etude/client/messages/tasks';
import { Server, ServerCredentials, status } from '@grpc/grpc-js';
// Not exported to users. A test needs it to set a shorter keepalive than 30 s.
import { Calls } from './node_modules/@etude/client/dist/calls.js';
import { Tasks } from './node_modules/@etude/client/dist/tasks.js';

const client = new Etude();
after(() => client.close());

const unique = () => crypto.randomUUID().slice(0, 8);

async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

test('solves a task and shows every event once', async () => {
  const task = await client.tasks.submit('Write a function square(n).', { tests: ['assert square(3) == 9'] });
  const kinds = (await all(task.watch())).map(({ event }) => event.case);
  assert.equal(kinds.at(-1), 'finished');
  assert.equal(kinds.filter((kind) => kind === 'attemptStarted').length, 1);
  assert.match((await task.result()).code, /return n \* n/);
});

test('throws with the best attempt where none is accepted', async () => {
  const task = await client.tasks.submit('Write a function cube(n).', { tests: 'assert cube(2) == 8', limits: { attempts: 1 } });
  await assert.rejects(
    () => task.result(),
    (error) => error instanceof TaskFailedError && error.code === 'ATTEMPTS' && /return n/.test(error.task.result.code),
  );
});

test('is one task for one request id', async () => {
  const requestId = crypto.randomUUID();
  const [one, two] = [await client.tasks.submit('square', { requestId }), await client.tasks.submit('square', { requestId })];
  assert.equal(one.name, two.name);
});

test('lists all pages, and cancels', async () => {
  const labels = { run: unique() };
  const tasks = [await client.tasks.submit('square', { labels }), await client.tasks.submit('square', { labels })];
  assert.deepEqual(new Set((await all(client.tasks.list({ labels }))).map(({ name }) => name)), new Set(tasks.map(({ name }) => name)));
  await tasks[0].cancel();
  assert.ok([TaskState.CANCELLED, TaskState.SUCCEEDED].includes((await tasks[0].wait()).state));
});

test('names the wrong field, with a class for each status and the server’s hint', async () => {
  const wrong = (error) => error instanceof InvalidArgumentError && error.violations[0].field === 'spec.prompt';
  await assert.rejects(() => client.tasks.submit(''), wrong);
  const missing = (error) => error instanceof NotFoundError && error.code === 'NOT_FOUND' && /t0192f0c8a1b2/.test(error.message);
  await assert.rejects(() => client.tasks.get('t0192f0c8a1b2').get(), missing);
});

test('gives up where no gateway answers, and stops at an abort', async () => {
  const nobody = new Etude({ address: '127.0.0.1:1', retryForMs: 200 });
  await assert.rejects(() => nobody.tasks.get('t0192f0c8a1b2').get(), UnavailableError);
  await assert.rejects(() => nobody.tasks.get('t0192f0c8a1b2').get({ signal: AbortSignal.abort() }), { name: 'AbortError' });
  nobody.close();
});

/** Starts a gateway that has only WatchTask. @param answer handles each call */
async function fakeGateway(answer) {
  const same = (bytes) => bytes;
  const bytes = { requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same };
  const method = { path: '/etude.v1.Tasks/WatchTask', requestStream: false, responseStream: true, ...bytes };
  const server = new Server();
  server.addService({ watch: method }, { watch: answer });
  const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', ServerCredentials.createInsecure());
  after(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}
const eventOf = (kind, resumeToken) =>
  Buffer.from(toBinary(TaskEventSchema, create(TaskEventSchema, { resumeToken, event: { case: kind, value: {} } })));

test('goes on after a break, also for a reader that took longer than repeats may take', async () => {
  let calls = 0;
  const address = await fakeGateway((call) => {
    calls += 1;
    call.write(calls === 1 ? eventOf('attemptStarted', 'one') : eventOf('finished', 'two'));
    if (calls === 1) call.emit('error', { code: status.UNAVAILABLE, details: 'away' });
    else call.end();
  });
  const hasty = new Etude({ address, retryForMs: 200 });
  const kinds = [];
  for await (const { event } of hasty.tasks.get('t0192f0c8a1b2').watch()) {
    kinds.push(event.case);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  hasty.close();
  assert.deepEqual(kinds, ['attemptStarted', 'finished']);
});

test('ends a watch whose key was revoked, without a repeat', async () => {
  let calls = 0;
  const address = await fakeGateway((call) => {
    calls += 1;
    call.write(eventOf('attemptStarted', 'one'));
    call.emit('error', { code: status.UNAUTHENTICATED, details: 'revoked' });
  });
  const revoked = new Etude({ address });
  await assert.rejects(all(revoked.tasks.get('t0192f0c8a1b2').watch()), { name: 'UnauthenticatedError' });
  revoked.close();
  assert.equal(calls, 1);
});

/**
 * A proxy of the gateway. After `vanish`, its open connections stay open but carry no more data.
 * @param silent number of first connections that it never answers
 */
async function wayToTheGateway(silent = 0) {
  let open = [];
  const way = createServer((near) => {
    if (silent-- > 0) return after(() => near.destroy());
    const far = connect({ host: '127.0.0.1', port: Number(process.env.ETUDE_ADDRESS.split(':')[1]) });
    for (const socket of [near, far]) socket.on('error', () => undefined);
    near.pipe(far).pipe(near);
    open.push(near, far);
    after(() => [near, far].map((socket) => socket.destroy()));
  });
  await new Promise((resolve) => way.listen(0, '127.0.0.1', resolve));
  after(() => way.close());
  const vanish = () => {
    for (const socket of open) socket.unpipe().pause();
    open = [];
  };
  return { address: `127.0.0.1:${way.address().port}`, vanish };
}

test('notices that the gateway vanished, and goes on when it is back', async () => {
  const task = await client.tasks.submit('Ask which colour it shall have.', { strategy: 'codeact' });
  const { address, vanish } = await wayToTheGateway();
  const calls = new Calls({ address }, 1_200);
  const kinds = [];
  for await (const { event } of new Tasks(calls).get(task.name).watch()) {
    kinds.push(event.case);
    if (event.case !== 'question') continue;
    vanish();
    await task.answer('green');
  }
  calls.close();
  assert.deepEqual([kinds.at(-1), kinds.filter((kind) => kind === 'question').length], ['finished', 1]);
  assert.equal((await task.result()).output, 'green');
});

test('tries another connection where the first is never answered', async () => {
  const { address } = await wayToTheGateway(1);
  const calls = new Calls({ address }, 600);
  assert.deepEqual(await all(new Tasks(calls).list({ labels: { run: unique() } })), []);
  calls.close();
});

test('keeps the key of the local stack from other gateways', async () => {
  const home = mkdtempSync(join(tmpdir(), 'etude-home-'));
  writeFileSync(join(home, 'key'), 'key-of-the-local-stack');
  let seen;
  const address = await fakeGateway((call) => {
    seen = call.metadata.get('authorization');
    call.write(eventOf('finished', 'one'));
    call.end();
  });
  const before = { ...process.env };
  Object.assign(process.env, { ETUDE_HOME: home, ETUDE_ADDRESS: address });
  const other = new Etude();
  process.env = before;
  await all(other.tasks.get('t0192f0c8a1b2').watch());
  other.close();
  rmSync(home, { recursive: true });
  assert.deepEqual(seen, []);
});

test('keeps names and files in a sandbox', async () => {
  await client.sandboxes.with(async (sandbox) => {
    await sandbox.upload('in/data.bin', new Uint8Array(1024 * 1024));
    assert.equal((await sandbox.run("data = open('in/data.bin', 'rb').read(); len(data)")).text, '1048576');
    assert.equal((await sandbox.download('in/data.bin')).length, 1024 * 1024);
    assert.deepEqual(
      (await all(sandbox.files())).map(({ path }) => path),
      ['in/data.bin'],
    );
    await sandbox.delete('in/data.bin');
    const events = await all(sandbox.stream("print('a'); 1 / 0"));
    assert.equal(events[0].event.value, 'a\n');
    assert.equal(events.at(-1).event.value.error.type, 'ZeroDivisionError');
    assert.equal((await sandbox.run('cat', { shell: true, stdin: 'through' })).stdout, 'through');
  });
});

test('remembers, recalls and forgets', async () => {
  const agent = `agent-${unique()}`;
  const { fact } = await client.memory.remember('The tide is highest at five.', { agent });
  assert.deepEqual(
    (await client.memory.search('tide', { agent })).map(({ id }) => id),
    [fact.id],
  );
  assert.match((await client.memory.recall('when is the tide highest?', { agent })).facts[0].text, /tide/);
  await client.memory.forget(fact.id, { agent });
  assert.deepEqual(await all(client.memory.list('fact', { agent })), []);
  const data = new TextEncoder().encode('# Harbour\n\nShips wait for the tide.');
  assert.equal((await client.memory.importDocument({ name: 'harbour.md', data }, { agent })).document.name, 'harbour.md');
});

test('registers, uses and lists skills', async () => {
  const agent = `agent-${unique()}`;
  const code = 'def double(n: int) -> int:\n    return n + n\n';
  const tests = [[[2], 4], [[5], 10]]; // prettier-ignore
  await client.skills.register('double', 'Doubles a whole number.', code, { tests, agent });
  assert.equal(await client.skills.use('double', { n: 21 }, { agent }), 42);
  assert.deepEqual(
    (await all(client.skills.list({ agent }))).map(({ name }) => name),
    ['skills/double'],
  );
  await assert.rejects(() => client.skills.use('no_such_skill', {}, { agent }), SkillFailedError);
});

test('has five examples in its README that run', async () => {
  const page = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const examples = [...page.matchAll(/```js\n([^]*?)```/g)].map(([, text]) => text);
  assert.equal(examples.length, 5);
  for (const example of examples) {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', example], { timeout: 100_000 });
    assert.notEqual(stdout, '');
  }
});
