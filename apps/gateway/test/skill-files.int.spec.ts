import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory as MemoryService } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills, SkillScope, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { skillOf } from '@etude/domain/testing/memory-records';
import { zipOf } from '@etude/test-support/zip';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { type KeyName, refusal } from './gateway.harness.js';
import { restDoor } from './rest-door.js';
import { type FolderHead, folderOf } from './skill-drafts.js';
import { skillMemoryForFile } from './skill-store.js';

const door = restDoor();
const { rig, store } = skillMemoryForFile(async () => ({ ETUDE_SKILLS_ENABLED: 'true', ...(await door.settings()) }));
const skills = (key: KeyName = 'acme') => rig.client(Skills, key);

const text = (name: string) => `---\nname: ${name}\ndescription: One of many.\n---\n\nText.\n`;

type Files = Readonly<Record<string, string | Uint8Array>>;
const filesOf = (files: Files) => Object.entries(files).map(([path, content]) => ({ path, bytes: Buffer.from(content) }));

const HOW_TO: Files = {
  'SKILL.md':
    '---\nname: how-to-cook\ndescription: Cooks. Use when hungry.\nlicense: MIT\nmetadata:\n  author: "somebody"   # a remark\n---\n\n# Cook\n\nStir.\n',
  'references/salt.md': 'Salt.\n',
  'assets/pot.bin': Uint8Array.from([0, 255, 1, 254]),
};

const send = (files: Files, head: FolderHead, key?: KeyName) => skills(key).importSkill(folderOf({ agent: 'cook', ...head }, files));

const texts = (files: readonly { path: string; data: Uint8Array }[]) =>
  Object.fromEntries(files.map(({ path, data }) => [path, Buffer.from(data).toString('latin1')]));
const sent = (files: Files) => texts(filesOf(files).map(({ path, bytes }) => ({ path, data: bytes })));

/** Changes one setting of an agent. */
function set(agent: string, proceduralMemorySettings: { readonly maxSkills: number } | { readonly enabled: boolean }) {
  const path = 'maxSkills' in proceduralMemorySettings ? 'max_skills' : 'enabled';
  const updateMask = { paths: [`procedural_memory_settings.${path}`] };
  return rig.client(Agents, 'rev').updateAgent({ agent: { name: `agents/${agent}`, proceduralMemorySettings }, updateMask });
}

const pack = (count: number) => Object.fromEntries(['a', 'b', 'c'].slice(0, count).map((one) => [`${one}/SKILL.md`, text(`how-${one}`)]));

describe('an import', () => {
  it('of a folder becomes an untrusted candidate, and an export returns the same files', async () => {
    const {
      skills: [skill],
      notes,
    } = await send(HOW_TO, {});
    expect(skill).toMatchObject({
      name: 'skills/how_to_cook',
      kind: 'procedure',
      status: SkillStatus.CANDIDATE,
      origin: 'import',
      code: '# Cook\n\nStir.\n',
      files: ['SKILL.md', 'assets/pot.bin', 'references/salt.md'],
      sources: [expect.stringMatching(/^imports\/i[0-9a-f]{32}$/)],
    });
    expect(skill?.untrusted).toContain('imported');
    expect(notes).toEqual([]);
    const { files } = await skills().exportSkill({ name: 'skills/how_to_cook', agent: 'cook' });
    expect(texts(files)).toEqual(sent(HOW_TO));
  });

  it('is refused if the agent has too many skills or learns none; a dry run stores nothing', async () => {
    await set('full', { maxSkills: 2 });
    await set('off', { enabled: false });
    expect((await send(pack(2), { agent: 'full', dryRun: true })).skills).toHaveLength(2);
    expect((await skills().listSkills({ agent: 'full', status: SkillStatus.CANDIDATE })).skills).toEqual([]);
    const full = { status: status.FAILED_PRECONDITION, message: expect.stringContaining('max_skills is 2') as string };
    expect(await refusal(send(pack(3), { agent: 'full' }))).toMatchObject(full);
    expect((await refusal(send(pack(1), { agent: 'off' }))).message).toContain('Skills are off');
    expect(await refusal(rig.client(MemoryService).storeProcedure({ agent: 'full', name: 'one_more', prompt: 'Stir.' }))).toMatchObject(
      full,
    );
  });

  it('is shown to its readers only', async () => {
    await send({ 'SKILL.md': '---\nname: of-ann\ndescription: Hers.\n---\n' }, { user: 'ann' });
    await expect(skills().exportSkill({ name: 'skills/of_ann', agent: 'cook', user: 'bob' })).rejects.toMatchObject({
      code: status.NOT_FOUND,
    });
    await expect(skills('globex').exportSkill({ name: 'skills/of_ann', agent: 'cook', user: 'ann' })).rejects.toMatchObject({
      code: status.NOT_FOUND,
    });
    expect((await skills().exportSkill({ name: 'skills/of_ann', agent: 'cook', user: 'ann' })).files).toHaveLength(1);
  });

  it('for every agent needs a reviewer', async () => {
    const folder = { 'SKILL.md': '---\nname: for-all\ndescription: Shared.\n---\n' };
    expect((await refusal(send(folder, { scope: SkillScope.TENANT }))).code).toBe('PERMISSION_DENIED');
    expect((await send(folder, { scope: SkillScope.TENANT }, 'rev')).skills[0]).toMatchObject({ scope: SkillScope.TENANT });
  });

  it('works over HTTP', async () => {
    const zip = await zipOf(filesOf({ 'SKILL.md': '---\nname: by-http\ndescription: Came by HTTP.\n---\n' }));
    const path = '/v1/skills:import?agent=cook&format=zip';
    const imported = await door.send('POST', path, Buffer.from(zip), { 'content-type': 'application/zip' });
    expect([imported.status, await imported.json()]).toMatchObject([200, { skills: [{ name: 'skills/by_http' }] }]);
    expect((await door.ask('GET', '/v1/skills/by_http:export?agent=cook')).body).toMatchObject({ files: [{ path: 'SKILL.md' }] });
  });
});

