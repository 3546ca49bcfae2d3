import type { JsonObject } from '@bufbuild/protobuf';
import { fromJson, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { SkillDraftSchema, Skills, SkillScope, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { type Caller, type Door, type Draft, type ReviewDoor, textIn } from './door.js';

const resource = (name: string) => `skills/${name}`;
const named = ({ agent, user = '' }: Caller, name: string) => ({ agent, user, name: resource(name) });
export const statusWord = (status: SkillStatus) => SkillStatus[status].toLowerCase();

/** The draft as JSON of the wire, which REST takes as well. */
export function draftJson({ agent, user = '' }: Caller, { name, description, code, tests }: Draft): JsonObject {
  return { name, agent, user, description, code, tests: tests.map(({ args, expected }) => ({ call: { args, expected } })) };
}

/** A skill that is there and may not be used is an error of the call. */
function refused(error: Error) {
  if (!error.message.includes('FAILED_PRECONDITION')) throw error;
  return { refusal: { success: false, result: undefined, error: error.message, asked: false } };
}

export function grpcDoor(address: string, apiKey: string): Door & ReviewDoor {
  const skills = createServiceClient(Skills, address, { apiKey });
  const tools = createServiceClient(Tools, address, { apiKey });
  return {
    name: 'gRPC',
    async execute({ agent, user = '' }, code) {
      const { success, error, result } = await tools.callTool({ tool: 'execute_code', arguments: { code }, agent, user });
      if (!success) throw new Error(error);
      return textIn(result?.['stdout']);
    },
    async register(caller, draft) {
      const skill = fromJson(SkillDraftSchema, draftJson(caller, draft));
      const { status, statusReason } = await skills.registerSkill({ skill, wait: true }, { timeoutMs: 60_000 });
      return { status: statusWord(status), reason: statusReason };
    },
    async search({ agent, user = '' }, query) {
      const { hits } = await skills.searchSkills({ agent, user, query, minSimilarity: 0.1 });
      return hits.map(({ skill }) => skill?.name.replace('skills/', '') ?? '');
    },
    async use(caller, name, parameters) {
      const used = await skills.useSkill({ ...named(caller, name), parameters }).catch(refused);
      if ('refusal' in used) return used.refusal;
      const { success, result, error, skillRequestSubmitted } = used;
      return { success, error, asked: skillRequestSubmitted, result: result && toJson(ValueSchema, result) };
    },
    async approve(caller, name) {
      const { digest } = await skills.getSkill(named(caller, name));
      await skills.approveSkill({ ...named(caller, name), digest });
    },
    async promote(caller, name) {
      await skills.promoteSkill({ ...named(caller, name), scope: SkillScope.TENANT });
    },
    async rollback(caller, name) {
      return (await skills.rollbackSkill({ ...named(caller, name), reason: 'it did worse' })).version;
    },
    async versions(caller, name) {
      const { skills: found } = await skills.listSkillVersions(named(caller, name));
      return found.map(({ version, status, statusReason }) => ({ version, status: statusWord(status), reason: statusReason }));
    },
    async close() {
      skills.close();
      tools.close();
    },
  };
}
