import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { until } from '@etude/test-support/until';
import { expect, it } from 'vitest';
import { collect } from './gateway.harness.js';
import { ADD_NUMBERS, ADD_THREE } from './skill-drafts.js';
import { skillsForFile } from './skill-workers.js';

/** Approved automatically, but for what was imported. */
const rig = skillsForFile();
const UNSETTLED: ReadonlySet<SkillStatus> = new Set([SkillStatus.CANDIDATE, SkillStatus.VERIFIED]);
const TIMEOUT_MS = 120_000;

const settled = (name: string, agent: string) =>
  until(async () => {
    const skill = await rig.client(Skills).getSkill({ name: `skills/${name}`, agent });
    return UNSETTLED.has(skill.status) ? null : skill;
  });

async function approve(name: string, agent: string): Promise<void> {
  const { digest } = await settled(name, agent);
  await rig.client(Skills, 'rev').approveSkill({ name: `skills/${name}`, agent, digest });
}

it('has everything of an import wait for review, what is called before what calls it', { timeout: TIMEOUT_MS }, async () => {
  for (const skill of [ADD_NUMBERS, ADD_THREE]) await rig.client(Skills).registerSkill({ skill, wait: true });
  await rig.client(Memory).storeProcedure({ agent: 'coder', name: 'moor_boat', prompt: 'Throw the bow line first.' });
  expect((await settled('add_three', 'coder')).status).toBe(SkillStatus.ACTIVE);
  const lines = (await collect(rig.client(Memory, 'rev').exportMemory({ agent: 'coder' }))).flatMap((sent) => sent.lines);
  const kept = lines.filter((line, i) => i === 0 || line.includes('"kind":"skill"')).map((line) => line.replaceAll('coder', 'guest'));
  const imported = async () => {
    const { added, unchanged, refused } = await rig.client(Memory).importMemory({ lines: kept });
    return [added, unchanged, ...refused.map(({ reason }) => reason.split(',')[0])];
  };
  expect(await imported()).toEqual([2n, 0n, 'add_three waits: it calls add_numbers']);
  expect(await settled('add_numbers', 'guest')).toMatchObject({ status: SkillStatus.PENDING_REVIEW, proof: { testsPassed: 3 } });
  expect(await settled('moor_boat', 'guest')).toMatchObject({
    status: SkillStatus.PENDING_REVIEW,
    description: 'Throw the bow line first.',
  });
  for (const name of ['add_numbers', 'moor_boat']) await approve(name, 'guest');
  expect(await imported()).toEqual([1n, 2n]);
  expect(await settled('add_three', 'guest')).toMatchObject({
    status: SkillStatus.PENDING_REVIEW,
    dependencies: [{ name: 'skills/add_numbers' }],
  });
  await approve('add_three', 'guest');
  expect(await imported()).toEqual([0n, 3n]);
  expect((await settled('moor_boat', 'guest')).status).toBe(SkillStatus.ACTIVE);
});
