import { Readable } from 'node:stream';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { until } from '@etude/test-support/until';
import { expect, it } from 'vitest';
import { collect, refusal } from './gateway.harness.js';
import { ADD_NUMBERS, ADD_THREE } from './skill-drafts.js';
import { skillsForFile } from './skill-workers.js';

/** Whoever approves automatically does not approve what was imported. */
const rig = skillsForFile(() => ({ ETUDE_SKILLS_AUTO_REGISTER: 'true' }));
const skills = () => rig.client(Skills);

const FOLDER = {
  'SKILL.md': '---\nname: add-up # a remark\ndescription: Adds two numbers.\nmetadata:\n  etude-kind: function\n---\n\n# Adding\n',
  'scripts/add_up.py': 'def add_up(a: int, b: int) -> int:\n    """Adds."""\n    return a + b\n',
  'tests/test_add_up.py': 'assert add_up(1, 2) == 3\nassert add_up(-1, 5) == 4\n',
  'notes.md': 'Nothing.\n',
};

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

it('verifies an imported function by its own tests, lets it wait for review, and gives the same bytes', async () => {
  const [skill] = (await imported(FOLDER)).skills;
  expect(skill).toMatchObject({ kind: 'function', entryPoint: 'add_up', origin: 'import' });
  expect(await settled('skills/add_up')).toMatchObject({ status: SkillStatus.PENDING_REVIEW, proof: { testsPassed: 1 } });
  const { files } = await skills().exportSkill({ name: 'skills/add_up', agent: 'adder' });
  expect(Object.fromEntries(files.map(({ path, data }) => [path, Buffer.from(data).toString()]))).toEqual(FOLDER);
});

it('rejects one whose tests fail, and shows what analysers find in its files', async () => {
  const name = { 'SKILL.md': FOLDER['SKILL.md'].replace('add-up', 'add-wrong') };
  await imported({
    ...name,
    'scripts/add_wrong.py': 'def add_wrong(a, b):\n    return a - b\n',
    'tests/test_x.py': 'assert add_wrong(1, 2) == 3\n',
  });
  expect(await settled('skills/add_wrong')).toMatchObject({ status: SkillStatus.REJECTED });
  const more = { 'SKILL.md': FOLDER['SKILL.md'].replace('add-up', 'add-quietly'), 'scripts/other.py': 'import os\nos.system("ls")\n' };
  const code = FOLDER['scripts/add_up.py'].replace('add_up', 'add_quietly');
  await imported({
    ...more,
    'scripts/add_quietly.py': code,
    'tests/test_x.py': 'assert add_quietly(1, 2) == 3\nassert add_quietly(2, 9) == 11\n',
  });
  const found = (await settled('skills/add_quietly')).proof?.findings ?? [];
  expect(found.map(({ severity, message }) => `${severity} ${message}`)).toContainEqual(
    expect.stringMatching(/^error scripts\/other\.py, line 2: /),
  );
});

/** A folder of one skill, under this one. */
const skillIn = (folder: string, code: string, tests: string): Record<string, string> => {
  const name = folder.replaceAll('-', '_');
  const head = `---\nname: ${folder}\ndescription: Counts on numbers.\nmetadata:\n  etude-kind: function\n---\n`;
  return { [`${folder}/SKILL.md`]: head, [`${folder}/scripts/${name}.py`]: code, [`${folder}/tests/test_${name}.py`]: tests };
};

it('takes skills that call each other one after the other, as they are approved', async () => {
  const caller = 'from skills import plus_one\n\n\ndef a_plus_two(x: int) -> int:\n    return plus_one(plus_one(x))\n';
  const files = {
    ...skillIn('a-plus-two', caller, 'assert a_plus_two(1) == 3\nassert a_plus_two(-2) == 0\n'),
    ...skillIn('plus-one', 'def plus_one(x: int) -> int:\n    return x + 1\n', 'assert plus_one(1) == 2\nassert plus_one(-1) == 0\n'),
  };
  const first = await imported(files);
  expect(first.skills.map(({ name }) => name)).toEqual(['skills/plus_one']);
  expect(first.notes.join('\n')).toContain(
    'a_plus_two waits: it calls plus_one, not active yet; approve plus_one, then import the same again',
  );
  const { digest } = await settled('skills/plus_one');
  await rig.client(Skills, 'rev').approveSkill({ name: 'skills/plus_one', agent: 'adder', digest });
  const second = await imported(files);
  expect(second.skills.map(({ name, version }) => [name, version])).toEqual([
    ['skills/plus_one', 1],
    ['skills/a_plus_two', 1],
  ]);
  expect(second.notes.join('\n')).not.toContain('waits');
  expect(await settled('skills/a_plus_two')).toMatchObject({
    status: SkillStatus.PENDING_REVIEW,
    dependencies: [{ name: 'skills/plus_one' }],
  });
});

const calling = (name: string, other: string) =>
  skillIn(name, `from skills import ${other}\n\n\ndef ${name}(x: int) -> int:\n    return ${other}(x)\n`, `assert ${name}(1) == 1\n`);

it('refuses an import of skills that call each other in a circle', async () => {
  const refused = await refusal(imported({ ...calling('ping', 'pong'), ...calling('pong', 'ping') }));
  expect(refused).toMatchObject({ code: 'FAILED_PRECONDITION', message: expect.stringContaining('ping -> pong -> ping') as string });
});

const TIMEOUT_MS = 120_000;

async function approve(name: string, agent: string): Promise<void> {
  const { digest } = await settled(`skills/${name}`, agent);
  await rig.client(Skills, 'rev').approveSkill({ name: `skills/${name}`, agent, digest });
}

it('has everything of an import wait for review, what is called before what calls it', { timeout: TIMEOUT_MS }, async () => {
  for (const skill of [ADD_NUMBERS, ADD_THREE]) await rig.client(Skills).registerSkill({ skill, wait: true });
  await rig.client(Memory).storeProcedure({ agent: 'coder', name: 'moor_boat', prompt: 'Throw the bow line first.' });
  expect((await settled('skills/add_three', 'coder')).status).toBe(SkillStatus.ACTIVE);
  const lines = (await collect(rig.client(Memory, 'rev').exportMemory({ agent: 'coder' }))).flatMap((sent) => sent.lines);
  const kept = lines.filter((line, i) => i === 0 || line.includes('"kind":"skill"')).map((line) => line.replaceAll('coder', 'guest'));
  const importedAgain = async () => {
    const { added, unchanged, refused } = await rig.client(Memory).importMemory({ lines: kept });
    return [added, unchanged, ...refused.map(({ reason }) => reason.split(',')[0])];
  };
  expect(await importedAgain()).toEqual([2n, 0n, 'add_three waits: it calls add_numbers']);
  expect(await settled('skills/add_numbers', 'guest')).toMatchObject({ status: SkillStatus.PENDING_REVIEW, proof: { testsPassed: 3 } });
  expect(await settled('skills/moor_boat', 'guest')).toMatchObject({
    status: SkillStatus.PENDING_REVIEW,
    description: 'Throw the bow line first.',
  });
  for (const name of ['add_numbers', 'moor_boat']) await approve(name, 'guest');
  expect(await importedAgain()).toEqual([1n, 2n]);
  expect(await settled('skills/add_three', 'guest')).toMatchObject({
    status: SkillStatus.PENDING_REVIEW,
    dependencies: [{ name: 'skills/add_numbers' }],
  });
  await approve('add_three', 'guest');
  expect(await importedAgain()).toEqual([0n, 3n]);
  expect((await settled('skills/moor_boat', 'guest')).status).toBe(SkillStatus.ACTIVE);
});
