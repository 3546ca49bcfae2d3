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

export interface ResourceAnswer {
  readonly status: number;
  /** Absent: no body. */
  readonly json?: JsonValue;
}

export interface ResourceRequest {
  /** Path segments by their names in braces. */
  readonly fields: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: JsonObject;
}

/** A route of skill resources: its description in OpenAPI, and its handler. */
export interface ResourceRoute extends Place {
  readonly id: string;
  /** Whether the query may name the reading agent. */
  readonly hasReader?: boolean;
  /** The OpenAPI schema of the body; absent: no body. */
  readonly sends?: 'SkillResourceWrite' | 'SkillResourceSearch';
  readonly answers: Readonly<Record<number, 'SkillResource' | 'SkillResources' | 'SkillResourceHits' | null>>;
  readonly answer: (skills: AskedSkills, request: ResourceRequest) => Promise<ResourceAnswer>;
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

/** The path "search" still names a skill, except for POST. */
export const RESOURCE_ROUTES: readonly ResourceRoute[] = [
  resource('GET', ALL, 'List skills that are not archived', {
    id: 'ListSkillResources',
    hasReader: true,
    answers: { 200: 'SkillResources' },
    answer: (skills, { query }) => skills.list(readerOf(query)),
  }),
  resource('GET', ONE, 'Get a skill', {
    id: 'GetSkillResource',
    hasReader: true,
    answers: { 200: 'SkillResource' },
    answer: async (skills, request) => ({ status: 200, json: skills.shown(await skills.get(nameOf(request), readerOf(request.query))) }),
  }),
  resource('PUT', ONE, 'Create a skill, or a new version of one; answered once it was verified and settled, or after 20 s', {
    id: 'PutSkillResource',
    sends: 'SkillResourceWrite',
    answers: { 200: 'SkillResource', 201: 'SkillResource' },
    answer: (skills, request) => skills.put(nameOf(request), request.body),
  }),
  resource('DELETE', ONE, 'Archive a skill; for reviewers', {
    id: 'DeleteSkillResource',
    hasReader: true,
    answers: { 204: null },
    answer: (skills, request) => skills.archive(nameOf(request), readerOf(request.query)),
  }),
  resource('POST', `${ALL}/search`, 'Search active skills', {
    id: 'SearchSkillResources',
    sends: 'SkillResourceSearch',
    answers: { 200: 'SkillResourceHits' },
    answer: (skills, { body }) => skills.search(body),
  }),
];

/** @throws EtudeError INVALID_ARGUMENT */
const nameOf = ({ fields }: ResourceRequest) => parseField(SkillName, fields['skillName'], 'skillName');

/** Skills as resources of a provider. Requests become calls of `etude.v1.Skills` with the caller's key. */
export class AskedSkills {
  readonly #place: ResourcePlace;

  /**
   * @param provider the provider of this gateway
   * @throws EtudeError NOT_FOUND for another provider
   */
  constructor(
    private readonly skills: Omit<ServiceClient<typeof Skills>, 'close'>,
    private readonly call: CallSettings,
    provider: string,
    { instanceId = '', provider: asked }: ResourceRequest['fields'],
  ) {
    if (asked !== provider)
      throw new EtudeError('NOT_FOUND', `There is no provider ${JSON.stringify(asked)} here; skills are at ${provider}.`);
    this.#place = { instanceId, provider };
  }

  shown(skill: Skill): JsonObject {
    return skillResource(this.#place, skill);
  }

  async list(agent: string): Promise<ResourceAnswer> {
    const json: JsonValue[] = [];
    for (let pageToken = ''; ;) {
      const page = await this.skills.listSkills({ agent, pageSize: PAGE, pageToken }, this.call);
      json.push(...page.skills.map((skill) => this.shown(skill)));
      pageToken = page.nextPageToken;
      if (pageToken === '') return { status: 200, json };
    }
  }

  async search(body: JsonObject): Promise<ResourceAnswer> {
    const { query, agent_object_id: agent, tags, min_similarity: minSimilarity, max_results: maxResults } = resourceSearch(body);
    const asked = { query, agent: agent ?? '', tags: tags ?? [], minSimilarity, maxResults };
    const { hits } = await this.skills.searchSkills(asked, this.call);
    const json = hits.flatMap(({ skill, similarity }) => (skill === undefined ? [] : [{ skill: this.shown(skill), similarity }]));
    return { status: 200, json };
  }

  async archive(name: string, reader: string): Promise<ResourceAnswer> {
    const { name: known, agent, user } = await this.get(name, reader);
    await this.skills.archiveSkill({ name: known, agent, user, reason: 'deleted' }, this.call);
    return { status: 204 };
  }

  /** The active version if there is one, else the newest. @throws EtudeError NOT_FOUND, also for an archived skill */
  async get(name: string, agent: string): Promise<Skill> {
    const newest = await this.skills.getSkill({ name: `skills/${name}`, agent }, this.call);
    const { name: known, agent: owner, user } = newest;
    const { skills: versions } = await this.skills.listSkillVersions({ name: known, agent: owner, user }, this.call);
    const skill = versions.find(({ status }) => status === SkillStatus.ACTIVE) ?? newest;
    if (skill.status !== SkillStatus.ARCHIVED) return skill;
    throw new EtudeError('NOT_FOUND', `There is no skill ${JSON.stringify(name)}; it was deleted.`, { metadata: { name } });
  }

  async put(name: string, body: JsonObject): Promise<ResourceAnswer> {
    const { draft, version: baseVersion } = resourceWrite(body, name);
    const skill = await this.skills.registerSkill({ skill: draft, baseVersion, wait: true }, { ...this.call, timeoutMs: SETTLE_MS });
    return { status: skill.version === 1 ? 201 : 200, json: this.shown(skill) };
  }
}
