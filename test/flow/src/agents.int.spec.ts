import type { DescService } from '@bufbuild/protobuf';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { type Task, type TaskEvent, Tasks, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Worlds } from '@etude/contracts/gen/etude/v1/worlds_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { freePort } from '@etude/test-support/ports';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, expect, it } from 'vitest';

/** The program of a public MCP server. */
const program = (name: string) => createRequire(import.meta.url).resolve(`@modelcontextprotocol/${name}/dist/index.js`);

let stack: TestStack;
let worker: TestProcess;
let everything: TestProcess;
let everythingUrl = '';
const clients: Array<{ close(): void }> = [];

beforeAll(async () => {
  const port = String(await freePort());
  everythingUrl = `http://127.0.0.1:${port}/mcp`;
  const env = {
    ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside',
    ETUDE_MCP_COMMANDS: JSON.stringify({ memory: [process.execPath, program('server-memory')] }),
    ETUDE_MCP_PRIVATE_ADDRESSES: 'true',
  };
  [stack, everything] = await Promise.all([
    startStack({ script: fileURLToPath(new URL('./agents.yaml', import.meta.url)), env }),
    startProcess({ args: [program('server-everything'), 'streamableHttp'], env: { PORT: port }, ready: 'listening' }),
  ]);
  worker = await stack.startRolloutWorker();
});
afterAll(async () => {
  for (const client of clients) client.close();
  await everything.stop();
  await stack.stop();
});

/** A client of the gateway as it runs now. */
const client = <T extends DescService>(service: T) => {
  const made = createServiceClient(service, stack.address);
  clients.push(made);
  return made;
};

const WAIT = { timeout: { seconds: 60n } };

async function submit(prompt: string, more: object = {}): Promise<string> {
  return (await client(Tasks).submitTask({ spec: { prompt, strategy: 'codeact', limits: { attempts: 1 }, ...more } })).name;
}

async function solve(prompt: string, more: object = {}): Promise<Task> {
  return client(Tasks).waitTask({ name: await submit(prompt, more), ...WAIT });
}

it('calls tools of two real MCP servers, from calls and from code', async () => {
  const mcpServers = [
    { name: 'notes', command: 'memory' },
    { name: 'everything', url: everythingUrl, tools: ['echo'] },
  ];
  await client(Agents).updateAgent({ agent: { name: 'agents/boatswain', mcpServers }, updateMask: { paths: ['mcp_servers'] } });
  const task = await solve('Use both servers.', { agent: 'boatswain' });
  expect(task).toMatchObject({ state: TaskState.SUCCEEDED, result: { output: 'the boat leaks' } });
  const { sections } = await client(Tasks).explainStep({ name: task.name });
  expect(sections.find(({ title }) => title === 'Working Memory')?.text).toMatch(/- said: '?.*ahoy/);
});

it('waits for its caller over a kill of gateway and worker', async () => {
  const name = await submit('Ask which colour.');
  const asked = await client(Tasks).waitTask({ name, ...WAIT });
  expect(asked).toMatchObject({ state: TaskState.INPUT_REQUIRED, question: { text: 'Which colour?' } });
  await Promise.all([worker.kill(), stack.gateway.kill()]);
  await stack.start('gateway');
  worker = await stack.startRolloutWorker();
  expect(await client(Tasks).answerTask({ name, text: 'red' })).toMatchObject({ name });
  expect(await client(Tasks).waitTask({ name, ...WAIT })).toMatchObject({ state: TaskState.SUCCEEDED, result: { output: 'red' } });
  const told: Array<TaskEvent['event']['case']> = [];
  for await (const { event } of client(Tasks).watchTask({ name })) told.push(event.case);
  expect(told.filter((event) => event === 'question')).toHaveLength(1);
});

it('lives in a world with another agent', async () => {
  await client(Worlds).createWorld({ name: 'worlds/moor', seed: '7', width: 16, height: 16 });
  for (const agent of ['anna', 'ben']) {
    const task = await solve('Look around.', { agent, labels: { world: 'moor' } });
    expect(task).toMatchObject({ result: { output: 'seen' } });
    const { sections } = await client(Tasks).explainStep({ name: task.name });
    const told = sections.map((section) => section.text).join('\n');
    for (const tool of ['observe_location', 'interact_with_agent', 'gather_resource', 'move_to']) expect(told).toContain(`tool="${tool}"`);
  }
  expect(await client(Worlds).getWorld({ name: 'worlds/moor' })).toMatchObject({
    agents: [expect.objectContaining({ name: 'anna' }), expect.objectContaining({ name: 'ben' })],
  });
});

it('reads files and documents, and remembers a fact for later tasks', async () => {
  const memory = client(Memory);
  const text = '# Vault\n\nThe vault is in the cellar. Its opening hours are on the door.\n';
  await memory.importDocument(
    (async function* () {
      yield { part: { case: 'head' as const, value: { name: 'vault.md', agent: 'keeper' } } };
      yield { part: { case: 'data' as const, value: new TextEncoder().encode(text) } };
    })(),
  );
  const files = [{ path: 'notes.txt', content: new TextEncoder().encode('the vault opens at nine\n') }];
  expect(await solve('Remember what the file says.', { agent: 'keeper', files })).toMatchObject({ result: { output: 'remembered' } });
  const asked = { agent: 'keeper', query: 'when does the vault open' };
  const isTold = async () => (await memory.searchMemory(asked)).hits.some((hit) => hit.text === 'The vault opens at nine.');
  await until(isTold, { what: 'the fact in memory' });
  const query = { agent: 'keeper', query: 'fs_read notes.txt' };
  const isKept = async () => (await memory.searchMemory(query)).hits.some((hit) => hit.text.startsWith('fs_read(notes.txt)'));
  await until(isKept, { what: 'the finding in memory' });
  const again = await solve('Remember what the file says.', { agent: 'keeper', files });
  const told: string[] = [];
  for await (const { event } of client(Tasks).watchTask({ name: again.name }))
    if (event.case === 'stepFinished') told.push(event.value.summary);
  expect(told).toContain('fs_read(notes.txt) from an earlier task');
});

it('shows the model what became of code that misbehaves, and goes on', async () => {
  const sandbox = { wallTime: { seconds: 2n }, outputKib: 64 };
  const task = await solve('Misbehave.', { limits: { attempts: 1, sandbox } });
  expect(task).toMatchObject({ state: TaskState.SUCCEEDED, result: { output: 'it goes on' } });
  const { sections, totalTokens } = await client(Tasks).explainStep({ name: task.name, step: 'a1.s5.act' });
  const shown = sections.map(({ text }) => text).join('\n');
  for (const told of ['printed more than is allowed', 'signal 9', 'ran out of wall time', 'The interpreter was restarted'])
    expect(shown).toContain(told);
  expect(totalTokens).toBeLessThan(8_000);
});
