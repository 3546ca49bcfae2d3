import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { type Skill as SkillMessage, Skills, SkillScope, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { until } from '@etude/test-support/until';
import { status } from '@grpc/grpc-js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type KeyName, refusal } from './gateway.harness.js';
import { ADD_NUMBERS, ADD_THREE, addingDraft, callOf, DOUBLE_IT, type Draft, folderOf } from './skill-drafts.js';
import { skillsForFile } from './skill-workers.js';

const rig = skillsForFile();
const skills = (key: KeyName = 'acme') => rig.client(Skills, key);
const agent = 'coder';
const { ARCHIVED } = SkillStatus;
const register = (skill: Draft, key?: KeyName) => skills(key).registerSkill({ skill, wait: true });

describe('a registration', () => {
  it('returns the candidate at once without `wait`, and the same version to a repeat', async () => {
    const request = { skill: addingDraft('add_later'), requestId: 'register-1' };
    const first = await skills().registerSkill(request);
    expect(first).toMatchObject({ version: 1 });
    expect(await skills().registerSkill(request)).toMatchObject({ version: 1, digest: first.digest });
    expect(await skills().registerSkill({ ...request, requestId: '' })).toMatchObject({ version: 1 });
    const other = { skill: addingDraft('add_later', { description: 'Adds.' }), requestId: 'register-1' };
    expect((await refusal(skills().registerSkill(other))).code).toBe('ALREADY_EXISTS');
  });

  it('needs the role of a reviewer for shared skills, and of an operator for all tenants', async () => {
    const shared = addingDraft('add_for_all', { agent: '', scope: SkillScope.TENANT });
    expect((await refusal(skills().registerSkill({ skill: shared }))).status).toBe(status.PERMISSION_DENIED);
    expect(await skills('rev').registerSkill({ skill: shared })).toMatchObject({ scope: SkillScope.TENANT, agent: '@tenant' });
    const everybodys = addingDraft('add_for_everybody', { agent: '', scope: SkillScope.GLOBAL });
    expect((await refusal(skills('rev').registerSkill({ skill: everybodys }))).status).toBe(status.PERMISSION_DENIED);
    const anns = addingDraft('add_for_ann', { user: 'ann', scope: SkillScope.USER });
    expect(await skills().registerSkill({ skill: anns })).toMatchObject({ scope: SkillScope.USER, agent: '@user', user: 'ann' });
  });

  it.each([
    ['no draft', undefined, 'skill'],
    ['no agent', addingDraft('x', { agent: '' }), 'skill.agent'],
    ['no code', addingDraft('x', { code: '' }), 'skill.code'],
    ['an empty test', addingDraft('x', { tests: [{}] }), 'skill.tests[0]'],
    [
      'a test without an expected value',
      addingDraft('x', { tests: [{ test: { case: 'call', value: {} } }] }),
      'skill.tests[0].call.expected',
    ],
    [
      'a parameter that the code does not have',
      addingDraft('x', { parameters: [{ name: 'c', type: 'int', required: true }] }),
      'skill.parameters',
    ],
    ['a user’s scope without user', addingDraft('x', { scope: SkillScope.USER }), 'skill.user'],
    ['code that is too long', addingDraft('x', { code: `#${'x'.repeat(400_001)}` }), 'skill.code'],
  ])('refuses %s', async (_what, skill, field) => {
    const refused = await refusal(skills().registerSkill(skill === undefined ? {} : { skill }));
    expect(refused.status).toBe(status.INVALID_ARGUMENT);
    expect(refused.fields).toContain(field);
  });
});

describe('verifying again', () => {
  beforeAll(() => register(ADD_NUMBERS));

  it('is refused for archived skills, and to users for shared skills and skills of other tenants', async () => {
    await register(addingDraft('put_away', { agent: 'archivist' }));
    await skills('rev').archiveSkill({ name: 'skills/put_away', agent: 'archivist' });
    expect((await refusal(skills().verifySkill({ name: 'skills/put_away', agent: 'archivist' }))).status).toBe(status.FAILED_PRECONDITION);
    const shared = { ...addingDraft('used_by_all', { agent: '' }), scope: SkillScope.TENANT };
    await register(shared, 'rev');
    expect((await refusal(skills().verifySkill({ name: 'skills/used_by_all', agent }))).status).toBe(status.PERMISSION_DENIED);
    expect((await skills('rev').verifySkill({ name: 'skills/used_by_all', agent })).status).toBe(SkillStatus.ACTIVE);
    expect((await refusal(skills('globex').verifySkill({ name: 'skills/add_numbers', agent }))).status).toBe(status.NOT_FOUND);
  });

  it.each([
    ['reviewers', '@tenant', SkillScope.TENANT, 'acme', 'rev'],
    ['operators', '@global', SkillScope.GLOBAL, 'rev', 'ops'],
  ] as const)('lets only %s verify a shared skill', async (_role, owner, scope, other, own) => {
    const named = { name: 'skills/shared_no_more', agent: owner };
    await register(addingDraft('shared_no_more', { agent: '', scope, tests: [callOf([1, 2], 4)] }), own);
    expect((await refusal(skills(other).verifySkill(named))).status).toBe(status.PERMISSION_DENIED);
    expect((await refusal(skills('globex').verifySkill(named))).status).toBe(
      scope === SkillScope.GLOBAL ? status.PERMISSION_DENIED : status.NOT_FOUND,
    );
    expect((await skills(own).verifySkill(named)).status).toBe(SkillStatus.REJECTED);
  });
});

const EGGS = { 'SKILL.md': '---\nname: boil-eggs\ndescription: Boils eggs.\n---\n\nBoil.\n' };
const send = (requestId: string) => skills().importSkill(folderOf({ agent, requestId }, EGGS));

it('a repeated import returns the current state of the skills that the first import stored', async () => {
  const first = await send('import-1');
  await skills('rev').archiveSkill({ name: 'skills/boil_eggs', agent });
  const again = await send('import-1');
  expect(again).toMatchObject({ skills: [{ name: 'skills/boil_eggs', version: 1, status: ARCHIVED }], notes: first.notes });
  expect((await refusal(send('import-2'))).code).toBe('FAILED_PRECONDITION');
});

function registered(name: string, code: string, { key = 'acme', of = agent }: { key?: KeyName; of?: string } = {}) {
  const draft = { name, agent: of, description: `Does what ${name} does.`, code, tests: [callOf([1], 2), callOf([7], 8)] };
  return skills(key).registerSkill({ skill: draft, wait: true });
}

const step = (name: string, body: string) => `def ${name}(n: int) -> int:\n    return ${body}\n`;
const shown = (skill: SkillMessage | undefined) =>
  JSON.stringify(skill, (_key, one: unknown) => (typeof one === 'bigint' ? String(one) : one));

describe('a promoted skill', () => {
  it('is verified for its new readers, waits for review, and hides private skills that called the original', async () => {
    await registered('step', step('step', 'n + 1'));
    await registered('secret_project', `from skills import step\n\ndef secret_project(n: int) -> int:\n    return step(n)\n`);
    const own = await registered('step', step('step', '1 + n'));
    expect(shown(own)).toContain('secret_project');
    const asked = { name: 'skills/step', agent: 'coder', scope: SkillScope.TENANT };
    const copy = await skills('rev').promoteSkill(asked);
    expect(copy).toMatchObject({ agent: '@tenant', scope: SkillScope.TENANT, status: SkillStatus.PENDING_REVIEW, digest: own.digest });
    expect(copy.statusReason).toContain('it was promoted');
    expect(copy.history[0]).toMatchObject({ by: 'rev', reason: 'shared by rev' });
    expect(shown(copy)).not.toContain('secret_project');
    expect(shown(copy)).not.toContain('coder');
    expect(await skills('rev').promoteSkill(asked)).toMatchObject({ version: copy.version, status: SkillStatus.PENDING_REVIEW });
    await skills('rev').approveSkill({ name: 'skills/step', agent: '@tenant', digest: copy.digest });
    expect(await skills('acme').getSkill({ name: 'skills/step', agent: 'elsewhere' })).toMatchObject({ scope: SkillScope.TENANT });
  });

  it('is shared with every tenant by operators only, and only operators see its tests', async () => {
    await registered('jump', step('jump', 'n + 1'));
    const wide = { name: 'skills/jump', agent: 'coder', scope: SkillScope.GLOBAL };
    expect((await refusal(skills('rev').promoteSkill(wide))).status).toBe(status.PERMISSION_DENIED);
    const { digest } = await skills('ops').promoteSkill(wide);
    const named = { name: 'skills/jump', agent: '@global' };
    expect((await refusal(skills('rev').approveSkill({ ...named, digest }))).status).toBe(status.PERMISSION_DENIED);
    await skills('ops').approveSkill({ ...named, digest });
    expect(await skills('globex').getSkill({ name: 'skills/jump', agent: 'x' })).toMatchObject({ scope: SkillScope.GLOBAL });
    const code = 'from skills import jump\n\ndef globex_project(n: int) -> int:\n    return jump(n)\n';
    expect(await registered('globex_project', code, { key: 'globex' })).toMatchObject({ status: SkillStatus.ACTIVE });
    const review = await skills('rev').getSkillReview(named);
    expect(review).toMatchObject({ tests: [], dependents: [] });
    expect((await skills('ops').getSkillReview(named)).tests).toHaveLength(2);
    expect(await refusal(skills('rev').promoteSkill({ ...named, agent: 'coder', scope: SkillScope.AGENT }))).toMatchObject({
      fields: ['scope'],
    });
  });
});

const imported = (files: Readonly<Record<string, string>>) => skills().importSkill(folderOf({ agent: 'adder' }, files));

const UNSETTLED: ReadonlySet<SkillStatus> = new Set([SkillStatus.CANDIDATE, SkillStatus.VERIFIED]);

const settled = (name: string) =>
  until(async () => {
    const skill = await skills().getSkill({ name, agent: 'adder' });
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
    'a_plus_two calls skills.plus_one, but its readers see no active skill of that name; register or promote that skill first, or remove the call; then',
  );
  const { digest } = await settled('skills/plus_one');
  await rig.client(Skills, 'rev').approveSkill({ name: 'skills/plus_one', agent: 'adder', digest });
  const second = await imported(files);
  expect(second.skills.map(({ name, version }) => [name, version])).toEqual([
    ['skills/a_plus_two', 1],
    ['skills/plus_one', 1],
  ]);
  expect(second.notes.join('\n')).not.toContain('then import the same files again');
  expect(await settled('skills/a_plus_two')).toMatchObject({
    status: SkillStatus.PENDING_REVIEW,
    proof: { testsPassed: 1 },
    dependencies: [{ name: 'skills/plus_one' }],
  });
});

