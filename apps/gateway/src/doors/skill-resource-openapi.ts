type Json = Record<string, unknown>;

const text: Json = { type: 'string' };
const texts: Json = { type: 'array', items: text };
const count = (from: number): Json => ({ type: 'integer', minimum: from });
const time: Json = { type: 'string', format: 'date-time', readOnly: true };
const reference = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: Json): Json => ({ 'application/json': { schema } });
const parameter = (name: string, where: 'path' | 'query', description: string): Json => ({
  name,
  in: where,
  required: where === 'path',
  description,
  schema: text,
});

const INSTANCE = parameter('instanceId', 'path', 'Any id; it is given back in object_id.');
const NAME = parameter('skillName', 'path', 'Small letters, digits and "_".');
const AGENT = parameter('agent_object_id', 'query', 'Who reads: what is theirs and what is shared. Without it, every agent of the tenant.');
const FAILED: Json = { default: { description: 'It did not.', content: json(reference('Error')) } };

interface Operation {
  readonly id: string;
  readonly summary: string;
  readonly status: number;
  readonly parameters: readonly Json[];
  readonly body?: Json;
  readonly answer?: Json;
}

function operation({ id, summary, status, parameters, body, answer }: Operation): Json {
  return {
    operationId: id,
    summary,
    parameters: [INSTANCE, ...parameters],
    ...(body === undefined ? {} : { requestBody: { required: true, content: json(body) } }),
    responses: { [status]: { description: 'It worked.', ...(answer === undefined ? {} : { content: json(answer) }) }, ...FAILED },
  };
}

/** The routes of skills as resources of this provider. */
export function resourcePaths(provider: string): Record<string, Json> {
  const skill = reference('SkillResource');
  const root = `/instances/{instanceId}/providers/${provider}/skills`;
  const put = operation({
    id: 'PutSkillResource',
    summary: 'Create a skill, or a new version of one; answered once it was verified and settled, or after 20 s',
    status: 200,
    parameters: [NAME],
    body: reference('SkillResourceWrite'),
    answer: skill,
  });
  const created = { 201: { description: 'There was none of this name.', content: json(skill) } };
  return {
    [root]: {
      get: operation({
        id: 'ListSkillResources',
        summary: 'List skills that are not archived',
        status: 200,
        parameters: [AGENT],
        answer: { type: 'array', items: skill },
      }),
    },
    [`${root}/{skillName}`]: {
      get: operation({ id: 'GetSkillResource', summary: 'Get a skill', status: 200, parameters: [NAME, AGENT], answer: skill }),
      put: { ...put, responses: { ...created, ...(put['responses'] as Json) } },
      delete: operation({ id: 'DeleteSkillResource', summary: 'Archive a skill; for reviewers', status: 204, parameters: [NAME, AGENT] }),
    },
    [`${root}/search`]: {
      post: operation({
        id: 'SearchSkillResources',
        summary: 'Search active skills',
        status: 200,
        parameters: [],
        body: reference('SkillResourceSearch'),
        answer: { type: 'array', items: { type: 'object', properties: { skill, similarity: { type: 'number' } } } },
      }),
    },
  };
}

const PARAMETER: Json = {
  type: 'object',
  required: ['name'],
  properties: {
    name: text,
    type: { ...text, default: 'str' },
    description: text,
    required: { type: 'boolean', default: true },
    default_value: {},
  },
};

const WRITTEN: Json = {
  name: text,
  display_name: text,
  description: text,
  code: text,
  example_prompts: texts,
  parameters: { type: 'array', items: PARAMETER },
  tags: texts,
  owner_agent_object_id: { type: ['string', 'null'], description: 'null: every agent of the tenant; writing that is for reviewers.' },
  version: { ...count(1), description: 'In a PUT: which version was edited; refused with 409 where there is a newer one.' },
};

export function resourceSchemas(provider: string): Record<string, Json> {
  const statuses = ['candidate', 'verified', 'pending_review', 'active', 'deprecated', 'archived', 'rejected'];
  const decided: Json = {
    id: { ...text, readOnly: true },
    type: { ...text, readOnly: true, const: `${provider}/skills` },
    object_id: { ...text, readOnly: true },
    execution_count: { ...count(0), readOnly: true, description: 'Successful executions.' },
    success_rate: { type: 'number', readOnly: true, description: '1.0 before any use.' },
    created_on: time,
    updated_on: time,
    status: { ...text, readOnly: true, enum: statuses },
    status_reason: { ...text, readOnly: true },
  };
  const more: Json = {
    tests: { type: 'array', items: reference('SkillTestCase') },
    category: text,
    packages: texts,
    entry_point: text,
    is_program: { type: 'boolean' },
    kind: { ...text, enum: ['function', 'snippet', 'procedure'] },
  };
  return {
    SkillResource: { type: 'object', properties: { ...WRITTEN, ...decided } },
    SkillResourceWrite: { type: 'object', required: ['description', 'code'], properties: { ...WRITTEN, ...more, ...decided } },
    SkillResourceSearch: {
      type: 'object',
      required: ['query'],
      properties: {
        query: text,
        agent_object_id: { type: ['string', 'null'] },
        tags: texts,
        min_similarity: { type: 'number', minimum: 0, maximum: 1, default: 0.7 },
        max_results: { ...count(0), maximum: 100, default: 5 },
      },
    },
  };
}
