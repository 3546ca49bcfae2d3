import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { type Skill, type Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { CallSettings, ServiceClient } from '@etude/contracts/grpc-client';
import { SkillName } from '@etude/contracts/ids';
import { MIB } from '../calls/calls.js';
import { parseField } from '@etude/contracts/wire/validation';
import type { Place } from './routes.js';
import { readerOf, type ResourcePlace, resourceSearch, resourceWrite, skillResource } from './skill-resource-request.js';

const PAGE = 200;
/** How long a PUT waits for verification. */
const SETTLE_MS = 20_000;

interface ResourceAnswer {
  readonly status: number;
  /** Absent: no body. */
  readonly json?: JsonValue;
}

export interface ResourceRequest {
  readonly skills: Omit<ServiceClient<typeof Skills>, 'close'>;
  /** With the caller's key. */
  readonly settings: CallSettings;
  readonly place: ResourcePlace;
  /** Path segments by their names in braces. */
  readonly fields: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: JsonObject;
}

export interface ResourceRoute extends Place {
  readonly id: string;
  /** Whether the query may name the reading agent. */
  readonly hasReader?: boolean;
  /** The OpenAPI schema of the body; absent: no body. */
  readonly sends?: 'SkillResourceWrite' | 'SkillResourceSearch';
  readonly answers: Readonly<Record<number, 'SkillResource' | 'SkillResources' | 'SkillResourceHits' | null>>;
  readonly answer: (request: ResourceRequest) => Promise<ResourceAnswer>;
}

const resource = (verb: Place['verb'], path: string, summary: string, rest: Omit<ResourceRoute, keyof Place>): ResourceRoute => ({
  verb,
  path,
  summary,
  bytesMax: verb === 'PUT' ? 4 * MIB : MIB,
  ...rest,
});

const ALL = '/instances/{instanceId}/providers/{provider}/skills';
const ONE = `${ALL}/{skillName}`;

/** Only a POST to ".../skills/search" is a search. With other verbs, "search" is the name of a skill. */
export const RESOURCE_ROUTES: readonly ResourceRoute[] = [
  resource('GET', ALL, 'List skills that are not archived', {
    id: 'ListSkillResources',
    hasReader: true,
    answers: { 200: 'SkillResources' },
    answer: list,
  }),
  resource('GET', ONE, 'Get a skill', {
    id: 'GetSkillResource',
    hasReader: true,
    answers: { 200: 'SkillResource' },
    answer: async (request) => ({ status: 200, json: skillResource(request.place, await currentSkill(request)) }),
  }),
  resource('PUT', ONE, 'Create a skill, or a new version of one; answered once it was verified and settled, or after 20 s', {
    id: 'PutSkillResource',
    sends: 'SkillResourceWrite',
    answers: { 200: 'SkillResource', 201: 'SkillResource' },
    answer: put,
  }),
  resource('DELETE', ONE, 'Archive a skill; for reviewers', {
    id: 'DeleteSkillResource',
    hasReader: true,
    answers: { 204: null },
    answer: archive,
  }),
  resource('POST', `${ALL}/search`, 'Search active skills', {
    id: 'SearchSkillResources',
    sends: 'SkillResourceSearch',
    answers: { 200: 'SkillResourceHits' },
    answer: search,
  }),
];

/** @throws EtudeError INVALID_ARGUMENT */
const nameOf = (fields: ResourceRequest['fields']) => parseField(SkillName, fields['skillName'], 'skillName');

/** @param provider the provider of this gateway @throws EtudeError NOT_FOUND if the path names another provider */
export function placeOf(provider: string, { instanceId = '', provider: asked }: ResourceRequest['fields']): ResourcePlace {
  if (asked === provider) return { instanceId, provider };
  throw new EtudeError('NOT_FOUND', `There is no provider ${JSON.stringify(asked)} here; skills are at ${provider}.`);
}

async function list({ skills, settings, place, query }: ResourceRequest): Promise<ResourceAnswer> {
  const agent = readerOf(query);
  const json: JsonValue[] = [];
  for (let pageToken = ''; ;) {
    const page = await skills.listSkills({ agent, pageSize: PAGE, pageToken }, settings);
    json.push(...page.skills.map((skill) => skillResource(place, skill)));
    pageToken = page.nextPageToken;
    if (pageToken === '') return { status: 200, json };
  }
}

async function search({ skills, settings, place, body }: ResourceRequest): Promise<ResourceAnswer> {
  const { query, agent_object_id: agent, tags, min_similarity: minSimilarity, max_results: maxResults } = resourceSearch(body);
  const asked = { query, agent: agent ?? '', tags: tags ?? [], minSimilarity, maxResults };
  const { hits } = await skills.searchSkills(asked, settings);
  const json = hits.flatMap(({ skill, similarity }) => (skill === undefined ? [] : [{ skill: skillResource(place, skill), similarity }]));
  return { status: 200, json };
}

async function archive(request: ResourceRequest): Promise<ResourceAnswer> {
  const { name, agent, user } = await currentSkill(request);
  await request.skills.archiveSkill({ name, agent, user, reason: 'deleted' }, request.settings);
  return { status: 204 };
}

/** The active version if there is one, else the newest. @throws EtudeError NOT_FOUND, also for an archived skill */
async function currentSkill({ skills, settings, fields, query }: ResourceRequest): Promise<Skill> {
  const name = nameOf(fields);
  const newest = await skills.getSkill({ name: `skills/${name}`, agent: readerOf(query) }, settings);
  const { name: known, agent, user } = newest;
  const { skills: versions } = await skills.listSkillVersions({ name: known, agent, user }, settings);
  const skill = versions.find(({ status }) => status === SkillStatus.ACTIVE) ?? newest;
  if (skill.status !== SkillStatus.ARCHIVED) return skill;
  throw new EtudeError('NOT_FOUND', `The skill ${JSON.stringify(name)} was deleted. A reviewer can restore it.`, { metadata: { name } });
}

async function put({ skills, settings, place, fields, body }: ResourceRequest): Promise<ResourceAnswer> {
  const { draft, version: baseVersion } = resourceWrite(body, nameOf(fields));
  const skill = await skills.registerSkill({ skill: draft, baseVersion, wait: true }, { ...settings, timeoutMs: SETTLE_MS });
  return { status: skill.version === 1 ? 201 : 200, json: skillResource(place, skill) };
}