const use = (more: object = {}, key: KeyName = 'acme') =>
  skills(key).useSkill({ name: 'skills/add_numbers', agent, parameters: { a: 2, b: 3 }, ...more });
const resultOf = (answer: { result?: { kind: { value?: unknown } } | undefined }) => answer.result?.kind.value;

describe('a use', () => {
  beforeAll(async () => {
    for (const draft of [ADD_NUMBERS, ADD_THREE, DOUBLE_IT]) await register(draft);
  });

  it('runs the skill without a model, and fills in default arguments', async () => {
    const used = await use();
    expect(used).toMatchObject({ success: true, name: 'skills/add_numbers', version: 1, error: '' });
    expect(resultOf(used)).toBe(5);
    expect(resultOf(await use({ parameters: { a: 4 } }))).toBe(5);
    expect(resultOf(await use({ agent: '' }))).toBe(5);
    const three = await use({ name: 'skills/add_three', parameters: { a: 1, b: 2, c: 3 } });
    expect(resultOf(three)).toBe(6);
    const program = await use({ name: 'skills/double_it', parameters: {}, stdin: '4' });
    expect(program).toMatchObject({ success: true, output: expect.stringContaining('8') as string });
  });

  it('is counted once per request id, and refuses another body under that id', async () => {
    const code = 'def halve(x: int) -> float:\n    if x < 0:\n        raise ValueError("negative")\n    return x / 2\n';
    await register(addingDraft('halve', { code, tests: [callOf([4], 2), callOf([10], 5)] }));
    const request = { name: 'skills/halve', parameters: { x: 8 }, requestId: 'use-1' };
    expect(resultOf(await use(request))).toBe(4);
    expect(resultOf(await use(request))).toBe(4);
    expect(await refusal(use({ ...request, parameters: { x: 9 } }))).toMatchObject({ code: 'ALREADY_EXISTS' });
    expect(await refusal(use({ ...request, user: 'bob' }))).toMatchObject({ code: 'ALREADY_EXISTS' });
    const failed = await use({ name: 'skills/halve', parameters: { x: -1 } });
    expect(failed).toMatchObject({ success: false, error: expect.stringContaining('negative') as string });
    await expect
      .poll(async () => skills().getSkill({ name: 'skills/halve', agent }))
      .toMatchObject({ usedCount: 2n, executionCount: 1n, failures: [{ error: expect.stringContaining('negative') as string }] });
  });

  it('is refused if skills are off for the agent', async () => {
    const off = { name: 'agents/off', proceduralMemorySettings: { enabled: false, approvalMode: 'review' } };
    await rig.client(Agents, 'rev').updateAgent({ agent: off });
    expect(await refusal(use({ agent: 'off', requestId: 'no name' }))).toMatchObject({ fields: ['request_id'] });
    const refused = await refusal(use({ agent: 'off' }));
    expect(refused).toMatchObject({ status: status.FAILED_PRECONDITION });
    expect(refused.message).toContain('enabled');
  });

  it('loads functions as code, with the skills that they call', async () => {
    const loaded = await skills().loadFunctions({ names: ['add_three', 'skills/add_numbers'], agent });
    expect(loaded.functions).toMatchObject([{ name: 'skills/add_three', version: 1 }, { name: 'skills/add_numbers' }]);
    expect(loaded.functions[0]?.signature).toContain('def add_three(a: int');
    expect(loaded.code).toContain('add_numbers');
  });
});