/** Whether the export has the tests, and its notes. */
const exportedTwice = async (key: KeyName, withoutHiddenTests = false) => {
  const { files, notes } = await skills(key).exportSkill({ name: 'skills/twice', agent: 'learner', withoutHiddenTests });
  return [JSON.stringify(texts(files)).includes('== 42'), notes];
};

describe('an export', () => {
  it('has the active version unless the request names another, and no held-out tests', async () => {
    const heldOut = [{ kind: 'python' as const, setup: '', tests: 'assert hidden' }];
    const scope = { tenant: 'acme', agent: 'cook', user: null };
    await store(skillOf({ name: 'total', scope, code: 'def total(xs): return sum(xs)', heldOut, status: 'active' }));
    await store(skillOf({ name: 'total', scope, code: 'def total(xs): return 0', heldOut, status: 'candidate' }));
    const { files } = await skills().exportSkill({ name: 'skills/total', agent: 'cook' });
    expect(texts(files)['scripts/total.py']).toBe('def total(xs): return sum(xs)');
    expect(JSON.stringify(texts(files))).not.toContain('hidden');
    const second = await skills().exportSkill({ name: 'skills/total', agent: 'cook', version: 2 });
    expect(texts(second.files)['scripts/total.py']).toBe('def total(xs): return 0');
  });

  it('has tests from tasks for reviewers only, and without them if a model reads the export', async () => {
    const scope = { tenant: 'acme', agent: 'learner', user: null };
    const tests = [{ kind: 'python' as const, setup: '', tests: 'assert twice(21) == 42' }];
    const learned = skillOf({ name: 'twice', scope, code: 'def twice(n): return n * 2', tests, origin: 'rollout', status: 'active' });
    await store(learned);
    const without = [false, [expect.stringContaining('without its tests') as string]];
    expect(await exportedTwice('acme')).toEqual(without);
    expect(await exportedTwice('rev')).toEqual([true, []]);
    expect(await exportedTwice('rev', true)).toEqual(without);
  });

  it('marks hidden tests, so that they stay hidden after an import', async () => {
    const scope = { tenant: 'acme', agent: 'learner', user: null };
    const tests = [{ kind: 'python' as const, setup: '', tests: 'assert thrice(14) == 42\n' }];
    const words = { kind: 'procedure' as const, code: '# Thrice\n', entryPoint: null };
    const learned = skillOf({ name: 'thrice', scope, ...words, tests, origin: 'rollout', status: 'active' });
    await store(learned);
    const { files } = await skills('rev').exportSkill({ name: 'skills/thrice', agent: 'learner' });
    const { 'tests/cases.json': _cases, ...others } = texts(files);
    const folder = { ...others, 'tests/test_thrice.py': 'assert thrice(14) == 42\n' };
    await send(folder, { agent: 'elsewhere' }, 'rev');
    const exported = async (key: KeyName) =>
      texts((await skills(key).exportSkill({ name: 'skills/thrice', agent: 'elsewhere', version: 1 })).files);
    expect(await exported('rev')).toEqual(folder);
    expect(JSON.stringify(await exported('acme'))).not.toContain('== 42');
  });
});
