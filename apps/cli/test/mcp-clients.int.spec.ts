import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createMcpHttp, type McpHttp } from '@etude/mcp/http';
import { manifest } from '@etude/mcp/testing/fake-gateway';
import { type McpGateway, startMcpGateway } from '@etude/mcp/testing/mcp-gateway';
import { LEGACY, MODERN } from '@etude/mcp/testing/official-client';
import { askWithPython, type McpPlace, pythonMcpClient } from '@etude/test-support/mcp-clients';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from './etude.js';

const python = await pythonMcpClient().catch((error: Error) => {
  console.log(`The Python client of MCP could not be installed, so its tests are skipped: ${error.message}`);
  return null;
});

let gateway: McpGateway;
let mcp: McpHttp;
let server: Server;

beforeAll(async () => {
  gateway = await startMcpGateway();
  gateway.fake.held = [
    { name: 'add_up', version: 2, files: { 'SKILL.md': manifest('add-up', 'Adds numbers'), 'scripts/main.py': 'x = 1\n' } },
  ];
  mcp = createMcpHttp(gateway.fake, { version: '1.2.3', onError: () => undefined, onUnfit: () => undefined });
  server = createServer((request, response) => {
    text(request)
      .then((body) => mcp.handle(request, response, body === '' ? undefined : (JSON.parse(body) as unknown)))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await mcp.close();
  server.closeAllConnections();
  server.close();
  await gateway.stop();
});

const places: ReadonlyArray<{ over: string; place: () => McpPlace }> = [
  {
    over: 'HTTP',
    place: () => ({
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
      headers: { authorization: 'Bearer k', 'etude-agent': 'scout' },
    }),
  },
  {
    over: 'stdio',
    place: () => ({
      command: process.execPath,
      args: [`${ROOT}apps/cli/dist/main.js`, 'mcp', '--address', gateway.address, '--agent', 'scout'],
      env: { ETUDE_API_KEY: 'k', PATH: process.env['PATH'] ?? '' },
    }),
  },
];

const CALLS = [
  { method: 'tools/list' },
  { method: 'tools/call', params: { name: 'echo', arguments: { text: 'hi' } } },
  { method: 'tools/call', params: { name: 'echo', arguments: {} } },
  { method: 'skills/list', params: {} },
  { method: 'skills/get', params: { uri: 'skill://add-up/SKILL.md' } },
  { method: 'resources/read', params: { uri: 'skill://add-up/scripts/main.py' } },
  { method: 'resources/read', params: { uri: 'skill://no-such/SKILL.md' } },
];

describe.skipIf(python === null)('the official Python client', () => {
  const modes = [
    { mode: 'auto', revision: MODERN },
    { mode: 'legacy', revision: LEGACY },
  ];
  it.each(places.flatMap((each) => modes.map((mode) => ({ ...each, ...mode }))))(
    'speaks $revision over $over',
    async ({ place, mode, revision }) => {
      const { protocolVersion, serverInfo, answers } = await askWithPython(python ?? '', place(), mode, CALLS);
      expect({ protocolVersion, serverInfo }).toMatchObject({ protocolVersion: revision, serverInfo: { name: 'etude' } });
      expect(answers).toMatchObject([
        { tools: [{ name: 'echo', outputSchema: { type: 'object' } }, { name: 'hang' }] },
        { structuredContent: { text: 'hi' }, content: [{ text: '{"text":"hi"}' }] },
        { isError: true },
        { skills: [{ uri: 'skill://add-up/SKILL.md' }] },
        { skill: { frontmatter: { name: 'add-up' }, resources: [{}, {}] } },
        { contents: [{ text: 'x = 1\n' }] },
        { error: expect.any(String) as string },
      ]);
      expect(gateway.fake.seen.findLast(({ method }) => method === 'callTool')?.request).toMatchObject({ agent: 'scout' });
    },
    60_000,
  );
});
