import { create, type DescMethod, type DescService } from '@bufbuild/protobuf';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tasks, type Task } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Worlds } from '@etude/contracts/gen/etude/v1/worlds_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { SERVICES } from '@etude/contracts/grpc';
import { status } from '@etude/contracts/grpc-client';
import { jwtIssuer } from '@etude/test-support/jwt-issuer';
import { beforeAll, expect, it } from 'vitest';
import { RULES, ruleOf } from '../src/calls/roles.js';
import { collect, documentOf, gatewayForFile, METHODS, refusal, SPEC } from './gateway.harness.js';
import { restDoor } from './rest-door.js';

const issuer = jwtIssuer();
const door = restDoor();
const rig = gatewayForFile(async () => {
  return {
    ...(await door.settings()),
    ...issuer.settings(rig.dir),
    ETUDE_JWT_USER_CLAIM: 'sub',
    ETUDE_SKILLS_ENABLED: 'true',
  };
});

const tokenOf = (sub: string | undefined, roles = ['user']) => issuer.token({ sub, roles });

const as = <S extends DescService>(service: S, sub?: string, roles?: string[]) => rig.clientWith(service, tokenOf(sub, roles));

const NOT_FOUND = { status: status.NOT_FOUND };
const DENIED = { status: status.PERMISSION_DENIED };
let task: Task;
let fact: string;
let shared: string;
beforeAll(async () => {
  task = await as(Tasks, 'ann').submitTask({ spec: SPEC });
  fact = (await as(Memory, 'ann').storeFact({ agent: 'default', text: 'Ann likes her tea with milk.' })).fact?.id ?? '';
  shared = (await rig.client(Memory).storeFact({ agent: 'default', text: 'Tea is served at four.' })).fact?.id ?? '';
});

it('makes what a bound caller stores the data of its user', async () => {
  expect(task.spec?.user).toBe('ann');
  expect(await rig.client(Memory).getMemory({ id: fact, layer: 'semantic', user: 'ann' })).toMatchObject({ user: 'ann' });
});

async function factsFor(user: string): Promise<string[]> {
  const { hits } = await as(Memory, user).searchMemory({ query: 'tea', layers: ['semantic'] });
  return hits.map(({ id }) => id).toSorted();
}

it("finds the user's and the tenant's data, and nothing of another user", async () => {
  expect(await factsFor('ann')).toEqual([fact, shared].toSorted());
  expect(await factsFor('bob')).toEqual([shared]);
  const [anns, bobs] = await Promise.all(['ann', 'bob'].map((user) => as(Tasks, user).listTasks({})));
  expect([anns?.tasks.map(({ name }) => name), bobs?.tasks]).toEqual([[task.name], []]);
});

async function answerOf(method: DescMethod, request: object, user: string) {
  const call = (as(method.parent, user) as never as Record<string, (request: unknown, settings: object) => unknown>)[method.localName];
  const answer = call?.(request, { timeoutMs: 30_000 });
  return refusal(method.methodKind === 'server_streaming' ? collect(answer as AsyncIterable<object>) : (answer as Promise<unknown>));
}

it("finds no record of another user in any call, and changes only the user's own", async () => {
  const anns = as(Memory, 'ann');
  const { document } = await anns.importDocument(documentOf({ name: 'tea.txt', agent: 'default' }, 'Tea at five.'));
  const { conversation } = await anns.addConversation({ agent: 'default', messages: [{ role: 'user', text: 'I moved to Oslo.' }] });
  const { id: erasure } = await as(Memory, 'cat').eraseMemory({ whose: { case: 'user', value: 'cat' } });
  const { name } = task;
  const requests: Readonly<Record<string, object>> = {
    getTask: { name },
    cancelTask: { name },
    answerTask: { name, text: 'yes' },
    waitTask: { name },
    getStep: { name, step: 'a1.draft' },
    explainStep: { name },
    watchTask: { name },
    updateFact: { id: fact, confidence: 0.1 },
    listFactHistory: { id: fact },
    undoFactDecision: { id: fact, other: fact },
    deleteDocument: { id: document?.id },
    listTurns: { id: conversation?.id },
    deleteConversation: { id: conversation?.id },
    getErasure: { id: erasure },
  };
  // The list of tasks is tested above.
  const own = METHODS.filter((method) => ruleOf(method).bound === 'own' && method.localName !== 'listTasks');
  expect(own.map(({ localName }) => localName).toSorted()).toEqual(Object.keys(requests).toSorted());
  for (const method of own)
    expect([method.name, (await answerOf(method, requests[method.localName] ?? {}, 'bob')).status]).toEqual([
      method.name,
      status.NOT_FOUND,
    ]);
  const memory = as(Memory, 'bob');
  expect(await refusal(memory.getMemory({ id: fact, layer: 'semantic' }))).toMatchObject(NOT_FOUND);
  expect(await refusal(memory.deleteMemory({ id: fact, layer: 'semantic', agent: 'default' }))).toMatchObject(NOT_FOUND);
  expect(await refusal(memory.updateFact({ id: shared, confidence: 0.1 }))).toMatchObject(DENIED);
  expect(await refusal(memory.deleteMemory({ id: shared, layer: 'semantic', agent: 'default' }))).toMatchObject(DENIED);
  expect(await refusal(memory.eraseMemory({ whose: { case: 'user', value: 'ann' } }))).toMatchObject(DENIED);
  expect(await refusal(memory.eraseMemory({ whose: { case: 'tenant', value: 'acme' } }))).toMatchObject(DENIED);
  expect((await as(Tasks, 'ann').getTask({ name })).cancelRequested).toBe(false);
  expect(await anns.updateFact({ id: fact, confidence: 0.9 })).toMatchObject({ fields: { confidence: 0.9 } });
});

