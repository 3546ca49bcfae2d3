import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { gatewayForFile, type KeyName, pagesOf, refusal } from './gateway.harness.js';

const rig = gatewayForFile({ ETUDE_SKILLS_MAX: '7' });
const agents = (key: KeyName = 'rev') => rig.client(Agents, key);
const settings = (more: object = {}) => ({ proceduralMemorySettings: { enabled: true, approvalMode: 'threshold', ...more } });
const only = (...fields: string[]) => ({ paths: fields.map((field) => `procedural_memory_settings.${field}`) });

describe('an agent', () => {
  it('has the settings of the installation until its own are set', async () => {
    expect(await agents('acme').getAgent({ name: 'agents/new' })).toMatchObject({
      name: 'agents/new',
      isSet: false,
      proceduralMemorySettings: {
        enabled: false,
        autoRegisterSkills: false,
        skillRegistrationConfidenceThreshold: 0.9,
        maxSkills: 7,
        skillSearchThreshold: 0.8,
        preferSkills: true,
        settleFacts: true,
        approvalMode: 'review',
      },
    });
    expect((await agents().listAgents({})).agents.map(({ name }) => name)).not.toContain('agents/new');
  });

  it('keeps settings outside the mask, and replaces all settings without a mask', async () => {
    const agent = { name: 'agents/masked', ...settings({ maxSkills: 3, skillSearchThreshold: 0.1 }) };
    const changed = await agents().updateAgent({ agent, updateMask: only('max_skills', 'approval_mode') });
    expect(changed).toMatchObject({
      isSet: true,
      proceduralMemorySettings: { maxSkills: 3, approvalMode: 'threshold', skillSearchThreshold: 0.8, enabled: false },
    });
    const whole = await agents().updateAgent({ agent: { name: 'agents/masked', ...settings() } });
    expect(whole.proceduralMemorySettings).toMatchObject({ maxSkills: 0, preferSkills: false, enabled: true });
    expect(changed.updateTime?.seconds).toBeGreaterThan(1_700_000_000n);
  });

  it('has a strategy and MCP servers, which only their own paths empty', async () => {
    const mcpServers = [{ name: 'docs', url: 'https://mcp.example.com', headers: { authorization: 'secret:docs' } }];
    const agent = { name: 'agents/tools', strategy: 'codeact', mcpServers };
    await agents().updateAgent({ agent, updateMask: { paths: ['strategy', 'mcp_servers'] } });
    await agents().updateAgent({ agent: { name: 'agents/tools', ...settings() } });
    const known = { strategy: 'codeact', mcpServers: [{ ...mcpServers[0], timeout: { seconds: 30n } }] };
    expect(await agents().getAgent({ name: 'agents/tools' })).toMatchObject(known);
    const emptied = await agents().updateAgent({ agent: { name: 'agents/tools' }, updateMask: { paths: ['mcp_servers', 'strategy'] } });
    expect(emptied).toMatchObject({ strategy: 'attempts', mcpServers: [], proceduralMemorySettings: { enabled: true } });
  });

  it('is not changed with an outdated etag', async () => {
    const { etag } = await agents().getAgent({ name: 'agents/raced' });
    await agents().updateAgent({ agent: { name: 'agents/raced', ...settings(), etag } });
    const stale = await refusal(agents().updateAgent({ agent: { name: 'agents/raced', ...settings(), etag } }));
    expect(stale).toMatchObject({ status: status.ABORTED, code: 'ABORTED' });
  });

  it('returns the first answer to a repeated request, even with an outdated etag', async () => {
    const { etag } = await agents().getAgent({ name: 'agents/again' });
    const request = { agent: { name: 'agents/again', ...settings(), etag }, requestId: 'agent-1' };
    const first = await agents().updateAgent(request);
    expect((await agents().updateAgent(request)).etag).toBe(first.etag);
    const other = agents().updateAgent({ agent: { name: 'agents/again', ...settings({ enabled: false }) }, requestId: 'agent-1' });
    expect((await refusal(other)).code).toBe('ALREADY_EXISTS');
  });

  it('is listed page by page, within its tenant', async () => {
    for (const name of ['a1', 'a2']) await agents().updateAgent({ agent: { name: `agents/${name}`, ...settings() } });
    const pages = await pagesOf((pageToken) => agents('acme').listAgents({ pageSize: 1, pageToken }));
    const seen = pages.flatMap((page) => page.agents.map(({ name }) => name));
    expect(seen).toEqual(seen.toSorted());
    expect(seen).toEqual(expect.arrayContaining(['agents/a1', 'agents/a2']));
    expect((await agents('globex').listAgents({})).agents).toEqual([]);
    expect(await agents('globex').getAgent({ name: 'agents/a1' })).toMatchObject({ isSet: false });
  });

  it.each([
    ['an owner of shared skills', { agent: { name: 'agents/@tenant', ...settings() } }, 'agent.name'],
    ['an unknown strategy', { agent: { name: 'agents/x', strategy: 'tree' } }, 'agent.strategy'],
    ['a wrong address', { agent: { name: 'agents/x', mcpServers: [{ name: 'a', url: 'ftp://b' }] } }, 'agent.mcp_servers[0].url'],
    [
      'a secret in the open',
      { agent: { name: 'agents/x', mcpServers: [{ name: 'a', command: 'b', env: { KEY: 'abc' } }] } },
      'agent.mcp_servers[0].env."KEY"',
    ],
    ['no settings', { agent: { name: 'agents/x' } }, 'agent.procedural_memory_settings'],
    ['an unknown mask', { agent: { name: 'agents/x', ...settings() }, updateMask: only('name') }, 'update_mask'],
    [
      'a threshold above 1',
      { agent: { name: 'agents/x', ...settings({ skillSearchThreshold: 2 }) } },
      'agent.procedural_memory_settings.skill_search_threshold',
    ],
  ])('refuses %s', async (_what, request, field) => {
    expect(await refusal(agents().updateAgent(request))).toMatchObject({ status: status.INVALID_ARGUMENT, fields: [field] });
  });
});
