import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { errorCode, errorDetails, EtudeError } from '@etude/contracts/errors';
import { type Skill, type Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { CallSettings, ServiceClient } from '@etude/contracts/grpc-client';
import { SkillName } from '@etude/contracts/ids';
import { z } from 'zod';
import { parseField } from '../wire/validation.js';
import { readerOf, type ResourcePlace, resourceSearch, resourceWrite, skillResource } from './skill-resource-request.js';

const MIB = 1024 * 1024;
const PAGE = 200;
/** How long a PUT waits for its skill to be verified and settled. */
const SETTLE_MS = 20_000;

const InstanceId = z
  .string()
  .max(128)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must start with a letter or digit and hold only letters, digits, ".", "_" and "-"');

export interface ResourceMatch {
  readonly resource: 'list' | 'one' | 'search';
  readonly verb: string;
  readonly instanceId: string;
  readonly provider: string;
  /** Empty for all of them. */
  readonly name: string;
  readonly bytesMax: number;
}

export interface ResourceAnswer {
  readonly status: number;
  /** Absent: there is no body. */
  readonly json?: JsonValue;
}

interface Told {
  readonly query: URLSearchParams;
  readonly body: JsonObject;
}

const VERBS: Readonly<Record<ResourceMatch['resource'], readonly string[]>> = {
  list: ['GET'],
  one: ['GET', 'PUT', 'DELETE'],
  search: ['POST'],
};
const PATH = /^\/instances\/([^/]+)\/providers\/([^/]+)\/skills(?:\/([^/]+))?$/;

/** null: no such path. "search" is a skill's name too, for every verb but POST. */
export function matchResource(verb: string, path: string): ResourceMatch | { readonly allowed: readonly string[] } | null {
  const found = PATH.exec(path);
  if (found === null) return null;
  const [instance, provider, name] = found.slice(1).map((part: string | undefined) => (part === undefined ? undefined : decoded(part)));
  // A segment that is no text is nothing's name; only one that is not there asks for all.
  if (instance == null || provider == null || name === null) return null;
  const resource = name === undefined ? 'list' : name === 'search' && verb === 'POST' ? 'search' : 'one';
  if (!VERBS[resource].includes(verb)) return { allowed: VERBS[resource] };
  const place = { resource, verb, instanceId: instance, provider, name: name ?? '' } as const;
  return { ...place, bytesMax: verb === 'PUT' ? 4 * MIB : MIB };
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}

/**
 * Skills as resources of a provider: `/instances/{instanceId}/providers/{provider}/skills`. Each request becomes calls of
 * `etude.v1.Skills` with the caller's key.
 */
export class SkillResources {
  constructor(
    readonly provider: string,
    private readonly skills: Omit<ServiceClient<typeof Skills>, 'close'>,
  ) {}

  /** @throws EtudeError NOT_FOUND, INVALID_ARGUMENT; whatever the calls are refused with */
  async answer(match: ResourceMatch, told: Told, call: CallSettings): Promise<ResourceAnswer> {
    if (match.provider !== this.provider) {
      throw new EtudeError('NOT_FOUND', `There is no provider ${JSON.stringify(match.provider)} here; skills are at ${this.provider}.`);
    }
    const place = { instanceId: parseField(InstanceId, match.instanceId, 'instanceId'), provider: this.provider };
    if (match.resource === 'list') return { status: 200, json: await this.#list(place, told.query, call) };
    if (match.resource === 'search') return { status: 200, json: await this.#search(place, told.body, call) };
    const name = parseField(SkillName, match.name, 'skillName');
    if (match.verb === 'PUT') return this.#put(place, name, told.body, call);
    const agent = readerOf(told.query);
    if (match.verb === 'DELETE') {
      const known = await this.#get(name, agent, call);
      await this.skills.archiveSkill({ name: known.name, agent: known.agent, user: known.user, reason: 'deleted' }, call);
      return { status: 204 };
    }
    return { status: 200, json: skillResource(place, await this.#get(name, agent, call)) };
  }

  async #list(place: ResourcePlace, query: URLSearchParams, call: CallSettings): Promise<JsonValue> {
    const agent = readerOf(query);
    const found: JsonValue[] = [];
    for (let pageToken = ''; ;) {
      const page = await this.skills.listSkills({ agent, pageSize: PAGE, pageToken }, call);
      found.push(...page.skills.map((skill) => skillResource(place, skill)));
      pageToken = page.nextPageToken;
      if (pageToken === '') return found;
    }
  }

  async #search(place: ResourcePlace, body: JsonObject, call: CallSettings): Promise<JsonValue> {
    const { query, agent_object_id: agent, tags, min_similarity: minSimilarity, max_results: maxResults } = resourceSearch(body);
    const asked = { query, agent: agent ?? '', tags: tags ?? [], minSimilarity, maxResults };
    const { hits } = await this.skills.searchSkills(asked, call);
    return hits.flatMap(({ skill, similarity }) => (skill === undefined ? [] : [{ skill: skillResource(place, skill), similarity }]));
  }

  /** Of those that are not archived. @throws a refusal NOT_FOUND */
  async #get(name: string, agent: string, call: CallSettings): Promise<Skill> {
    const skill = await this.#shown(await this.skills.getSkill({ name: `skills/${name}`, agent }, call), call);
    if (skill.status !== SkillStatus.ARCHIVED) return skill;
    throw new EtudeError('NOT_FOUND', `There is no skill ${JSON.stringify(name)}; it was deleted.`, { metadata: { name } });
  }

  /** The version that is in use, where there is one: what is waiting changes nothing yet. */
  async #shown(newest: Skill, call: CallSettings): Promise<Skill> {
    if (newest.status === SkillStatus.ACTIVE || newest.version === 1) return newest;
    const { name, agent, user } = newest;
    const { skills } = await this.skills.listSkillVersions({ name, agent, user }, call);
    return skills.find(({ status: state }) => state === SkillStatus.ACTIVE) ?? newest;
  }

  async #put(place: ResourcePlace, name: string, body: JsonObject, call: CallSettings): Promise<ResourceAnswer> {
    const { draft, agent, version } = resourceWrite(body, name);
    const known = await this.#newest(name, agent ?? '@tenant', call);
    const baseVersion = known === null ? 0 : await this.#baseOf(known, version ?? 0, call);
    try {
      const skill = await this.skills.registerSkill({ skill: draft, baseVersion, wait: true }, { ...call, timeoutMs: SETTLE_MS });
      return { status: known === null ? 201 : 200, json: skillResource(place, skill) };
    } catch (error) {
      throw staleVersion(error) ?? error;
    }
  }

  /** The newest where what was edited is shown and all that came after it was rejected: nobody can read that here, or loses it. */
  async #baseOf(newest: Skill, edited: number, call: CallSettings): Promise<number> {
    if (newest.status !== SkillStatus.REJECTED || edited === 0 || edited === newest.version) return edited;
    const { name, agent, user } = newest;
    const { skills } = await this.skills.listSkillVersions({ name, agent, user }, call);
    const isShown = skills.some(({ version, status: state }) => version === edited && state === SkillStatus.ACTIVE);
    const later = skills.filter(({ version }) => version > edited && version <= newest.version);
    return isShown && later.every(({ status: state }) => state === SkillStatus.REJECTED) ? newest.version : edited;
  }

  /** Nobody's in particular, as all that is put: a reviewer's key reads those of users as well. */
  async #newest(name: string, agent: string, call: CallSettings): Promise<Skill | null> {
    try {
      const skill = await this.skills.getSkill({ name: `skills/${name}`, agent }, call);
      return skill.agent === agent && skill.user === '' ? skill : null;
    } catch (error) {
      // Several users have one then, and nobody in particular has.
      if (errorCode(error) === 'FAILED_PRECONDITION' || errorCode(error) === 'NOT_FOUND') return null;
      throw error;
    }
  }
}

/** A stale edit, by the field in which a resource says what was edited; null for what is none. */
function staleVersion(error: unknown): EtudeError | null {
  const { violations = [], field } = errorDetails(error);
  const fields = field === undefined ? violations : [{ field, description: (error as Error).message }];
  if (errorCode(error) !== 'ABORTED' || !fields.some((one) => one.field === 'base_version')) return null;
  const ofResource = fields.map((one) => (one.field === 'base_version' ? { ...one, field: 'version' } : one));
  return new EtudeError('ABORTED', (error as Error).message, { violations: ofResource });
}