it("keeps a user's documents, conversations, skills and tools apart", async () => {
  const { document } = await as(Memory, 'ann').importDocument(documentOf({ name: 'milk.txt', agent: 'default' }, 'Milk at six.'));
  const messages = [{ role: 'user', text: 'I moved to Oslo.' }];
  const { conversation } = await as(Memory, 'ann').addConversation({ agent: 'default', messages });
  const skill = { name: 'brew_tea', agent: 'default', description: 'Brews tea.', kind: 'procedure', code: 'Boil water, then pour it.' };
  await as(Skills, 'ann').registerSkill({ skill });
  expect([document?.user, conversation?.user]).toEqual(['ann', 'ann']);
  const bobs = as(Memory, 'bob');
  expect((await bobs.listDocuments({})).documents).toEqual([]);
  expect((await bobs.listConversations({})).conversations).toEqual([]);
  expect((await as(Skills, 'bob').listSkills({})).skills).toEqual([]);
  expect((await as(Skills, 'ann').listSkills({})).skills).toMatchObject([{ name: 'skills/brew_tea', user: 'ann' }]);
  const search = (user: string) =>
    as(Tools, user).callTool({ tool: 'recall_fact', agent: 'default', arguments: { query: 'tea with milk' } });
  expect(JSON.stringify(await search('ann'))).toContain('with milk');
  expect(JSON.stringify(await search('bob'))).not.toContain('with milk');
});

it('lets a bound caller into no world, and change no skill of the tenant', async () => {
  await rig.client(Worlds).createWorld({ name: 'worlds/isle' });
  const world = { tool: 'observe_location', agent: 'default', arguments: { world: 'isle' } };
  expect(await rig.client(Tools).callTool(world)).toMatchObject({ success: true });
  expect(await refusal(as(Tools, 'bob').callTool(world))).toMatchObject(DENIED);
  expect(await refusal(as(Tasks, 'bob').submitTask({ spec: { ...SPEC, labels: { world: 'isle' } } }))).toMatchObject(DENIED);
  const skill = { name: 'greet', agent: 'default', description: 'Greets.', kind: 'procedure', code: 'Say hello.' };
  await rig.client(Skills).registerSkill({ skill });
  const bobs = as(Skills, 'bob');
  expect((await bobs.getSkill({ name: 'skills/greet', agent: 'default' })).user).toBe('');
  expect(await refusal(bobs.verifySkill({ name: 'skills/greet', agent: 'default' }))).toMatchObject(DENIED);
});

it('refuses every call that has no rule for bound callers, or names another user', async () => {
  const closed = METHODS.filter((method) => ruleOf(method).bound === undefined && method.methodKind !== 'client_streaming');
  expect(closed.length).toBeGreaterThan(40);
  for (const method of closed)
    expect([method.name, (await answerOf(method, create(method.input), 'bob')).status]).toEqual([method.name, 7]);
  const named = METHODS.filter((method) => ['user', 'spec.user', 'skill.user'].includes(ruleOf(method).bound ?? ''));
  expect(named.length).toBeGreaterThan(30);
  for (const method of named) {
    const [holder = ''] = (ruleOf(method).bound ?? '').split('.');
    const request = create(method.input, (holder === 'user' ? { user: 'ann' } : { [holder]: { user: 'ann' } }) as never);
    expect(await answerOf(method, request, 'bob')).toMatchObject({ ...DENIED, message: expect.stringContaining('bound to one user') });
  }
});

it('binds no call by a field that its request lacks', () => {
  for (const [name, service] of Object.entries(SERVICES))
    for (const method of service.methods as readonly DescMethod[]) {
      const { bound } = (RULES as never as Record<string, Record<string, { bound?: string }>>)[name]?.[method.localName] ?? {};
      const [holder = '', ...inner] = bound === 'own' || bound === 'open' || bound === undefined ? [] : bound.split('.');
      const has = method.input.fields.some(({ localName, oneof }) => localName === holder || oneof?.localName === holder);
      expect([method.name, holder === '' || has, inner.length < 3]).toEqual([method.name, true, true]);
    }
});

it('is the same over HTTP', async () => {
  const headers = { authorization: `Bearer ${tokenOf('bob')}` };
  const asked: ReadonlyArray<readonly [status: number, verb: string, path: string, body?: object]> = [
    [404, 'GET', `/v1/${task.name}`],
    [404, 'GET', `/v1/${task.name}:watch`],
    [404, 'POST', `/v1/${task.name}:cancel`, {}],
    [404, 'GET', `/v1/memory/records/semantic/${fact}`],
    [404, 'DELETE', `/v1/memory/records/semantic/${fact}?agent=default`],
    [404, 'GET', `/instances/acme/providers/etude/skills/brew_tea`],
    [403, 'GET', '/v1/memory/documents?user=ann'],
    [403, 'POST', '/v1/memory:erase', { user: 'ann' }],
    [403, 'GET', '/v1/tasks:usage'],
    [403, 'GET', '/v1/sandboxes'],
  ];
  for (const [code, verb, path, body] of asked) expect([path, (await door.ask(verb, path, body, headers)).status]).toEqual([path, code]);
});

it('needs the claim, except from reviewers and operators, who act for the tenant', async () => {
  expect(await refusal(as(Tasks).listTasks({}))).toMatchObject({
    status: status.UNAUTHENTICATED,
    message: expect.stringContaining('"sub"'),
  });
  const { tasks } = await as(Tasks, undefined, ['user', 'reviewer']).listTasks({});
  expect(tasks.map(({ name }) => name)).toEqual([task.name]);
});
