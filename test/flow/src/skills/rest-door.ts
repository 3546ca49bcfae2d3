import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { type Caller, type Door, type ReviewDoor, textIn } from './door.js';
import { draftJson } from './grpc-door.js';

const RESOURCES = '/instances/main/providers/Etude.Skill/skills';
const word = (status: JsonValue | undefined) => textIn(status).replace('SKILL_STATUS_', '').toLowerCase();
const query = (caller: Caller) => new URLSearchParams(named(caller)).toString();
const named = ({ agent, user = '' }: Caller) => ({ agent, user });

/** Plain paths, and the resources of `/instances/…/skills` where they have the same. */
export function restDoor(base: string, apiKey: string): Door & ReviewDoor {
  async function ask<T = JsonObject>(method: string, path: string, body?: JsonObject): Promise<T> {
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
    const response = await fetch(`${base}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  }
  return {
    name: 'REST',
    async execute(caller, code) {
      const { success, error, result } = await ask('POST', '/v1/tools/execute_code:call', { arguments: { code }, ...named(caller) });
      if (success !== true) throw new Error(textIn(error));
      return textIn((result as JsonObject)['stdout']);
    },
    async register(caller, draft) {
      const skill = await ask('POST', '/v1/skills', { skill: draftJson(caller, draft), wait: true });
      return { status: word(skill['status']), reason: textIn(skill['status_reason']) };
    },
    async search(caller, text) {
      if (caller.user === undefined) {
        const body = { query: text, agent_object_id: caller.agent, min_similarity: 0.1 };
        const found = await ask<Array<{ skill: { name: string } }>>('POST', `${RESOURCES}/search`, body);
        return found.map(({ skill }) => skill.name);
      }
      const { hits } = await ask('POST', '/v1/skills:search', { query: text, min_similarity: 0.1, ...named(caller) });
      return (hits as Array<{ skill: { name: string } }>).map(({ skill }) => skill.name.replace('skills/', ''));
    },
    async use(caller, name, parameters) {
      const used = await ask('POST', `/v1/skills/${name}:use`, { parameters, ...named(caller) }).catch((error: Error): JsonObject => {
        if (!error.message.includes('FAILED_PRECONDITION')) throw error;
        return { success: false, error: error.message };
      });
      const { success, result, error, skill_request_submitted: asked } = used;
      return {
        success: success === true,
        error: textIn(error),
        asked: asked === true,
        result: result ?? (undefined as JsonValue | undefined),
      };
    },
    async approve(caller, name) {
      const { digest = '' } = await ask('GET', `/v1/skills/${name}?${query(caller)}`);
      await ask('POST', `/v1/skills/${name}:approve`, { digest, ...named(caller) });
    },
    async promote(caller, name) {
      await ask('POST', `/v1/skills/${name}:promote`, { scope: 'SKILL_SCOPE_TENANT', ...named(caller) });
    },
    async rollback(caller, name) {
      return Number((await ask('POST', `/v1/skills/${name}:rollback`, { reason: 'it did worse', ...named(caller) }))['version']);
    },
    async versions(caller, name) {
      const { skills } = await ask('GET', `/v1/skills/${name}/versions?${query(caller)}`);
      return (skills as JsonObject[]).map(({ version, status, status_reason: reason }) => ({
        version: Number(version),
        status: word(status),
        reason: textIn(reason),
      }));
    },
    async close() {},
  };
}
