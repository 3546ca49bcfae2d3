import { Readable } from 'node:stream';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { until } from '@etude/test-support/until';
import { expect, it } from 'vitest';
import { skillsForFile } from './skill-workers.js';

/** Automatic approval doesn't cover imported skills. */
const rig = skillsForFile(() => ({ ETUDE_SKILLS_AUTO_REGISTER: 'true' }));
const skills = () => rig.client(Skills);

const imported = (files: Readonly<Record<string, string>>) =>
  skills().importSkill(
    Readable.from([
      { part: { case: 'head' as const, value: { agent: 'adder', format: 'folder' } } },
      ...Object.entries(files).map(([path, text]) => ({ part: { case: 'file' as const, value: { path, data: Buffer.from(text) } } })),
    ]) as AsyncIterable<{ part: { case: 'head'; value: { agent: string; format: string } } }>,
  );

const UNSETTLED: ReadonlySet<SkillStatus> = new Set([SkillStatus.CANDIDATE, SkillStatus.VERIFIED]);

const settled = (name: string, agent = 'adder') =>
  until(async () => {
    const skill = await skills().getSkill({ name, agent });
    return UNSETTLED.has(skill.status) ? null : skill;
  });

/** The files of one skill in a subfolder. */
const skillIn = (folder: string, code: string, tests: string): Record<string, string> => {
  const name = folder.replaceAll('-', '_');
  const head = `---\nname: ${folder}\ndescription: Counts on numbers.\nmetadata:\n  etude-kind: function\n---\n`;
  return { [`${folder}/SKILL.md`]: head, [`${folder}/scripts/${name}.py`]: code, [`${folder}/tests/test_${name}.py`]: tests };
};

it('imports a skill that calls another one after the called skill was approved', async () => {
  const caller = 'from skills import plus_one\n\n\ndef a_plus_two(x: int) -> int:\n    return plus_one(plus_one(x))\n';
  const files = {
    ...skillIn('a-plus-two', caller, 'assert a_plus_two(1) == 3\nassert a_plus_two(-2) == 0\n'),
    ...skillIn('plus-one', 'def plus_one(x: int) -> int:\n    return x + 1\n', 'assert plus_one(1) == 2\nassert plus_one(-1) == 0\n'),
  };
  const first = await imported(files);
  expect(first.skills.map(({ name }) => name)).toEqual(['skills/plus_one']);
  expect(first.notes.join('\n')).toContain(
    'a_plus_two calls skills.plus_one, and there is no active skill of that name that its readers can read; register or promote it first, or take the call out; then',
  );
  const { digest } = await settled('skills/plus_one');
  await rig.client(Skills, 'rev').approveSkill({ name: 'skills/plus_one', agent: 'adder', digest });
  const second = await imported(files);
  expect(second.skills.map(({ name, version }) => [name, version])).toEqual([
    ['skills/a_plus_two', 1],
    ['skills/plus_one', 1],
  ]);
  expect(second.notes.join('\n')).not.toContain('then import the same again');
  expect(await settled('skills/a_plus_two')).toMatchObject({
    status: SkillStatus.PENDING_REVIEW,
    proof: { testsPassed: 1 },
    dependencies: [{ name: 'skills/plus_one' }],
  });
});
