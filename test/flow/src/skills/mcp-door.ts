import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { connectHttp, MODERN, type OfficialClient } from '@etude/mcp/testing/official-client';
import { type Caller, type Door, textIn } from './door.js';

/** What `register_skill` says, in the registry's words. */
const STATUSES: Readonly<Record<string, string>> = { registered: 'active' };

/** The protocol's own client, one connection for each caller. */
export function mcpDoor(url: URL, apiKey: string): Door {
  const connected = new Map<string, Promise<OfficialClient>>();
  const clientOf = ({ agent, user }: Caller) => {
    const key = `${agent} ${user ?? ''}`;
    const headers = { authorization: `Bearer ${apiKey}`, 'etude-agent': agent, ...(user === undefined ? {} : { 'etude-user': user }) };
    const known = connected.get(key) ?? connectHttp(url, MODERN, headers);
    connected.set(key, known);
    return known;
  };
  async function call(caller: Caller, name: string, args: JsonObject): Promise<{ failed: boolean; text: string; told: JsonObject }> {
    const { client } = await clientOf(caller);
    const answer = await client.callTool({ name, arguments: args });
    const [text = '', more = '{}'] = answer.content.map((part) => (part.type === 'text' ? part.text : ''));
    // What failed says why in words first, and behind them what else there is to know.
    const told = (answer.structuredContent ?? JSON.parse(more)) as JsonObject;
    return { failed: answer.isError === true, text, told };
  }
  return {
    name: 'MCP',
    async execute(caller, code) {
      const { failed, text, told } = await call(caller, 'execute_code', { code });
      if (failed) throw new Error(text);
      return textIn(told['stdout']);
    },
    async register(caller, { tests, ...draft }) {
      const { failed, text, told } = await call(caller, 'register_skill', { ...draft, tests: tests.map((test) => ({ ...test })) });
      if (failed) throw new Error(text);
      const status = textIn(told['status']);
      return { status: STATUSES[status] ?? status, reason: textIn(told['reason']) };
    },
    async search(caller, query) {
      const { told } = await call(caller, 'search', { query, min_similarity: 0.1 });
      return (told['skills'] as Array<{ name: string }>).map(({ name }) => name);
    },
    async use(caller, name, parameters) {
      const { failed, text, told } = await call(caller, 'use_skill', { skill_id: name, parameters });
      return {
        success: !failed,
        result: told['result'] as JsonValue | undefined,
        error: failed ? text : '',
        asked: told['skill_request_submitted'] === true,
      };
    },
    async close() {
      for (const client of connected.values()) await (await client).close();
    },
  };
}
