import { once } from 'node:events';
import { request } from 'node:http';
import { MODERN } from '@etude/mcp/testing/official-client';
import { freePort } from '@etude/test-support/ports';
import { describe, expect, it } from 'vitest';
import { gatewayForFile, GatewayRig, KEYS } from './gateway.harness.js';

const port = await freePort();
gatewayForFile({ ETUDE_MCP_PORT: String(port), ETUDE_MCP_ALLOWED_ORIGINS: 'https://console.example.org' });

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

const HEADERS = {
  authorization: `Bearer ${KEYS.acme}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
};
const PING = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });

/** Sends a request with any headers, also those that `fetch` refuses to send. */
async function ask(
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
  { method = 'POST', path = '/mcp' } = {},
): Promise<Answer> {
  const sent = request({ host: '127.0.0.1', port, path, method, headers: { ...HEADERS, ...headers }, agent: false });
  sent.end(method === 'GET' ? undefined : body);
  // The server may stop reading a refused request.
  sent.on('error', () => undefined);
  const [answer] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
  let text = '';
  for await (const part of answer) text += String(part);
  return { status: answer.statusCode ?? 0, headers: answer.headers, text };
}

describe('MCP over HTTP', () => {
  it.each([
    ['no key', { authorization: '' }],
    ['a wrong key', { authorization: 'Bearer guessed' }],
    ['two keys', { authorization: `Bearer ${KEYS.acme}, Bearer ${KEYS.ops}` }],
  ])('refuses %s with a challenge', async (_what, headers) => {
    const answer = await ask(PING, headers);
    expect(answer).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } });
    expect(JSON.parse(answer.text)).toMatchObject({ jsonrpc: '2.0', id: null });
  });

  it.each(['https://evil.example', 'null', 'https://console.example.org.evil.example', 'http://console.example.org'])(
    'refuses the website %s',
    async (origin) => {
      const answer = await ask(PING, { origin });
      expect(answer.status).toBe(403);
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    },
  );

  it('answers a website in the settings', async () => {
    expect(await ask(PING, { origin: 'https://console.example.org' })).toMatchObject({ status: 200 });
  });

  it.each(['evil.example:80', 'localhost.evil.example', 'localhost@evil.example'])(
    'refuses the host name %j (DNS rebinding)',
    async (host) => {
      expect(await ask(PING, { host })).toMatchObject({ status: 403 });
    },
  );

  it.each(['LOCALHOST:1', '[::1]:80'])('answers to %s', async (host) => {
    expect(await ask(PING, { host })).toMatchObject({ status: 200 });
  });

  it('answers one path and one verb', async () => {
    expect(await ask(PING, {}, { path: '/' })).toMatchObject({ status: 404 });
    expect(await ask(PING, {}, { path: '/.well-known/oauth-protected-resource', method: 'GET' })).toMatchObject({ status: 404 });
    expect(await ask('', {}, { method: 'GET' })).toMatchObject({ status: 405, headers: { allow: 'POST' } });
  });
});

describe('a request body', () => {
  it.each([
    ['empty', '', 400],
    ['half a message', '{"jsonrpc":"2.0",', 400],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 400],
    ['no JSON-RPC version', '{"id":1,"method":"tools/list"}', 400],
    ['a batch', `[${PING},${PING}]`, 400],
    ['deep nesting', `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${'['.repeat(100_000)}`, 400],
  ])('is refused: %s', async (_what, body, status) => {
    const answer = await ask(body);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toMatchObject({ jsonrpc: '2.0', error: { code: expect.any(Number) as number } });
  });

  it('is refused with another content type than JSON', async () => {
    expect(await ask(PING, { 'content-type': 'text/plain' })).toMatchObject({ status: 400 });
  });

  it('is refused above four MiB, with and without a content length', async () => {
    const huge = Buffer.alloc(5 * 1024 * 1024, ' ');
    expect(await ask(huge, { 'content-length': String(huge.length) })).toMatchObject({ status: 413 });
    expect(await ask(huge, { 'transfer-encoding': 'chunked' })).toMatchObject({ status: 413 });
  });
});

it('stopping the gateway ends open streams of clients', async () => {
  const other = new GatewayRig();
  const mcpPort = await freePort();
  await other.start({ ETUDE_MCP_PORT: String(mcpPort) });
  const meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { _meta: meta, notifications: { resourcesListChanged: true } };
  const answer = await fetch(`http://127.0.0.1:${mcpPort}/mcp`, {
    method: 'POST',
    headers: { ...HEADERS, 'mcp-protocol-version': MODERN, 'mcp-method': 'subscriptions/listen' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params }),
  });
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  const over = answer.text().catch(() => 'cut');
  await other.stop();
  expect(typeof (await over)).toBe('string');
});
