import { describe, expect, it } from 'vitest';
import { gatewayForFile } from './gateway.harness.js';
import { bearer, restDoor } from './rest-door.js';

const { ask, send, settings } = restDoor();
const rig = gatewayForFile(settings);

describe('JSON over HTTP', () => {
  it('stores, finds and shows records under the field names of the proto', async () => {
    const stored = await ask('POST', '/v1/memory/facts', { agent: 'scout', text: 'The quay is made of granite.', category: 'quay' });
    expect(stored).toMatchObject({ status: 200, body: { outcome: 'added', fact: { kind: 'fact' } } });
    const { id } = stored.body['fact'] as { id: string };
    const found = await ask('POST', '/v1/memory:search', { query: 'what is the quay made of', layers: ['semantic'] });
    expect(found.body['hits']).toMatchObject([{ id, create_time: expect.any(String) as string }]);
    expect(await ask('GET', `/v1/memory/records/semantic/${id}`)).toMatchObject({ status: 200, body: { id } });
    const changed = await ask('PATCH', `/v1/memory/facts/${id}`, { confidence: 0.5, update_mask: 'confidence' });
    expect(changed.body).toMatchObject({ fields: { confidence: 0.5 } });
    expect((await ask('GET', '/v1/memory/records?category=quay&page_size=9')).body['records']).toMatchObject([{ id }]);
    const deleted = await ask('DELETE', `/v1/memory/records/semantic/${id}?request_id=quay-1`);
    expect(deleted).toMatchObject({ status: 200, body: { state: 'running', supported: [] } });
    expect((await ask('DELETE', `/v1/memory/records/semantic/${id}?request_id=quay-1`)).body).toEqual(deleted.body);
    expect(await ask('DELETE', `/v1/memory/records/semantic/${id}`)).toMatchObject({ status: 404 });
  });

  it('reads the fields of a GET from its query', async () => {
    await ask('POST', '/v1/memory/episodes', {
      agent: 'scout',
      context: ['at the quay'],
      outcomes: [{ type: 'ok' }],
      skills_used: ['moor'],
    });
    const recent = await ask('GET', '/v1/memory/episodes?agent=scout&limit=1');
    expect(recent.body['episodes']).toHaveLength(1);
    expect(await ask('GET', '/v1/memory/episodes?nonsense=1')).toMatchObject({ status: 400 });
    expect(await ask('GET', '/v1/memory/episodes?limit=many')).toMatchObject({ status: 400 });
  });

  it('names an unknown field', async () => {
    const { status, body } = await ask('POST', '/v1/memory:search', { query: 'x', tenant: 'globex' });
    expect({ status, error: body['error'] }).toMatchObject({ status: 400, error: { fields: [{ field: 'tenant' }] } });
  });

  it('takes a document as the raw body, and sends an export as JSON Lines', async () => {
    const path = '/v1/memory/documents?name=quay.txt&agent=scout';
    const added = await ask('POST', path, 'Granite lasts.\n', { 'content-type': 'text/plain' });
    expect(added).toMatchObject({ status: 200, body: { outcome: 'added', document: { chunks: 1 } } });
    const response = await send('GET', '/v1/memory:export', null);
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const lines = (await response.text()).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown).length).toBeGreaterThan(2);
    const back = await ask('POST', '/v1/memory:import', lines.join('\n'), { 'content-type': 'application/x-ndjson' });
    expect(back).toMatchObject({ status: 200, body: { added: '0' } });
  });

  it.each([
    ['no key', 'GET', '/v1/memory/stats', undefined, { authorization: '' }, 401],
    ['another role', 'POST', '/v1/memory:reconcile', {}, {}, 403],
    ['an unknown path', 'GET', '/v1/nothing', undefined, {}, 404],
    ['another verb', 'DELETE', '/v1/memory:search', undefined, {}, 404],
    ['invalid JSON', 'POST', '/v1/memory:search', '{', {}, 400],
    ['a list', 'POST', '/v1/memory:search', [], {}, 400],
    ['text, as web forms send it', 'POST', '/v1/memory:search', '{"query":"x"}', { 'content-type': 'text/plain' }, 400],
    ['a missing record', 'GET', '/v1/memory/records/semantic/none', undefined, {}, 404],
    ['a wrong layer', 'GET', '/v1/memory/records/..%2f/none', undefined, {}, 400],
  ] as const)('refuses %s', async (_what, verb, path, body, headers, status) => {
    const answer = await ask(verb, path, body, { ...headers });
    expect(answer.status).toBe(status);
    expect(answer.body['error']).toMatchObject({ code: expect.any(String) as string, message: expect.any(String) as string });
  });

  it('serves an OpenAPI description whose references all resolve', async () => {
    const { body } = await ask('GET', '/openapi.json');
    const { paths, components } = body as {
      paths: Record<string, Record<string, { operationId: string; summary: string }>>;
      components: { schemas: object };
    };
    expect(paths).toHaveProperty(['/v1/memory:search', 'post', 'operationId'], 'SearchMemory');
    expect(paths).toHaveProperty(['/v1/skills/{name}:use', 'post', 'operationId'], 'UseSkill');
    const one = '/instances/{instanceId}/providers/Etude.Skill/skills/{skillName}';
    expect(Object.keys(paths[one] ?? {}).toSorted()).toEqual(['delete', 'get', 'put']);
    const operations = Object.values(paths).flatMap((verbs) => Object.values(verbs));
    expect(operations.filter(({ summary, operationId }) => !summary || !operationId)).toEqual([]);
    const named = [...JSON.stringify(body).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !(name in components.schemas))).toEqual([]);
  });
});

