import { describe, expect, it } from 'vitest';
import { bearer, restDoor } from './rest-door.js';
import { skillsForFile } from './skill-workers.js';

const ROOT = '/instances/home/providers/Etude.Skill/skills';
const { ask, settings } = restDoor();
skillsForFile(settings);

const OWNER = '/instances/home/providers/Etude.Agent/agents/coder';
const ADD = 'def add(a: int, b: int = 1) -> int:\n    if a > 100:\n        return a - b\n    return a + b\n';
const test = (args: number[], expected: number) => ({ call: { args, expected } });
const ADDING = {
  description: 'Adds two numbers.',
  code: ADD,
  example_prompts: ['add two and three'],
  tags: ['math'],
  owner_agent_object_id: OWNER,
  tests: [test([1, 2], 3), test([101, 1], 100), test([4], 5)],
};

describe('a skill as a resource', () => {
  it('is created, shown with all its fields, and found', async () => {
    const created = await ask('PUT', `${ROOT}/add_numbers`, { ...ADDING, display_name: 'Add numbers' });
    expect(created.status).toBe(201);
    expect(created.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      type: 'Etude.Skill/skills',
      name: 'add_numbers',
      object_id: `${ROOT}/add_numbers`,
      display_name: 'Add numbers',
      description: 'Adds two numbers.',
      code: ADD,
      example_prompts: ['add two and three'],
      parameters: [
        { name: 'a', type: 'int', description: '', required: true, default_value: null },
        { name: 'b', type: 'int', description: '', required: false, default_value: 1 },
      ],
      tags: ['math'],
      owner_agent_object_id: OWNER,
      execution_count: 0,
      success_rate: 1,
      version: 1,
      created_on: expect.stringMatching(/Z$/) as string,
      updated_on: expect.stringMatching(/Z$/) as string,
      status: 'active',
      status_reason: expect.any(String) as string,
    });
    expect((await ask('GET', `${ROOT}/add_numbers`)).body).toEqual(created.body);
    expect((await ask('GET', ROOT)).body).toEqual([created.body]);
    const elsewhere = await ask('GET', '/instances/other-1/providers/Etude.Skill/skills/add_numbers');
    expect(elsewhere.body).toMatchObject({ object_id: '/instances/other-1/providers/Etude.Skill/skills/add_numbers' });
    const search = { query: 'Adds two numbers', agent_object_id: OWNER, min_similarity: 0.1 };
    const found = await ask('POST', `${ROOT}/search`, search);
    expect(found.body).toEqual([{ skill: created.body, similarity: expect.any(Number) as number }]);
    expect((await ask('POST', `${ROOT}/search`, { ...search, tags: ['none'] })).body).toEqual([]);
  });

  it('is replaced only if the edited version is still the newest', async () => {
    const { body } = await ask('GET', `${ROOT}/add_numbers`);
    const code = `${ADD}\n\nLIMIT = 100\n`;
    const replaced = await ask('PUT', `${ROOT}/add_numbers`, { ...(body as object), code, tests: ADDING.tests });
    expect(replaced).toMatchObject({ status: 200, body: { version: 2, code, status: 'active' } });
    const stale = await ask('PUT', `${ROOT}/add_numbers`, { ...ADDING, code: `${ADD}\n\nOTHER = 1\n`, version: 1 });
    const changed = expect.stringMatching(/changed since version 1: the newest is version 2 by /) as string;
    const fields = [{ field: 'base_version', description: changed }];
    expect(stale).toMatchObject({ status: 409, body: { error: { code: 'ABORTED', message: changed, fields } } });
  });

  it('is stored as rejected if its tests fail, and the version before stays active', async () => {
    const wrong = { ...ADDING, code: ADD.replace('a + b', 'a * b') };
    expect(await ask('PUT', `${ROOT}/add_numbers`, wrong)).toMatchObject({ status: 200, body: { version: 3, status: 'rejected' } });
    const shown = (await ask('GET', `${ROOT}/add_numbers`)).body;
    expect(shown).toMatchObject({ version: 2, status: 'active' });
    const again = { ...shown, description: 'Adds.', tests: ADDING.tests };
    expect(await ask('PUT', `${ROOT}/add_numbers`, again)).toMatchObject({ status: 200, body: { version: 4, status: 'active' } });
  });

  it('needs the role of a reviewer to be shared with every agent', async () => {
    const shared = { ...ADDING, owner_agent_object_id: null };
    expect(await ask('PUT', `${ROOT}/add_shared`, shared)).toMatchObject({ status: 403, body: { error: { code: 'PERMISSION_DENIED' } } });
    const written = await ask('PUT', `${ROOT}/add_shared`, shared, bearer('rev'));
    expect(written).toMatchObject({ status: 201, body: { owner_agent_object_id: null } });
    expect((await ask('GET', `${ROOT}?agent_object_id=somebody`)).body).toMatchObject([{ name: 'add_shared' }]);
  });

  it('is deleted by reviewers only, and then not found', async () => {
    await ask('PUT', `${ROOT}/add_gone`, ADDING);
    expect(await ask('DELETE', `${ROOT}/add_gone`)).toMatchObject({ status: 403 });
    expect(await ask('DELETE', `${ROOT}/add_gone`, undefined, bearer('rev'))).toMatchObject({ status: 204, body: null });
    expect(await ask('GET', `${ROOT}/add_gone`)).toMatchObject({ status: 404 });
    expect(await ask('DELETE', `${ROOT}/add_gone`, undefined, bearer('rev'))).toMatchObject({ status: 404 });
    expect(JSON.stringify((await ask('GET', ROOT)).body)).not.toContain('add_gone');
  });

  it('is not found by another tenant or agent', async () => {
    expect(await ask('GET', `${ROOT}/add_numbers`, undefined, bearer('globex'))).toMatchObject({ status: 404 });
    expect((await ask('GET', ROOT, undefined, bearer('globex'))).body).toEqual([]);
    expect(await ask('GET', `${ROOT}/add_numbers?agent_object_id=other`)).toMatchObject({ status: 404 });
  });

  it.each([
    ['another provider', 'GET', '/instances/home/providers/Other.Skill/skills', undefined, 404, 'Etude.Skill'],
    ['another verb', 'POST', ROOT, {}, 404, 'POST'],
    ['another name in the body', 'PUT', `${ROOT}/x`, { ...ADDING, name: 'y' }, 400, 'name'],
    ['no code', 'PUT', `${ROOT}/x`, { description: 'x' }, 400, 'code'],
    ['a body that is too large', 'PUT', `${ROOT}/x`, { ...ADDING, code: 'x'.repeat(5_000_000) }, 413, '4194304'],
    ['an unknown field of a query', 'GET', `${ROOT}?agent=coder`, undefined, 400, 'agent'],
  ])('refuses %s', async (_what, verb, path, body, status, says) => {
    const answer = await ask(verb, path, body);
    expect(answer.status).toBe(status);
    expect(JSON.stringify(answer.body)).toContain(says);
    expect(answer.body).toMatchObject({ error: { code: expect.any(String) as string } });
  });
});

