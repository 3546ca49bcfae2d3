import { createHash } from 'node:crypto';
import { SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { describe, expect, it } from 'vitest';
import { FakeGateway, manifest, refusal } from './fake-gateway.js';
import { connect, TRANSPORTS } from './served.js';
import { REVISIONS } from './official-client.js';

const SUM = {
  'SKILL.md': manifest('sum-of-squares', 'Adds squares', 'metadata:\n  etude-version: "3"\n'),
  'scripts/main.py': 'def sum_of_squares(xs):\n    return sum(x * x for x in xs)\n',
  'scripts/data/Q&A été.txt': 'question',
  'assets/raw.bin': Buffer.from([0xff, 0xfe, 0, 1]),
};

function gatewayWithSkills(): FakeGateway {
  const gateway = new FakeGateway();
  gateway.held = [
    { name: 'sum_of_squares', version: 4, status: SkillStatus.PENDING_REVIEW, files: { 'SKILL.md': manifest('sum-of-squares', 'Unseen') } },
    { name: 'sum_of_squares', version: 3, files: SUM },
    { name: 'add_up', version: 1, files: { 'SKILL.md': manifest('add-up', 'Adds') } },
    { name: 'waiting', version: 1, status: SkillStatus.CANDIDATE, files: { 'SKILL.md': manifest('waiting', 'Not active') } },
  ];
  return gateway;
}

const each = TRANSPORTS.flatMap((over) => REVISIONS.map((revision) => ({ over, revision })));

describe.each(each)('skills over $over in $revision', ({ over, revision }) => {
  const skillsOf = async (gateway: FakeGateway) => new SkillsClient(await connect(gateway, over, revision));

  it('lists active skills with all their files and digests', async () => {
    const { skills } = await (await skillsOf(gatewayWithSkills())).list();
    expect(skills.map(({ uri }) => uri)).toEqual(['skill://sum-of-squares/SKILL.md', 'skill://add-up/SKILL.md']);
    expect(skills[0]?.frontmatter).toEqual({ name: 'sum-of-squares', description: 'Adds squares', metadata: { 'etude-version': '3' } });
    expect(skills[0]?.resources).toHaveLength(4);
    const digest = createHash('sha256').update(SUM['scripts/main.py']).digest('hex');
    expect(skills[0]?.resources).toContainEqual({
      uri: 'skill://sum-of-squares/scripts/main.py',
      digest: `sha256:${digest}`,
      size: Buffer.byteLength(SUM['scripts/main.py']),
    });
  });

  it('returns files that match their digests, exported without hidden tests', async () => {
    const gateway = gatewayWithSkills();
    const skills = await skillsOf(gateway);
    const { skill } = await skills.get('skill://sum-of-squares/SKILL.md');
    const first = await skills.read(skill);
    expect(first).toMatchObject({ verified: true, mimeType: 'text/markdown', frontmatter: { name: 'sum-of-squares' } });
    const asset = await skills.read(skill, 'assets/raw.bin');
    expect(asset).toMatchObject({ verified: true, mimeType: 'application/octet-stream' });
    expect(Buffer.from(asset.bytes)).toEqual(SUM['assets/raw.bin']);
    const script = await skills.read(skill, 'scripts/main.py');
    expect(script).toMatchObject({ verified: true, mimeType: 'text/x-python', text: SUM['scripts/main.py'] });
    const exports = gateway.seen.filter(({ method }) => method === 'exportSkill');
    expect(new Set(exports.map(({ request }) => request['withoutHiddenTests']))).toEqual(new Set([true]));
    expect(await skills.read(skill, 'scripts/data/Q&A été.txt')).toMatchObject({ verified: true, text: 'question' });
  });

  it('returns entries of active skills only', async () => {
    const skills = await skillsOf(gatewayWithSkills());
    for (const uri of ['skill://waiting/SKILL.md', 'skill://no-such/SKILL.md', 'skill://sum-of-squares/scripts/main.py']) {
      await expect(skills.get(uri)).rejects.toMatchObject({ code: -32_602 });
    }
  });

  it('pages with the cursors of the gateway', async () => {
    const gateway = gatewayWithSkills();
    gateway.pageSize = 1;
    const client = await connect(gateway, over, revision);
    expect((await new SkillsClient(client).list()).skills).toHaveLength(2);
    await expect(new SkillsClient(client).list({ cursor: 'made up' })).rejects.toMatchObject({ code: -32_602 });
  });

  it('lists manifests as resources, for clients without the extension', async () => {
    const client = await connect(gatewayWithSkills(), over, revision);
    const { resources } = await client.listResources();
    expect(resources).toContainEqual(
      expect.objectContaining({ uri: 'skill://sum-of-squares/SKILL.md', name: 'sum-of-squares', mimeType: 'text/markdown' }),
    );
    expect(await client.readResource({ uri: 'skill://sum-of-squares/SKILL.md' })).toMatchObject({
      contents: [{ uri: 'skill://sum-of-squares/SKILL.md', text: SUM['SKILL.md'] }],
    });
  });
});

describe('skills', () => {
  const hostile = [
    'skill://sum-of-squares/../../etc/passwd',
    'skill://sum-of-squares/%2e%2e/%2e%2e/etc/passwd',
    'skill://sum-of-squares/scripts/..%2f..%2f..%2fetc%2fpasswd',
    'skill://sum-of-squares/SKILL.md%00.txt',
    'skill://sum-of-squares/SKILL.md?x=1',
    'skill://@tenant/SKILL.md',
    'skill://__proto__/SKILL.md',
    `skill://${'a'.repeat(100_000)}/SKILL.md`,
    'file:///etc/passwd',
  ];

  it.each(hostile.map((uri) => ({ uri, shown: uri.slice(0, 60) })))('finds nothing at $shown', async ({ uri }) => {
    const client = await connect(gatewayWithSkills(), 'stdio', '2026-07-28');
    await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32_602 });
    await expect(new SkillsClient(client).get(uri)).rejects.toMatchObject({ code: -32_602 });
  });

  it('shows the active skill of the tenant if the skill of the agent is not active', async () => {
    const gateway = new FakeGateway();
    gateway.held = [
      { name: 'add_up', version: 1, status: SkillStatus.CANDIDATE, files: { 'SKILL.md': manifest('add-up', 'Not proven') } },
      { name: 'add_up', version: 1, owner: '@tenant', files: { 'SKILL.md': manifest('add-up', 'Proven') } },
    ];
    const client = await connect(gateway, 'stdio', '2026-07-28');
    const skills = new SkillsClient(client);
    const proven = { uri: 'skill://add-up/SKILL.md', frontmatter: { description: 'Proven' } };
    expect((await skills.list()).skills).toMatchObject([proven]);
    expect(await skills.get(proven.uri)).toMatchObject({ skill: proven });
    const answer = await client.readResource({ uri: proven.uri });
    expect(answer.contents).toMatchObject([{ text: expect.stringContaining('Proven') as string }]);
  });

  it('leaves out and reports skills that do not fit the format', async () => {
    const gateway = gatewayWithSkills();
    gateway.held.push({ name: 'broken', version: 1, files: { 'SKILL.md': 'no frontmatter' } });
    gateway.held.push({ name: 'odd__name_', version: 1, files: { 'SKILL.md': manifest('odd-name', 'Its name is not in the format') } });
    gateway.held.push({ name: 'wordy', version: 1, files: { 'SKILL.md': manifest('wordy', 'x'.repeat(2_000)) } });
    const unfit: string[] = [];
    const client = await connect(gateway, 'http', '2026-07-28', { options: { onUnfit: (skill) => unfit.push(skill) } });
    expect((await new SkillsClient(client).list()).skills).toHaveLength(2);
    expect(unfit).toEqual(['broken', 'odd__name_', 'wordy']);
  });

  it('fails if the gateway fails', async () => {
    const gateway = gatewayWithSkills();
    gateway.refuse = refusal(14, 'Memory is away; try again.');
    const client = await connect(gateway, 'http', '2026-07-28');
    await expect(new SkillsClient(client).list()).rejects.toThrow('Memory is away; try again.');
    await expect(client.readResource({ uri: 'skill://sum-of-squares/SKILL.md' })).rejects.toThrow('Memory is away; try again.');
  });
});
