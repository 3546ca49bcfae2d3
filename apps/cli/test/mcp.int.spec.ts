import { type McpGateway, startMcpGateway } from '@etude/mcp/testing/mcp-gateway';
import { connectStdio, REVISIONS } from '@etude/mcp/testing/official-client';
import { manifest } from '@etude/mcp/testing/fake-gateway';
import { programEnvironment } from '@etude/test-support/processes';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive } from '../src/stack/down.js';
import { etude, ROOT } from './etude.js';

const KEY = 'key-of-nobody-else';
let gateway: McpGateway;
beforeAll(async () => {
  gateway = await startMcpGateway();
  gateway.fake.held = [
    { name: 'add_up', version: 2, files: { 'SKILL.md': manifest('add-up', 'Adds numbers'), 'scripts/main.py': 'x = 1\n' } },
  ];
});
afterAll(() => gateway.stop());

const environment = () => ({ ...programEnvironment(), ETUDE_API_KEY: KEY });
const program = (...more: string[]) => ({
  command: process.execPath,
  args: [`${ROOT}apps/cli/dist/main.js`, 'mcp', '--address', gateway.address, '--agent', 'scout', '--user', 'ann', ...more],
  env: environment(),
});

describe.each(REVISIONS)('etude mcp in %s', (revision) => {
  it('serves tools and skills for the agent and user of its flags, and keeps notes off stdout', async () => {
    let said = '';
    const connected = await connectStdio(program(), revision, (text) => (said += text));
    const { client, skills } = connected;
    try {
      expect(client.getNegotiatedProtocolVersion()).toBe(revision);
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['echo', 'hang']);
      expect(await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).toMatchObject({ structuredContent: { text: 'hi' } });
      const { request, settings } = gateway.fake.seen.findLast(({ method }) => method === 'callTool') ?? {};
      expect(request).toMatchObject({ agent: 'scout', user: 'ann', session: expect.stringMatching(/^[0-9a-f-]{36}$/) as string });
      expect(settings?.metadata).toEqual({ authorization: `Bearer ${KEY}` });
      const listed = await skills.list();
      const [skill] = listed.skills as [(typeof listed.skills)[0]];
      expect(skill.uri).toBe('skill://add-up/SKILL.md');
      expect(await skills.read(skill, 'scripts/main.py')).toMatchObject({ verified: true, text: 'x = 1\n' });
      expect(said).toContain(`MCP on stdin and stdout, for agent scout and user ann, through ${gateway.address}`);
    } finally {
      await connected.close();
    }
  });

  it('ends with its client, and cancels the calls of the client', async () => {
    const connected = await connectStdio(program('--session', 'mine'), revision);
    const { client, pid } = connected;
    const before = gateway.fake.aborted.length;
    const hanging = client.callTool({ name: 'hang', arguments: {} }).catch((error: unknown) => error);
    await until(() => gateway.fake.seen.at(-1)?.request['tool'] === 'hang', { what: 'the call' });
    await connected.close();
    await hanging;
    await until(() => gateway.fake.aborted.length > before && !isAlive(pid ?? 0), { what: 'the end' });
    expect(gateway.fake.seen.findLast(({ method }) => method === 'callTool')?.request).toMatchObject({ session: 'mine' });
  });
});

it('etude mcp names a wrong flag before it serves', async () => {
  expect(await etude(['mcp', '--agent', '@tenant'])).toMatchObject({
    exit: 2,
    stdout: '',
    stderr: expect.stringContaining('--agent must') as string,
  });
  expect(await etude(['mcp', '--session', 'a b'])).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining('--session must') as string,
  });
});