describe('plain paths', () => {
  it('serve skills, tools and agents under the field names of the proto', async () => {
    const used = await ask('POST', '/v1/skills/add_numbers:use', { agent: 'coder', parameters: { a: 2, b: 3 } });
    expect(used).toMatchObject({ status: 200, body: { success: true, result: 5, name: 'skills/add_numbers' } });
    expect(await ask('GET', '/v1/skills/add_numbers?agent=coder')).toMatchObject({ status: 200, body: { name: 'skills/add_numbers' } });
    expect(await ask('GET', '/v1/skills?agent=coder&tags=math&page_size=1')).toMatchObject({ status: 200, body: { skills: [{}] } });
    expect(await ask('GET', '/v1/skills/add_numbers/versions?agent=coder')).toMatchObject({ body: { skills: [{}, {}, {}, {}] } });
    expect(await ask('GET', '/v1/skills/add_numbers:diff?agent=coder')).toMatchObject({ body: { from_version: 3, to_version: 4 } });
    expect(await ask('GET', '/v1/skills/add_numbers:review?agent=coder')).toMatchObject({ status: 403 });
    const updated = await ask(
      'PATCH',
      '/v1/agents/coder',
      { agent: { procedural_memory_settings: { max_skills: 9 } }, update_mask: 'proceduralMemorySettings.maxSkills' },
      bearer('rev'),
    );
    expect(updated).toMatchObject({ status: 200, body: { name: 'agents/coder', procedural_memory_settings: { max_skills: 9 } } });
    expect(await ask('GET', '/v1/agents')).toMatchObject({ body: { agents: [{ name: 'agents/coder' }] } });
    expect(await ask('POST', '/v1/skills/add_numbers:nonsense', {})).toMatchObject({ status: 404 });
  });

  it('return the request for a missing skill beside the error of the tool', async () => {
    const args = { skill_id: 'count_moons', parameters: {}, action_description: 'Count moons.' };
    const { body } = await ask('POST', '/v1/tools/use_skill:call', { agent: 'coder', arguments: args });
    expect(body).toMatchObject({ success: false, error: 'Skill not found', skill_request_submitted: true, request_id: expect.any(String) });
    const found = await ask('POST', '/v1/tools/list_skill_categories:call', { agent: 'coder', arguments: {} });
    expect(found.body).toEqual({ success: true, error: '', result: expect.any(Object) });
  });
});
