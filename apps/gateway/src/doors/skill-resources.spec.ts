import { create, type JsonObject, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { EtudeError } from '@etude/contracts/errors';
import { ListSkillsResponseSchema, type Skill, SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { expect, it } from 'vitest';
import { restError } from './http-door.js';
import { matchRoute } from './routes.js';
import { resourceSearch, resourceWrite } from './skill-resource-request.js';
import { AskedSkills, RESOURCE_ROUTES } from './skill-resources.js';

const { ACTIVE, DEPRECATED, PENDING_REVIEW, REJECTED } = SkillStatus;
const one = (version = 1, status = ACTIVE) => ({ name: 'skills/one', agent: 'coder', version, status });

/** Puts an edit of a version where these versions are, newest first. Answers which base it was registered with. */
async function put(version: number, getSkill: () => Promise<Skill | undefined>, versions: readonly Skill[] = [], refused?: EtudeError) {
  const bases: number[] = [];
  const skills = {
    getSkill,
    listSkillVersions: async () => create(ListSkillsResponseSchema, { skills: [...versions] }),
    registerSkill: async ({ baseVersion }: { baseVersion: number }) => {
      if (refused) throw refused;
      bases.push(baseVersion);
      return create(SkillSchema, one());
    },
  };
  const asked = new AskedSkills(skills as never, {}, 'Etude.Skill', { instanceId: 'home', provider: 'Etude.Skill' });
  const { status } = await asked.put('one', { description: '', code: 'def one(): return 1', version, owner_agent_object_id: 'coder' });
  return { status, bases };
}

it.each([
  ['is another user’s', async () => create(SkillSchema, { ...one(4), user: 'bob' }), 201, 0],
  ['is of several users', async () => Promise.reject(new EtudeError('FAILED_PRECONDITION', 'several')), 201, 0],
  ['is nobody’s in particular', async () => create(SkillSchema, one(4)), 200, 1],
])('takes what is put for an edit only of what is nobody’s: what is there %s', async (_what, getSkill, status, base) => {
  expect(await put(1, getSkill)).toEqual({ status, bases: [base] });
});

it.each([
  ['the rejected ones after what is shown', 2, [REJECTED, REJECTED, ACTIVE, DEPRECATED], 4],
  ['no version before the one that is shown', 1, [REJECTED, REJECTED, ACTIVE, DEPRECATED], 1],
  ['none that may yet be in use', 2, [REJECTED, PENDING_REVIEW, ACTIVE, DEPRECATED], 2],
])('skips in an edit %s', async (_what, version, states, base) => {
  const versions = states.map((state, at) => create(SkillSchema, one(states.length - at, state)));
  expect(await put(version, async () => versions[0], versions)).toMatchObject({ bases: [base] });
});

it('says of a stale edit which field of the resource says what was edited', async () => {
  const message = 'skill "one" changed since version 1: version 2 by ann changed code';
  const refused = put(1, async () => create(SkillSchema, one(2)), [], new EtudeError('ABORTED', message, { field: 'base_version' }));
  expect(restError(await refused.catch((error: unknown) => error))).toMatchObject({
    status: 409,
    error: { code: 'ABORTED', message, fields: [{ field: 'version', description: message }] },
  });
});

it('takes a path with a segment that is no text for none, and never for the list', () => {
  const skills = '/instances/home/providers/Etude.Skill/skills';
  for (const verb of ['GET', 'PUT', 'DELETE', 'POST']) expect(matchRoute(RESOURCE_ROUTES, verb, `${skills}/%ff`)).toBeNull();
  expect(matchRoute(RESOURCE_ROUTES, 'GET', skills.replace('home', '%ff'))).toBeNull();
  expect(matchRoute(RESOURCE_ROUTES, 'GET', `${skills}/a%20b`)).toMatchObject({ fields: { skillName: 'a b' } });
  expect(matchRoute(RESOURCE_ROUTES, 'GET', `${skills}/search`)).toMatchObject({ route: { id: 'GetSkillResource' } });
});

const VALUE = '{"__proto__":{"a":1},"b":[null]}';

it('keeps every key of values in tests and defaults', () => {
  const test = `{"call":{"args":[${VALUE}],"expected":${VALUE}}}`;
  const body = `{"description":"","code":"","tests":[${test}],"parameters":[{"name":"x","required":false,"default_value":${VALUE}}]}`;
  const { tests, parameters } = resourceWrite(JSON.parse(body) as JsonObject, 'one').draft;
  const call = tests[0]?.test.case === 'call' ? tests[0].test.value : undefined;
  const values = [...(call?.args?.values ?? []), call?.expected, parameters[0]?.defaultValue];
  expect(values.map((value) => value && JSON.stringify(toJson(ValueSchema, value)))).toEqual([VALUE, VALUE, VALUE]);
});

it.each(['nonsense', '__proto__', 'constructor'])('refuses the field %s, which no skill has', (field) => {
  const body = JSON.parse(`{"description":"","code":"","${field}":1}`) as JsonObject;
  expect(() => resourceWrite(body, 'one')).toThrow(`${field}: is no field of this call`);
});

it('finds five where nobody says how many, or says 0', () => {
  const asked: JsonObject[] = [{}, { max_results: 0 }, { max_results: 7 }];
  const counts = asked.map((more) => resourceSearch({ query: 'a', ...more }).max_results);
  expect(counts).toEqual([5, 5, 7]);
  for (const wrong of [-1, 101]) expect(() => resourceSearch({ query: 'a', max_results: wrong })).toThrow('max_results: ');
});
