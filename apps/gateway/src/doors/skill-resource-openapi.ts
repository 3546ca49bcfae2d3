type Json = Record<string, unknown>;

const text: Json = { type: 'string' };
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
