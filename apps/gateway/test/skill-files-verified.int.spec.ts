import { Readable } from 'node:stream';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { TestProcess } from '@etude/test-support/processes';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { GatewayRig } from './gateway.harness.js';
import { writeProofKeys } from './skill-store.js';
import { startWorkers } from './skill-workers.js';

const rig = new GatewayRig();
const { signingPath, publicPath } = writeProofKeys(rig.dir);
const skills = () => rig.client(Skills);
let workers: readonly TestProcess[] = [];

/** Whoever approves automatically does not approve what was imported. */
const settings = {
  ETUDE_SKILLS_PUBLIC_KEYS_PATH: publicPath,
  ETUDE_SKILLS_ENABLED: 'true',
  ETUDE_SKILLS_AUTO_REGISTER: 'true',
  ETUDE_SKILLS_APPROVAL: 'automatic',
};

beforeAll(async () => {
  await rig.start(settings);
  workers = await startWorkers(rig, ['sandbox-controller', 'consolidation-worker'], {
    ...settings,
    ETUDE_SKILLS_SIGNING_KEY_PATH: signingPath,
  });
}, 120_000);
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await rig.stop();
});

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

async function settled(name: string) {
  const get = () => skills().getSkill({ name, agent: 'adder' });
  await until(async () => (await get()).status !== SkillStatus.CANDIDATE && (await get()).status !== SkillStatus.VERIFIED, {
    timeoutMs: 60_000,
  });
  return get();
}

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
}, 120_000);
