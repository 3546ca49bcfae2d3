import type { JsonObject } from '@bufbuild/protobuf';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { freePort } from '@etude/test-support/ports';
import { beforeAll, describe, expect, it } from 'vitest';
import { KEYS } from './gateway.harness.js';
import { skillsForFile } from './skill-workers.js';

const agent = 'coder';
interface Answered {
  readonly result?: unknown;
  readonly error?: string | { readonly code: number | string; readonly message: string };
  readonly id?: unknown;
}

let rest = '';
let mcp = '';
const rig = skillsForFile(async () => {
  const [restPort, mcpPort] = [await freePort(), await freePort()];
  rest = `http://127.0.0.1:${restPort}`;
  mcp = `http://127.0.0.1:${mcpPort}/mcp`;
  return { ETUDE_REST_PORT: String(restPort), ETUDE_MCP_PORT: String(mcpPort), ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-this-test' };
});

const HEADERS = { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Sends a body without changes. */
async function post(url: string, body: string, more: Readonly<Record<string, string>> = {}) {
  const response = await fetch(url, { method: 'POST', body, headers: { ...HEADERS, ...more } });
  const text = await response.text();
  const data = text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? '{}');
  return { status: response.status, body: JSON.parse(data) as Answered };
}

const wordsOf = ({ error = '' }: Answered) => (typeof error === 'string' ? error : error.message);

interface CallToolResult {
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly content: ReadonlyArray<{ readonly text: string }>;
}

interface Outcome {
  readonly error: string;
  readonly result: unknown;
}

/** Calls a tool over each protocol, with arguments as JSON text. */
const WIRES: Readonly<Record<string, (tool: string, args: string, session: string) => Promise<Outcome>>> = {
  async gRPC(tool, args, session) {
    const request = { tool, arguments: JSON.parse(args) as never, agent, session };
    const { error, result } = await rig.client(Tools).callTool(request);
    return { error, result };
  },
  async REST(tool, args, session) {
    const { body } = await post(`${rest}/v1/tools/${tool}:call`, `{"arguments":${args},"agent":"${agent}","session":"${session}"}`);
    return { error: wordsOf(body), result: body.result };
  },
  async MCP(tool, args, session) {
    const body = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"${tool}","arguments":${args}}}`;
    const answer = (await post(mcp, body, { 'etude-agent': agent, 'etude-session': session })).body;
    const { structuredContent: result, isError, content } = (answer.result ?? {}) as CallToolResult;
    return { error: isError === true ? (content[0]?.text ?? '') : wordsOf(answer), result };
  },
};
const overEach = Object.entries(WIRES);

/** A skill that returns its argument, and the text that Python writes for that argument. */
const ECHO = `def echo(value: object, large: bool = False) -> object:
    """Gives back what it is given, and how Python writes it."""
    if large:
        return {"__proto__": {"n": 2 ** 60}, "t": "a\\ud800"}
    return [value, repr(value)]
`;

beforeAll(async () => {
  const examples: JsonObject[] = [{ args: ['a'] }, { args: [{ b: [1, null] }] }, { args: [''], kwargs: { large: true } }];
  const registered = await rig.client(Tools).callTool({
    tool: 'register_skill',
    agent,
    arguments: { name: 'echo', description: 'Gives back what it is given.', code: ECHO, examples },
  });
  if (registered.result?.['status'] !== 'registered') throw new Error(JSON.stringify(registered));
});

describe.each(overEach)('values over %s', (_wire, use) => {
  it('reach skills with every key, and results name numbers that are sent as text', async () => {
    const given = await use('use_skill', '{"skill_id":"echo","parameters":{"value":{"__proto__":{"a":9007199254740992}}}}', 'default');
    expect(given.error).toBe('');
    expect(JSON.stringify((given.result as { result: unknown }).result)).toBe(
      `[{"__proto__":{"a":9007199254740992}},"{'__proto__': {'a': 9007199254740992}}"]`,
    );
    expect(given.result).not.toHaveProperty('note');
    for (const [tool, name, args] of [
      ['use_skill', 'skill_id', 'parameters'],
      ['code_interpreter', 'skill_name', 'skill_parameters'],
    ] as const) {
      const more = tool === 'use_skill' ? {} : { prompt: 'x', operation: 'use_skill' };
      const large = await use(tool, JSON.stringify({ ...more, [name]: 'echo', [args]: { value: 1, large: true } }), 'default');
      expect(JSON.stringify(large.result)).toContain(String.raw`{"__proto__":{"n":"1152921504606846976"},"t":"a\\ud800"}`);
      expect(large.result).toMatchObject({ note: expect.stringContaining('whole numbers beyond 2^53') as string });
    }
  });
});

it.each([
  ['9007199254740993', /"value": 9007199254740993 is beyond the numbers that are kept exactly; send it as a text/],
  ['"\\ud800"', /half of a surrogate pair/],
])('values that JSON can write but a number can not hold are refused instead of changed over REST and MCP: %s', async (value, message) => {
  const args = `{"skill_id":"echo","parameters":{"value":${value}}}`;
  for (const [wire, use] of overEach.filter(([name]) => name !== 'gRPC'))
    expect({ wire, ...(await use('use_skill', args, 'default')) }).toMatchObject({ wire, error: expect.stringMatching(message) });
  const direct = await post(`${rest}/v1/skills/echo:use`, `{"agent":"${agent}","parameters":{"value":${value}}}`);
  expect(direct).toMatchObject({ status: 400, body: { error: { code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) } } });
});
