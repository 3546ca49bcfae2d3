import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { connectHttp, type OfficialClient, REVISIONS, type Revision } from '@etude/mcp/testing/official-client';
import type { Memory } from '@etude/memory/memory';
import { skillOf } from '@etude/domain/testing/memory-records';
import { freePort } from '@etude/test-support/ports';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { gatewayForFile, type KeyName, KEYS } from './gateway.harness.js';
import { newSigner, storeSkill } from './skill-store.js';

const port = String(await freePort());
const url = new URL(`http://127.0.0.1:${port}/mcp`);
const rig = gatewayForFile({ ETUDE_MCP_PORT: port, ETUDE_SKILLS_ENABLED: 'true' });

const open: OfficialClient[] = [];
afterEach(async () => {
  for (const client of open.splice(0)) await client.close();
});

async function connect(revision: Revision, key: KeyName, more: Readonly<Record<string, string>> = {}): Promise<OfficialClient> {
  const client = await connectHttp(url, revision, { authorization: `Bearer ${KEYS[key]}`, ...more });
  open.push(client);
  return client;
}

const of = (tenant: string, agent: string, user: string | null = null) => ({ tenant, agent, user });
const urisOf = async ({ skills }: OfficialClient) => (await skills.list()).skills.map(({ uri }) => uri);

describe.each(REVISIONS)('MCP of the gateway in %s', (revision) => {
  it('lists the first ten of etude.v1.Tools, each with schemas of objects', async () => {
    const { client } = await connect(revision, 'acme');
    const { tools } = await client.listTools();
    const known = await rig.client(Tools).listTools({ agent: 'default' });
    expect(tools.map(({ name }) => name)).toEqual(known.tools.slice(0, 10).map(({ name }) => name));
    for (const { inputSchema, outputSchema, description } of tools) {
      expect({ inputSchema, outputSchema }).toMatchObject({ inputSchema: { type: 'object' }, outputSchema: { type: 'object' } });
      expect(description).not.toBe('');
    }
  });

  it('returns results that match their output schemas', async () => {
    const { client } = await connect(revision, 'acme');
    await client.listTools();
    // The client itself checks the result against the listed schema.
    const found = await client.callTool({ name: 'list_skill_categories', arguments: {} });
    expect(found.isError ?? false).toBe(false);
    const [shown] = found.content as Array<{ text: string }>;
    expect(found.structuredContent).toEqual(JSON.parse(shown?.text ?? ''));
    const wrong = await client.callTool({ name: 'use_skill', arguments: { skill_id: 7 } });
    expect(wrong.isError).toBe(true);
  });
});

describe('skills over MCP', () => {
  let memory: Memory;
  beforeAll(async () => {
    memory = await rig.openMemory();
    const signer = newSigner(rig.dir);
    const description =
      'Sums the even numbers of a list.\n\nUse it where "odd" ones do not count: # \\ \u2028 \t\r\n- as here\n---\nname: x';
    const kept = { status: 'active' as const, description };
    const skills = [
      { ...kept, name: 'sum_even', scope: of('acme', 'default') },
      { ...kept, name: 'of_ann', scope: of('acme', 'default', 'ann') },
      { ...kept, name: 'of_others', scope: of('acme', 'scout') },
      { ...kept, name: 'of_all', scope: of('acme', '@tenant') },
      { ...kept, name: 'waiting', scope: of('acme', 'default'), status: 'pending_review' as const },
    ];
    for (const skill of skills) await storeSkill(memory.procedural, skillOf(skill), signer);
  });

  it.each(REVISIONS)('lists the active skills of the reader, with files that match their digests, in %s', async (revision) => {
    const client = await connect(revision, 'acme');
    const { skills } = await client.skills.list();
    expect(skills.map(({ uri }) => uri)).toEqual(['skill://of-all/SKILL.md', 'skill://sum-even/SKILL.md']);
    for (const skill of skills) {
      expect(Array.isArray(skill.resources)).toBe(true);
      for (const { uri } of skill.resources as Array<{ uri: string }>)
        expect(await client.skills.read(skill, uri)).toMatchObject({ verified: true });
      expect(await client.skills.get(skill.uri)).toMatchObject({ skill: { resources: skill.resources } });
    }
  });

  it('lists the skills of a user if a header names the user', async () => {
    expect(await urisOf(await connect('2026-07-28', 'acme', { 'etude-user': 'ann' }))).toContain('skill://of-ann/SKILL.md');
    expect(await urisOf(await connect('2026-07-28', 'acme', { 'etude-user': 'bob' }))).not.toContain('skill://of-ann/SKILL.md');
    expect(await urisOf(await connect('2026-07-28', 'acme', { 'etude-agent': 'scout' }))).toEqual([
      'skill://of-all/SKILL.md',
      'skill://of-others/SKILL.md',
    ]);
  });

  it.each([
    ['another tenant', 'globex', {}],
    ['another agent', 'acme', { 'etude-agent': 'stranger' }],
    ['another user', 'acme', { 'etude-user': 'bob' }],
  ] as const)('hides skills from %s in lists, entries and files', async (_who, key, headers) => {
    const { skills, client } = await connect('2026-07-28', key, headers);
    const uri =
      key === 'globex' ? 'skill://sum-even/SKILL.md' : 'etude-user' in headers ? 'skill://of-ann/SKILL.md' : 'skill://sum-even/SKILL.md';
    expect((await skills.list()).skills.map((skill) => skill.uri)).not.toContain(uri);
    await expect(skills.get(uri)).rejects.toMatchObject({ code: -32_602 });
    await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32_602 });
  });
});
