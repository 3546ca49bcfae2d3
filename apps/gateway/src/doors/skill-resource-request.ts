import { createHash } from 'node:crypto';
import { fromJson, type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf';
import { type Timestamp, timestampDate, ValueSchema } from '@bufbuild/protobuf/wkt';
import { EtudeError } from '@etude/contracts/errors';
import {
  type Skill,
  type SkillDraft,
  SkillDraftSchema,
  type SkillParameter,
  SkillScope,
  SkillStatus,
  SkillStatusSchema,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { AgentId, SkillName } from '@etude/contracts/ids';
import { Json } from '@etude/contracts/json';
import { z } from 'zod';
import { parseField } from '../wire/validation.js';

const AGENT_OBJECT = /^\/instances\/[^/]+\/providers\/[^/]+\/agents\/([^/]+)$/;

/** "/instances/{instance}/providers/{provider}/agents/{agent}", or the agent's name alone. */
const AgentObjectId = z
  .string()
  .max(1_000)
  .transform((text) => AGENT_OBJECT.exec(text)?.[1] ?? text)
  .pipe(AgentId);

const Parameter = z.strictObject({
  name: z.string(),
  type: z.string().default('str'),
  description: z.string().default(''),
  required: z.boolean().default(true),
  default_value: Json.nullish(),
});

const Texts = z.array(z.string()).nullish();

/** A field that the server decides: whatever a client sends in it is ignored. */
const decided = (described: Readonly<Record<string, unknown>>) => Json.optional().meta({ ...described, readOnly: true });
const DECIDED_TIME = decided({ type: 'string', format: 'date-time' });

/** The fields of a skill as a resource. */
const Resource = z.strictObject({
  name: SkillName.optional(),
  display_name: z.string().nullish(),
  description: z.string(),
  code: z.string(),
  example_prompts: Texts,
  parameters: z.array(Parameter).nullish(),
  tags: Texts,
  owner_agent_object_id: AgentObjectId.nullish().describe('null: every agent of the tenant; only a reviewer may write that.'),
  version: z.number().int().min(0).optional().describe('In a PUT: the version that was edited; refused with 409 if a newer one exists.'),
  id: decided({ type: 'string' }),
  type: decided({ type: 'string' }),
  object_id: decided({ type: 'string' }),
  execution_count: decided({ type: 'integer', description: 'Successful executions.' }),
  success_rate: decided({ type: 'number', description: '1.0 before any use.' }),
  created_on: DECIDED_TIME,
  updated_on: DECIDED_TIME,
  status: decided({ type: 'string', enum: SkillStatusSchema.values.slice(1).map(({ localName }) => localName.toLowerCase()) }),
  status_reason: decided({ type: 'string' }),
});

/** What a client may send: the whole resource, how it is verified, and what else an author may say. */
const Put = Resource.extend({
  tests: z.array(Json.meta({ $ref: '#/components/schemas/SkillTestCase' })).nullish(),
  category: z.string().nullish(),
  packages: Texts,
  entry_point: z.string().nullish(),
  is_program: z.boolean().nullish(),
  kind: z.string().nullish().describe('"function", "snippet" or "procedure".'),
});

/** How many are found where nobody says, or says 0, as in every other call. */
const RESULTS = 5;

const Search = z.strictObject({
  query: z.string(),
  agent_object_id: AgentObjectId.nullish(),
  tags: Texts,
  min_similarity: z.number().min(0).max(1).default(0.7),
  max_results: z
    .number()
    .int()
    .min(0)
    .max(100)
    .default(RESULTS)
    .transform((count) => (count === 0 ? RESULTS : count)),
});

const Query = z.strictObject({ agent_object_id: AgentObjectId.optional() });

function schemaOf(schema: z.ZodType): object {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return described;
}

/** The schemas of requests and answers for OpenAPI, from what parses them. */
export const resourceSchemas = () => ({
  SkillResource: schemaOf(Resource),
  SkillResourceWrite: schemaOf(Put),
  SkillResourceSearch: schemaOf(Search),
});

export interface ResourceWrite {
  readonly draft: SkillDraft;
  /** Whose it will be; null: every agent's of the tenant. */
  readonly agent: string | null;
  readonly version: number | undefined;
}

/** @throws EtudeError INVALID_ARGUMENT naming the fields */
export function resourceWrite(body: JsonObject, name: string): ResourceWrite {
  const told = parsedBody(Put, body);
  if (told.name !== undefined && told.name !== name)
    throw parseProblem('name', `must be ${JSON.stringify(name)}, as the path says; it is ${JSON.stringify(told.name)}`);
  const agent = told.owner_agent_object_id ?? null;
  const json: JsonObject = {
    name,
    agent: agent ?? '',
    displayName: told.display_name ?? '',
    description: told.description,
    code: told.code,
    kind: told.kind ?? '',
    entryPoint: told.entry_point ?? '',
    isProgram: told.is_program ?? false,
    parameters: (told.parameters ?? []).map(parameterJson),
    tests: told.tests ?? [],
    tags: told.tags ?? [],
    category: told.category ?? '',
    examplePrompts: told.example_prompts ?? [],
    packages: told.packages ?? [],
  };
  const draft = draftOf(json);
  draft.scope = agent === null ? SkillScope.TENANT : SkillScope.AGENT;
  return { draft, agent, version: told.version };
}

function parameterJson({ default_value: value, ...parameter }: z.output<typeof Parameter>): JsonObject {
  return { ...parameter, ...(value === undefined || (value === null && parameter.required) ? {} : { defaultValue: value }) };
}

function draftOf(json: JsonObject): SkillDraft {
  try {
    return fromJson(SkillDraftSchema, json);
  } catch (error) {
    const said = error instanceof Error ? error.message.replace(/^cannot decode message \S+ from JSON: /, '') : String(error);
    throw new EtudeError('INVALID_ARGUMENT', `The request is wrong: ${said}`);
  }
}

/** @throws EtudeError INVALID_ARGUMENT naming the fields */
export const resourceSearch = (body: JsonObject) => parsedBody(Search, body);

/** The agent that reads; empty: every agent. @throws EtudeError INVALID_ARGUMENT */
export function readerOf(query: URLSearchParams): string {
  return parsedBody(Query, Object.fromEntries(query)).agent_object_id ?? '';
}

function parsedBody<S extends z.ZodType>(schema: S, body: JsonObject): z.output<S> {
  const unknown = schema instanceof z.ZodObject ? Object.keys(body).filter((key) => !Object.hasOwn(schema.shape, key)) : [];
  const known = schema instanceof z.ZodObject ? Object.keys(schema.shape).join(', ') : '';
  if (unknown[0] !== undefined) throw parseProblem(unknown[0], `is no field of this call; it has: ${known}`);
  return parseField(schema, body, '');
}

function parseProblem(field: string, description: string): EtudeError {
  return new EtudeError('INVALID_ARGUMENT', `The request is wrong. ${field}: ${description}`, { violations: [{ field, description }] });
}

/** A skill in the shape that clients of resource providers know, in snake_case. */
export interface SkillResource extends JsonObject {
  readonly object_id: string;
}

export interface ResourcePlace {
  readonly instanceId: string;
  readonly provider: string;
}

/** "Etude.Skill" has the agents of "Etude.Agent". */
const agentProvider = (provider: string) => provider.replace(/\.[^.]+$/, '') + '.Agent';

export function skillObjectId({ instanceId, provider }: ResourcePlace, name: string): string {
  return `/instances/${instanceId}/providers/${provider}/skills/${name}`;
}

export function agentObjectId({ instanceId, provider }: ResourcePlace, agent: string): string {
  return `/instances/${instanceId}/providers/${agentProvider(provider)}/agents/${agent}`;
}

/** The same for the same skill of the same owner, whichever version. */
function idOf({ agent, user, name }: Skill): string {
  const hex = createHash('sha256')
    .update(JSON.stringify([agent, user, name]))
    .digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}

const time = (at: Timestamp | undefined) => (at === undefined ? null : timestampDate(at).toISOString());

function parameterResource({ name, type, description, required, defaultValue }: SkillParameter): JsonObject {
  const value: JsonValue = defaultValue === undefined ? null : toJson(ValueSchema, defaultValue);
  return { name, type, description, required, default_value: value };
}

/** null: every agent of the tenant reads it, or more. */
const ownerOf = (place: ResourcePlace, { scope, agent }: Skill) => (scope === SkillScope.AGENT ? agentObjectId(place, agent) : null);

export function skillResource(place: ResourcePlace, skill: Skill): SkillResource {
  const name = skill.name.slice('skills/'.length);
  return {
    id: idOf(skill),
    type: `${place.provider}/skills`,
    name,
    object_id: skillObjectId(place, name),
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
