import { createHash } from 'node:crypto';
import { type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf';
import { type Timestamp, timestampDate, ValueSchema } from '@bufbuild/protobuf/wkt';
import { type Skill, type SkillParameter, SkillScope, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';

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
