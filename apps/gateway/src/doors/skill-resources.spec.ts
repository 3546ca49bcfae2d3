import { type JsonObject, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import { matchRoute } from './routes.js';
import { resourceSearch, resourceWrite } from './skill-resource-request.js';
import { RESOURCE_ROUTES } from './skill-resources.js';

it('matches no route for a path with an invalid encoding', () => {
  const skills = '/instances/home/providers/Etude.Skill/skills';
  for (const verb of ['GET', 'PUT', 'DELETE', 'POST']) expect(matchRoute(RESOURCE_ROUTES, verb, `${skills}/%ff`)).toBeNull();
  expect(matchRoute(RESOURCE_ROUTES, 'GET', skills.replace('home', '%ff'))).toBeNull();
  expect(matchRoute(RESOURCE_ROUTES, 'GET', `${skills}/a%20b`)).toMatchObject({ fields: { skillName: 'a b' } });
  expect(matchRoute(RESOURCE_ROUTES, 'GET', `${skills}/search`)).toMatchObject({ route: { id: 'GetSkillResource' } });
});

const VALUE = '{"__proto__":{"a":1},"b":[null]}';

it('keeps every key of values in tests and default values', () => {
  const test = `{"call":{"args":[${VALUE}],"expected":${VALUE}}}`;
  const body = `{"description":"","code":"","tests":[${test}],"parameters":[{"name":"x","required":false,"default_value":${VALUE}}]}`;
  const { tests, parameters } = resourceWrite(JSON.parse(body) as JsonObject, 'one').draft;
  const call = tests[0]?.test.case === 'call' ? tests[0].test.value : undefined;
  const values = [...(call?.args?.values ?? []), call?.expected, parameters[0]?.defaultValue];
  expect(values.map((value) => value && JSON.stringify(toJson(ValueSchema, value)))).toEqual([VALUE, VALUE, VALUE]);
});

it.each(['nonsense', '__proto__', 'constructor'])('refuses the unknown field %s', (field) => {
  const body = JSON.parse(`{"description":"","code":"","${field}":1}`) as JsonObject;
  expect(() => resourceWrite(body, 'one')).toThrow(`${field}: is not a field of this call`);
});

it('searches for five skills if max_results is absent or 0', () => {
  const asked: JsonObject[] = [{}, { max_results: 0 }, { max_results: 7 }];
  const counts = asked.map((more) => resourceSearch({ query: 'a', ...more }).max_results);
  expect(counts).toEqual([5, 5, 7]);
  for (const wrong of [-1, 101]) expect(() => resourceSearch({ query: 'a', max_results: wrong })).toThrow('max_results: ');
});
