import { type JsonObject, toJson } from '@bufbuild/protobuf';
import { type Timestamp, timestampDate, ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  type Skill,
  type SkillDraft,
  SkillDraftSchema,
  type SkillParameter,
  SkillScope,
  SkillStatus,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { AgentId, SkillName } from '@etude/contracts/ids';
import { Json } from '@etude/contracts/json';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { z } from 'zod';
import { invalidField, parseField } from '@etude/contracts/wire/validation';
import { decoded } from './rest-request.js';

const AGENT_OBJECT = /^\/instances\/[^/]+\/providers\/[^/]+\/agents\/([^/]+)$/;

/** An agent by "/instances/{instance}/providers/{provider}/agents/{agent}", or by its name alone. */
const AgentObjectId = z
  .string()
  .max(1_000)
  .transform((text) => AGENT_OBJECT.exec(text)?.[1] ?? text)
  .pipe(AgentId);

const Parameter = z
  .strictObject({
    name: z.string(),
    type: z.string().default('str'),
    description: z.string().default(''),
    required: z.boolean().default(true),
    default_value: Json.nullish(),
  })
  // For a required parameter, null means no default. For any other, null may be the default.
  .transform(({ default_value: value, ...said }) =>
    value === undefined || (value === null && said.required) ? said : { ...said, default_value: value },
  );

const Texts = z.array(z.string()).nullish();

/** Fields that the server sets. Values from clients are ignored. */
const DECIDED = [
  'id',
  'type',
  'object_id',
  'execution_count',
  'success_rate',
  'created_on',
  'updated_on',
  'status',
  'status_reason',
] as const;
const decided = Json.optional().meta({ readOnly: true });

/** The fields that an author sets, named as in `SkillDraft`. */
const Said = z.strictObject({
  name: SkillName.optional(),
  display_name: z.string().nullish(),
  description: z.string(),
  code: z.string(),
  example_prompts: Texts,
  parameters: z.array(Parameter).nullish(),
  tags: Texts,
});

const Resource = Said.extend({
  owner_agent_object_id: AgentObjectId.nullish().describe('null: every agent of the tenant; only a reviewer may write that.'),
  version: z.number().int().min(0).optional().describe('In a PUT: the version that was edited; refused with 409 if a newer one exists.'),
  ...Object.fromEntries(DECIDED.map((name) => [name, decided])),
});

/** Fields of a PUT in addition to the resource: tests, and other parts of a draft. */
const MORE = {
  tests: z.array(Json.meta({ $ref: '#/components/schemas/SkillTestCase' })).nullish(),
  category: z.string().nullish(),
  packages: Texts,
  entry_point: z.string().nullish(),
  is_program: z.boolean().nullish(),
  kind: z.string().nullish().describe('"function", "snippet" or "procedure".'),
};
const Put = Resource.extend(MORE);

/** The default number of hits. As in all calls, 0 means the default too. */
const RESULTS = 5;

const Search = z.strictObject({
  query: z.string(),
  agent_object_id: AgentObjectId.nullish(),
  tags: Texts,
  min_similarity: z.number().min(0).max(1).default(0.7),
  max_results: z
    .int()
    .min(0)
    .max(100)
    .default(RESULTS)
    .transform((count) => count || RESULTS),
});

const Query = z.strictObject({ agent_object_id: AgentObjectId.optional() });

function schemaOf(schema: z.ZodType): object {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return described;
}

const SKILL = { $ref: '#/components/schemas/SkillResource' };

/** OpenAPI schemas of requests and answers, made from the schemas that parse them. */
export const resourceSchemas = () => ({
  SkillResource: schemaOf(Resource),
  SkillResources: { type: 'array', items: SKILL },
  SkillResourceHits: { type: 'array', items: { type: 'object', properties: { skill: SKILL, similarity: { type: 'number' } } } },
  SkillResourceWrite: schemaOf(Put),
  SkillResourceSearch: schemaOf(Search),
});

interface ResourceWrite {
  readonly draft: SkillDraft;
  /** The version that was edited; 0: the newest. */
  readonly version: number;
}

/** @throws EtudeError INVALID_ARGUMENT naming the wrong field */
export function resourceWrite(body: JsonObject, name: string): ResourceWrite {
  const { owner_agent_object_id: agent = null, version = 0, ...told } = parsedBody(Put, body);
  if (told.name !== undefined && told.name !== name)
    throw invalidField('name', `must be ${JSON.stringify(name)}, as the path says, but is ${JSON.stringify(told.name)}`);
  const fields = [...Object.keys(Said.shape), ...Object.keys(MORE)] as ReadonlyArray<keyof typeof told>;
  const said = Object.fromEntries(fields.flatMap((field) => (told[field] == null ? [] : [[field, told[field]]]))) as JsonObject;
  const draft = decoded(SkillDraftSchema, { ...said, name, agent: agent ?? '' });
  draft.scope = agent === null ? SkillScope.TENANT : SkillScope.AGENT;
  return { draft, version };
}

/** @throws EtudeError INVALID_ARGUMENT naming the wrong field */
export const resourceSearch = (body: JsonObject) => parsedBody(Search, body);

/** The agent that reads; empty: every agent. @throws EtudeError INVALID_ARGUMENT */
export function readerOf(query: URLSearchParams): string {
  return parsedBody(Query, Object.fromEntries(query)).agent_object_id ?? '';
}

function parsedBody<S extends z.ZodObject>(schema: S, body: JsonObject): z.output<S> {
  const unknown = Object.keys(body).find((key) => !Object.hasOwn(schema.shape, key));
  if (unknown !== undefined)
    throw invalidField(unknown, `is not a field of this call. Its fields are: ${Object.keys(schema.shape).join(', ')}`);
  return parseField(schema, body, '');
}

export interface ResourcePlace {
  readonly instanceId: string;
  /** Such as "Etude.Skill". Its agents have the provider "Etude.Agent". */
  readonly provider: string;
}

const objectId = ({ instanceId, provider }: ResourcePlace, kind: string, name: string) =>
  `/instances/${instanceId}/providers/${provider}/${kind}/${name}`;

/** The object id of the owner; null if the skill is shared. */
function ownerOf(place: ResourcePlace, { scope, agent }: Skill): string | null {
  const provider = `${place.provider.replace(/\.[^.]+$/, '')}.Agent`;
  return scope === SkillScope.AGENT ? objectId({ ...place, provider }, 'agents', agent) : null;
}

/** One id for all versions of a skill of one owner. */
function idOf({ agent, user, name }: Skill): string {
  const hex = contentDigest([agent, user, name]);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}

const time = (at: Timestamp | undefined) => (at === undefined ? null : timestampDate(at).toISOString());

const parameterResource = ({ name, type, description, required, defaultValue }: SkillParameter): JsonObject => ({
  name,
  type,
  description,
  required,
  default_value: defaultValue === undefined ? null : toJson(ValueSchema, defaultValue),
});

/** A skill in snake_case, in the shape that clients of resource providers expect. */
export function skillResource(place: ResourcePlace, skill: Skill): JsonObject {
  const name = skill.name.slice('skills/'.length);
  return {
    id: idOf(skill),
    type: `${place.provider}/skills`,
    name,
    object_id: objectId(place, 'skills', name),
    display_name: skill.displayName || name,
    description: skill.description,
    code: skill.code,
    example_prompts: skill.examplePrompts,
    parameters: skill.parameters.map(parameterResource),
    tags: skill.tags,
    owner_agent_object_id: ownerOf(place, skill),
    execution_count: Number(skill.executionCount),
    success_rate: skill.usedCount === 0n && skill.executionCount === 0n ? 1 : skill.successRate,
    version: skill.version,
    created_on: time(skill.createTime),
    updated_on: time(skill.updateTime),
    status: SkillStatus[skill.status].toLowerCase(),
    status_reason: skill.statusReason,
  };
}