const submitTask = async () => {
  const { status, body } = await ask('POST', '/v1/tasks', { spec: { prompt: 'Count the quays.', memory: { off: true } } });
  expect({ status, body }).toMatchObject({ status: 200, body: { state: 'TASK_STATE_QUEUED' } });
  return body['name'] as string;
};

describe('tasks over HTTP', () => {
  it('are submitted, listed, watched and waited for', async () => {
    const name = await submitTask();
    expect(await ask('GET', `/v1/${name}`)).toMatchObject({ status: 200, body: { name } });
    await rig.emit('acme', name, [{ type: 'attempt_started', attempt: 1 }], 'a1.generate', { modelCalls: 1 });
    expect((await ask('GET', `/v1/${name}:explain?step=a1.generate`)).body).toMatchObject({
      steps: ['a1.generate'],
      sections: [{ role: 'system' }, { role: 'user', title: 'Task', text: expect.stringContaining('Count the quays.') as string }, {}, {}],
    });
    await rig.finish('acme', name);
    expect((await ask('POST', `/v1/${name}:wait`, { timeout: '5s' })).body).toMatchObject({ state: 'TASK_STATE_SUCCEEDED' });
    expect((await ask('GET', '/v1/tasks?state=TASK_STATE_SUCCEEDED')).body['tasks']).toMatchObject([{ name }]);
    const watched = await send('GET', `/v1/${name}:watch`, null);
    expect(watched.headers.get('content-type')).toBe('text/event-stream');
    const events = (await watched.text()).trim().split('\n\n');
    expect(events.at(-1)).toMatch(/^id: \w+\ndata: \{.*"finished":\{"task":\{/);
    const seen = /^id: (\w+)/.exec(events[1] ?? '')?.[1] ?? '';
    const rest = await (await send('GET', `/v1/${name}:watch`, null, { 'last-event-id': seen })).text();
    expect(rest.trim().split('\n\n')).toEqual(events.slice(2));
  });

  it('are answered and cancelled', async () => {
    const name = await submitTask();
    expect(await ask('POST', `/v1/${name}:answer`, { text: 'x' })).toMatchObject({
      status: 400,
      body: { error: { code: 'FAILED_PRECONDITION', message: expect.stringContaining('is queued') as string } },
    });
    await rig.ask('acme', name, { key: 'a1.s1.t1', text: 'Which quays?', deadlineAt: 4_000_000_000_000 });
    expect((await ask('GET', `/v1/${name}`)).body).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      question: { text: 'Which quays?' },
    });
    expect(await ask('POST', `/v1/${name}:answer`, { text: 'all' }, bearer('globex'))).toMatchObject({ status: 404 });
    expect(await ask('POST', `/v1/${name}:answer`, { text: 'all' })).toMatchObject({ status: 200, body: { state: 'TASK_STATE_QUEUED' } });
    expect((await ask('POST', `/v1/${name}:cancel`, {})).body).toMatchObject({ state: 'TASK_STATE_CANCELLED' });
    expect(await ask('GET', '/v1/tasks/t00000000:watch')).toMatchObject({ status: 404, body: { error: { code: 'NOT_FOUND' } } });
    expect(await ask('GET', `/v1/${name}`, undefined, { authorization: '' })).toMatchObject({ status: 401 });
  });
});

const episode = (text: string) => ({ agent: 'scout', context: [text] });

describe('a body', () => {
  it('is not read if the key is unknown', async () => {
    const sent = { authorization: 'Bearer wrong' };
    const answer = await ask('POST', '/v1/memory/episodes', `{"context":["${'x'.repeat(14_000_000)}"]}`, sent);
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHENTICATED' } } });
    expect(await ask('POST', '/v1/memory:search', '{', sent)).toMatchObject({ status: 401 });
  });

  it.each([
    ['a search', '/v1/memory:search', { query: 'x'.repeat(1_100_000) }, '1048576'],
    ['an episode', '/v1/memory/episodes', episode('x'.repeat(1_100_000)), '1048576'],
    ['an import', '/v1/memory:import', 'x'.repeat(17_000_000), '16777216'],
  ])('of %s is refused above its limit, which the error names', async (_what, path, body, limit) => {
    const answer = await ask('POST', path, body);
    expect(answer).toMatchObject({ status: 413, body: { error: { code: 'PAYLOAD_TOO_LARGE' } } });
    expect(JSON.stringify(answer.body)).toContain(limit);
  });

  it('is refused if its values are nested too deeply', async () => {
    const nested = `{"agent":"scout","context":["x"],"outcomes":[${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}]}`;
    expect(await ask('POST', '/v1/memory/episodes', nested)).toMatchObject({ status: 400 });
  });
});
