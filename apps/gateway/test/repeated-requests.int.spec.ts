import { Readable } from 'node:stream';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { describe, expect, it } from 'vitest';
import { type KeyName, refusal } from './gateway.harness.js';
import { ADD, ADD_NUMBERS, ADD_THREE, addingDraft, callOf } from './skill-drafts.js';
import { skillsForFile } from './skill-workers.js';

const rig = skillsForFile();
const skills = (key: KeyName = 'acme') => rig.client(Skills, key);
const agent = 'coder';
const codes = (...names: string[]) => names.map((name) => `${ADD}\n\nNAME = '${name}'\n`);
const versionsOf = async (name: string) =>
  (await skills('rev').listSkillVersions({ name: `skills/${name}`, agent })).skills.map(({ version, status }) => [version, status]);
const { ACTIVE, DEPRECATED, ARCHIVED } = SkillStatus;

const turn = (enabled: boolean) =>
  rig.client(Agents, 'rev').updateAgent({
    agent: { name: 'agents/turned', proceduralMemorySettings: { enabled } },
    updateMask: { paths: ['procedural_memory_settings.enabled'] },
  });

const send = (requestId: string) => {
  const data = Buffer.from('---\nname: boil-eggs\ndescription: Boils eggs.\n---\n\nBoil.\n');
  const parts = [
    { part: { case: 'head' as const, value: { agent, format: 'folder', requestId } } },
    { part: { case: 'file' as const, value: { path: 'SKILL.md', data } } },
  ];
  return skills().importSkill(Readable.from(parts));
};

describe('a registration that comes again', () => {
  it('brings back no words of before', async () => {
    const first = { skill: addingDraft('reworded', { description: 'Adds, in these words.' }), requestId: 'words-1', wait: true };
    await skills().registerSkill(first);
    const heldOutTests = [callOf([20, 22], 42)];
    const other = addingDraft('reworded', { description: 'Adds, in other words.', heldOutTests });
    expect(await skills().registerSkill({ skill: other, requestId: 'words-2', wait: true })).toMatchObject({ version: 2, status: ACTIVE });
    expect(await skills().registerSkill(first)).toMatchObject({ version: 1, status: DEPRECATED });
    expect(await versionsOf('reworded')).toEqual([
      [2, ACTIVE],
      [1, DEPRECATED],
    ]);
  });

  it('brings back nothing that was archived, though what it calls has a new version', async () => {
    await skills().registerSkill({ skill: ADD_NUMBERS, wait: true });
    const caller = { skill: ADD_THREE, requestId: 'caller-1', wait: true };
    const { name } = await skills().registerSkill(caller);
    await skills('rev').archiveSkill({ name, agent });
    const [code = ''] = codes('newer');
    await skills().registerSkill({ skill: { ...ADD_NUMBERS, code }, wait: true });
    expect(await skills().registerSkill(caller)).toMatchObject({ version: 1, status: ARCHIVED });
    expect(await versionsOf(name.replace('skills/', ''))).toEqual([[1, ARCHIVED]]);
  });
});

describe('an import that comes again', () => {
  it('answers what it stored, as it is now', async () => {
    const first = await send('import-1');
    await skills('rev').archiveSkill({ name: 'skills/boil_eggs', agent });
    const again = await send('import-1');
    expect(again).toMatchObject({ skills: [{ name: 'skills/boil_eggs', version: 1, status: ARCHIVED }], notes: first.notes });
    expect((await refusal(send('import-2'))).code).toBe('FAILED_PRECONDITION');
  });
});

describe('a decision that comes again', () => {
  it('is the same whoever of the tenant sends it', async () => {
    const [code = ''] = codes('by_either');
    await skills().registerSkill({ skill: addingDraft('by_either', { code }), wait: true });
    const named = { name: 'skills/by_either', agent };
    const archive = { ...named, requestId: 'either-1' };
    await skills('rev').archiveSkill(archive);
    await skills('rev').restoreSkill(named);
    expect(await skills('ops').archiveSkill(archive)).toMatchObject({ status: ACTIVE });
  });
});
