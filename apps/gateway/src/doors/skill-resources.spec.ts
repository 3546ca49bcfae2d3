import { create } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { ListSkillsResponseSchema, type Skills, SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { ServiceClient } from '@etude/contracts/grpc-client';
import { expect, it } from 'vitest';
import { restError } from './http-door.js';
import { matchResource, SkillResources } from './skill-resources.js';

const skill = (name: string, version = 1, status = SkillStatus.ACTIVE) => ({ name: `skills/${name}`, agent: 'coder', version, status });

/** Three skills on two pages, one of them a second version that waits. Any other call than ListSkills fails. */
function client() {
  const calls: string[] = [];
  const first = { skills: [skill('one'), skill('two', 2, SkillStatus.PENDING_REVIEW)], nextPageToken: 'next' };
  const last = { skills: [skill('three', 3)] };
  const listSkills = async ({ pageToken }: { pageToken?: string }) => {
    calls.push(pageToken ?? '');
    return create(ListSkillsResponseSchema, pageToken === 'next' ? last : first);
  };
  return { calls, skills: { listSkills } as unknown as ServiceClient<typeof Skills> };
}

it('lists all skills with one call for each page, whatever their versions', async () => {
  const { calls, skills } = client();
  const resources = new SkillResources('Etude.Skill', skills);
  const match = { resource: 'list', verb: 'GET', instanceId: 'home', provider: 'Etude.Skill', name: '', bytesMax: 0 } as const;
  const { json } = await resources.answer(match, { query: new URLSearchParams(), body: {} }, {});
  expect(json).toMatchObject([
    { name: 'one', version: 1, object_id: '/instances/home/providers/Etude.Skill/skills/one' },
    { name: 'two', version: 2 },
    { name: 'three', version: 3 },
  ]);
  expect(calls).toEqual(['', 'next']);
});

it.each([
  ['is another user’s', async () => create(SkillSchema, { ...skill('one', 4), user: 'bob' }), 201, 0],
  ['is of several users', async () => Promise.reject(new EtudeError('FAILED_PRECONDITION', 'several')), 201, 0],
  ['is nobody’s in particular', async () => create(SkillSchema, skill('one', 4)), 200, 1],
])('takes what is put for an edit only of what is nobody’s: what is there %s', async (_what, getSkill, answered, baseVersion) => {
  const registered: unknown[] = [];
  const registerSkill = async (request: { baseVersion: number }) => {
    registered.push(request.baseVersion);
    return create(SkillSchema, skill('one'));
  };
  const resources = new SkillResources('Etude.Skill', { getSkill, registerSkill } as unknown as ServiceClient<typeof Skills>);
  const match = { resource: 'one', verb: 'PUT', instanceId: 'home', provider: 'Etude.Skill', name: 'one', bytesMax: 0 } as const;
  const body = { description: '', code: 'def one(): return 1', version: 1, owner_agent_object_id: 'coder' };
  expect(await resources.answer(match, { query: new URLSearchParams(), body }, {})).toMatchObject({ status: answered });
  expect(registered).toEqual([baseVersion]);
});

it.each([
  ['the rejected ones after what is shown', 2, [SkillStatus.REJECTED, SkillStatus.REJECTED, SkillStatus.ACTIVE, SkillStatus.DEPRECATED], 4],
  [
    'no version before the one that is shown',
    1,
    [SkillStatus.REJECTED, SkillStatus.REJECTED, SkillStatus.ACTIVE, SkillStatus.DEPRECATED],
    1,
  ],
  ['none that may yet be in use', 2, [SkillStatus.REJECTED, SkillStatus.PENDING_REVIEW, SkillStatus.ACTIVE, SkillStatus.DEPRECATED], 2],
])('skips in an edit %s', async (_what, version, states, baseVersion) => {
  const versions = states.map((state, at) => create(SkillSchema, skill('one', states.length - at, state)));
  const registered: unknown[] = [];
  const skills = {
    getSkill: async () => versions[0],
    listSkillVersions: async () => create(ListSkillsResponseSchema, { skills: versions }),
    registerSkill: async (request: { baseVersion: number }) => {
      registered.push(request.baseVersion);
      return create(SkillSchema, skill('one', 5));
    },
  } as unknown as ServiceClient<typeof Skills>;
  const resources = new SkillResources('Etude.Skill', skills);
  const match = { resource: 'one', verb: 'PUT', instanceId: 'home', provider: 'Etude.Skill', name: 'one', bytesMax: 0 } as const;
  const body = { description: '', code: 'def one(): return 1', version, owner_agent_object_id: 'coder' };
  await resources.answer(match, { query: new URLSearchParams(), body }, {});
  expect(registered).toEqual([baseVersion]);
});

it('says of a stale edit which field of the resource says what was edited', async () => {
  const refused = new EtudeError('ABORTED', 'skill "one" changed since version 1: version 2 by ann changed code', {
    field: 'base_version',
  });
  const skills = {
    getSkill: async () => create(SkillSchema, skill('one', 2)),
    registerSkill: async () => Promise.reject(refused),
  } as unknown as ServiceClient<typeof Skills>;
  const match = { resource: 'one', verb: 'PUT', instanceId: 'home', provider: 'Etude.Skill', name: 'one', bytesMax: 0 } as const;
  const body = { description: '', code: 'def one(): return 1', version: 1, owner_agent_object_id: 'coder' };
  const asked = new SkillResources('Etude.Skill', skills).answer(match, { query: new URLSearchParams(), body }, {});
  const { status, body: answer } = restError(await asked.catch((error: unknown) => error));
  const { message } = refused;
  expect({ status, ...answer }).toEqual({
    status: 409,
    error: { code: 'ABORTED', message, fields: [{ field: 'version', description: message }] },
  });
});

it('takes a path with a segment that is no text for none, and never for the list', () => {
  const skills = '/instances/home/providers/Etude.Skill/skills';
  for (const verb of ['GET', 'PUT', 'DELETE', 'POST']) expect(matchResource(verb, `${skills}/%ff`)).toBeNull();
  expect(matchResource('GET', skills.replace('home', '%ff'))).toBeNull();
  expect(matchResource('GET', skills)).toMatchObject({ resource: 'list', name: '' });
  expect(matchResource('GET', `${skills}/a%20b`)).toMatchObject({ resource: 'one', name: 'a b' });
});
