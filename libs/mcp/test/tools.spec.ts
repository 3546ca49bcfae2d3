import { describe, expect, it } from 'vitest';
import { FakeGateway, refusal } from './fake-gateway.js';
import { connect, serveHttp, TRANSPORTS } from './served.js';
import { LEGACY, REVISIONS } from './official-client.js';

const each = TRANSPORTS.flatMap((over) => REVISIONS.map((revision) => ({ over, revision })));

describe.each(each)('tools over $over in $revision', ({ over, revision }) => {
  it('negotiates the revision and describes the server', async () => {
    const client = await connect(new FakeGateway(), over, revision);
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    expect(client.getServerVersion()).toMatchObject({ name: 'etude', version: '1.2.3' });
    expect(client.getServerCapabilities()).toMatchObject({
      tools: {},
      resources: {},
      extensions: { 'io.modelcontextprotocol/skills': {} },
    });
    expect(client.getInstructions()).toContain('use_skill');
  });

  it('lists the tools of the gateway with schemas and hints', async () => {
    const client = await connect(new FakeGateway(), over, revision);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['echo', 'hang']);
    expect(tools[0]).toMatchObject({
      title: 'Echo',
      inputSchema: { type: 'object', required: ['text'] },
      outputSchema: { type: 'object', required: ['text'] },
      annotations: { readOnlyHint: true, idempotentHint: true, destructiveHint: false, openWorldHint: false },
    });
  });

  it('returns a result as structured content and as text', async () => {
    const gateway = new FakeGateway();
    const client = await connect(gateway, over, revision);
    const answer = await client.callTool({ name: 'echo', arguments: { text: 'hé' } });
    expect(answer).toMatchObject({ structuredContent: { text: 'hé' }, content: [{ type: 'text', text: '{"text":"hé"}' }] });
    expect(answer.isError ?? false).toBe(false);
    expect(gateway.seen.at(-1)).toMatchObject({ request: { tool: 'echo', agent: 'default', user: '' }, settings: { timeoutMs: 600_000 } });
  });

  it('sends a large result in full only as structured content', async () => {
    const client = await connect(new FakeGateway(), over, revision);
    const large = '"é'.repeat(300_000);
    const { content, structuredContent } = await client.callTool({ name: 'echo', arguments: { text: large } });
    expect(structuredContent).toEqual({ text: large });
    const [part] = content as Array<{ text: string }>;
    expect(part?.text.length).toBeLessThan(100_300);
    expect(part?.text).toMatch(/\[cut: 100000 of \d+ characters; structuredContent holds all of it/);
  });

  it('returns a failed tool as an error that the model can read', async () => {
    const client = await connect(new FakeGateway(), over, revision);
    const missing = await client.callTool({ name: 'echo', arguments: {} });
    expect(missing).toMatchObject({ isError: true, content: [{ text: 'text is missing' }, { text: '{"argument":"text"}' }] });
    const unknown = await client.callTool({ name: 'no_such', arguments: {} });
    expect(unknown).toMatchObject({ isError: true, content: [{ text: "Tool 'no_such' not found" }] });
  });

  it('reports failures that a model can act on as tool errors, others as protocol errors', async () => {
    const gateway = new FakeGateway();
    const client = await connect(gateway, over, revision);
    gateway.refuse = refusal(14, 'No sandbox is free; try again in a moment.');
    const busy = await client.callTool({ name: 'echo', arguments: { text: 'x' } });
    expect(busy).toMatchObject({ isError: true, content: [{ text: 'No sandbox is free; try again in a moment.' }] });
    gateway.refuse = refusal(7, 'This key may not call tools.');
    await expect(client.callTool({ name: 'echo', arguments: { text: 'x' } })).rejects.toThrow('This key may not call tools.');
    await expect(client.request({ method: 'tools/list' })).rejects.toThrow('This key may not call tools.');
  });

  it('sends progress of a long call if the client asks for progress', async () => {
    const gateway = new FakeGateway();
    const client = await connect(gateway, over, revision);
    const heard: number[] = [];
    const gone = new AbortController();
    const onprogress = ({ progress }: { progress: number }) => {
      if (heard.push(progress) === 3) gone.abort();
    };
    await expect(client.callTool({ name: 'hang', arguments: {} }, { signal: gone.signal, onprogress })).rejects.toThrow('aborted');
    expect(heard).toEqual(heard.toSorted((a, b) => a - b));
  });
});

it.each(each.filter(({ over, revision }) => over === 'stdio' || revision !== LEGACY))(
  'forwards a cancellation over $over in $revision',
  async ({ over, revision }) => {
    const gateway = new FakeGateway();
    const client = await connect(gateway, over, revision);
    const gone = new AbortController();
    const call = client.callTool({ name: 'hang', arguments: {} }, { signal: gone.signal });
    await expect.poll(() => gateway.seen.at(-1)?.method).toBe('callTool');
    gone.abort();
    await expect(call).rejects.toThrow('aborted');
    await expect.poll(() => gateway.aborted).toEqual(['hang']);
  },
);

describe('the caller', () => {
  const headers = { 'etude-agent': 'scout', 'etude-user': 'ann', 'etude-session': 'work-1', authorization: 'Bearer k' };

  it.each(REVISIONS)('is read from headers in %s', async (revision) => {
    const gateway = new FakeGateway();
    const client = await connect(gateway, 'http', revision, { headers });
    await client.callTool({ name: 'echo', arguments: { text: 'x' } });
    expect(gateway.seen.at(-1)).toMatchObject({
      request: { agent: 'scout', user: 'ann', session: 'work-1' },
      settings: { metadata: { authorization: 'Bearer k' } },
    });
  });

  it('has one session while a client of the older protocol is connected', async () => {
    const gateway = new FakeGateway();
    const client = await connect(gateway, 'http', '2025-11-25');
    await client.callTool({ name: 'echo', arguments: { text: 'x' } });
    await client.callTool({ name: 'echo', arguments: { text: 'y' } });
    const sessions = gateway.seen.filter(({ method }) => method === 'callTool').map(({ request }) => request['session']);
    expect(sessions[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(sessions[1]).toBe(sessions[0]);
    const other = await connect(gateway, 'http', '2025-11-25');
    await other.callTool({ name: 'echo', arguments: { text: 'z' } });
    expect(gateway.seen.at(-1)?.request['session']).not.toBe(sessions[0]);
  });

  it.each(['etude-agent', 'etude-user', 'etude-session', 'mcp-session-id'])('is refused with a wrong %s', async (name) => {
    const gateway = new FakeGateway();
    const url = await serveHttp(gateway);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
    const sent = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', [name]: '../@tenant' };
    const response = await fetch(url, { method: 'POST', body, headers: sent });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(name);
    expect(gateway.seen).toEqual([]);
  });
});
