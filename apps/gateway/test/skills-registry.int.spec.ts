import type { MessageInitShape } from '@bufbuild/protobuf';
import { type SkillDraftSchema, Skills, SkillScope, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import type { TestProcess } from '@etude/test-support/processes';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GatewayRig, type KeyName, refusal } from './gateway.harness.js';
import { writeProofKeys } from './skill-store.js';
import { startWorkers } from './skill-workers.js';

const rig = new GatewayRig();
const { signingPath, publicPath } = writeProofKeys(rig.dir);
const skills = (key: KeyName = 'acme') => rig.client(Skills, key);
const agent = 'coder';
let workers: TestProcess[] = [];
beforeAll(async () => {
  const settings = { ETUDE_SKILLS_ENABLED: 'true', ETUDE_SKILLS_APPROVAL: 'automatic', ETUDE_SKILLS_PUBLIC_KEYS_PATH: publicPath };
  await rig.start(settings);
  workers = await startWorkers(rig, ['sandbox-controller', 'consolidation-worker'], {
    ...settings,
    ETUDE_SKILLS_SIGNING_KEY_PATH: signingPath,
  });
}, 240_000);
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await rig.stop();
});

type Draft = Exclude<MessageInitShape<typeof SkillDraftSchema>, { readonly $typeName: string }>;

const ADD =
  'def add(a: int, b: int = 1) -> int:\n    """Adds two numbers.\n\n    Args:\n        a: the first\n    """\n    if a > 100:\n        return a - b\n    return a + b\n';
const value = (number: number) => ({ kind: { case: 'numberValue', value: number } }) as const;
const callOf = (args: number[], expected: number) =>
  ({ test: { case: 'call', value: { args: { values: args.map(value) }, expected: value(expected) } } }) as const;
const runOf = (stdin: string, expectedStdout: string) => ({ test: { case: 'program', value: { stdin, expectedStdout } } }) as const;
const draftOf = (name: string, more: Draft = {}): Draft => ({
  name,
  agent,
  description: 'Adds two numbers.',
  code: ADD,
  tests: [callOf([1, 2], 3), callOf([101, 1], 100), callOf([4], 5)],
  ...more,
});

const setAgent = (name: string, proceduralMemorySettings: object) =>
  rig.client(Agents, 'rev').updateAgent({ agent: { name: `agents/${name}`, proceduralMemorySettings } });
const use = (more: object = {}, key: KeyName = 'acme') =>
  skills(key).useSkill({ name: 'skills/add_numbers', agent, parameters: { a: 2, b: 3 }, ...more });
const resultOf = (answer: { result?: { kind: { value?: unknown } } | undefined }) => answer.result?.kind.value;

describe('a registration', () => {
  it('reads the contract, verifies, signs and settles while its caller waits', async () => {
    const skill = await skills().registerSkill({ skill: draftOf('add_numbers', { tags: ['math'] }), wait: true });
    expect(skill).toMatchObject({
      status: SkillStatus.ACTIVE,
      version: 1,
      kind: 'function',
      entryPoint: 'add',
      origin: 'person',
      testCount: 3,
    });
    expect(skill.parameters).toMatchObject([
      { name: 'a', type: 'int', required: true },
      { name: 'b', type: 'int', required: false },
    ]);
    expect(skill.inputSchema).toMatchObject({ type: 'object' });
    expect(skill.proof?.signature).not.toBe('');
    expect(skill.history[0]).toMatchObject({ by: 'acme', to: SkillStatus.CANDIDATE });
    expect(skill.successRate).toBe(1);
  });

  it('answers the candidate at once where nobody waits, and the same to a repeat', async () => {
    const request = { skill: draftOf('add_later'), requestId: 'register-1' };
    const first = await skills().registerSkill(request);
    expect(first).toMatchObject({ version: 1 });
    expect(await skills().registerSkill(request)).toMatchObject({ version: 1, digest: first.digest });
    expect(await skills().registerSkill({ ...request, requestId: '' })).toMatchObject({ version: 1 });
    const other = { skill: draftOf('add_later', { description: 'Adds.' }), requestId: 'register-1' };
    expect((await refusal(skills().registerSkill(other))).code).toBe('ALREADY_EXISTS');
  });

  it('takes an edit of the newest version only, and says what changed since', async () => {
    const first = await skills().registerSkill({ skill: draftOf('edited'), wait: true });
    const edited = draftOf('edited', { code: `${ADD}\n\nLIMIT = 100\n` });
    expect(await skills().registerSkill({ skill: edited, baseVersion: first.version, wait: true })).toMatchObject({ version: 2 });
    const stale = await refusal(skills().registerSkill({ skill: draftOf('edited', { code: `${ADD}\n\nOTHER = 1\n` }), baseVersion: 1 }));
    expect(stale).toMatchObject({ status: status.ABORTED });
    expect(stale.message).toContain('changed code');
  });

  it.each([
    ['does not parse', 'def broken(:\n    pass', 'line 1'],
    ['has nothing to call', 'VALUE = [1, 2]\n\ndef one(): return 1\n\ndef two(): return 2', ''],
    ['does things at import', 'print("hello")\n\ndef greet(name: str) -> str:\n    return name', 'line 1'],
  ])('refuses code that %s, with the line', async (_what, code, line) => {
    const refused = await refusal(skills().registerSkill({ skill: draftOf('refused', { code, tests: [] }) }));
    expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT, fields: [expect.stringContaining('skill.code') as string] });
    expect(refused.message).toContain(line);
    expect((await refusal(skills().getSkill({ name: 'skills/refused', agent }))).status).toBe(status.NOT_FOUND);
  });

  it('takes a class for a snippet, and a program for what it is', async () => {
    const stack = draftOf('stack_class', { code: 'class Stack:\n    def push(self, x): ...\n', tests: [] });
    expect(await skills().registerSkill({ skill: stack })).toMatchObject({ kind: 'snippet' });
    const called = await refusal(skills().registerSkill({ skill: draftOf('no_snippet', { kind: 'snippet', tests: [] }) }));
    expect(called).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['skill.kind'] });
    const code = 'n = int(input())\nif n > 10:\n    print(n * 3)\nelse:\n    print(n * 2)\n';
    const program = draftOf('double_it', { code, isProgram: true, tests: [runOf('2', '4'), runOf('20', '60')] });
    expect(await skills().registerSkill({ skill: program, wait: true })).toMatchObject({ entryPoint: '', status: SkillStatus.ACTIVE });
  });

  it('rejects what its own tests refute, with the reason', async () => {
    const wrong = draftOf('wrong', { tests: [callOf([1, 2], 4)] });
    const skill = await skills().registerSkill({ skill: wrong, wait: true });
    expect(skill.status).toBe(SkillStatus.REJECTED);
    expect(skill.statusReason).toMatch(/tests fail/);
  });

  it('pins the skills that it calls, and refuses one that is not there', async () => {
    const code =
      'from skills import add_numbers\n\ndef add_three(a: int, b: int, c: int) -> int:\n    return add_numbers(add_numbers(a, b), c)\n';
    const skill = draftOf('add_three', { code, tests: [callOf([1, 2, 3], 6), callOf([5, 5, 5], 15)] });
    const stored = await skills().registerSkill({ skill, wait: true });
    expect(stored.dependencies).toMatchObject([{ name: 'skills/add_numbers', version: 1 }]);
    const missing = draftOf('needs_more', { code: code.replaceAll('add_numbers', 'nothing_such'), tests: [] });
    const refused = await refusal(skills().registerSkill({ skill: missing }));
    expect(refused).toMatchObject({ status: status.FAILED_PRECONDITION });
    expect(refused.message).toContain('nothing_such');
  });

  it('for more readers is for reviewers, and for all tenants for operators', async () => {
    const shared = draftOf('add_for_all', { agent: '', scope: SkillScope.TENANT });
    expect((await refusal(skills().registerSkill({ skill: shared }))).status).toBe(status.PERMISSION_DENIED);
    expect(await skills('rev').registerSkill({ skill: shared })).toMatchObject({ scope: SkillScope.TENANT, agent: '@tenant' });
    const everybodys = draftOf('add_for_everybody', { agent: '', scope: SkillScope.GLOBAL });
    expect((await refusal(skills('rev').registerSkill({ skill: everybodys }))).status).toBe(status.PERMISSION_DENIED);
    const anns = draftOf('add_for_ann', { user: 'ann', scope: SkillScope.USER });
    expect(await skills().registerSkill({ skill: anns })).toMatchObject({ scope: SkillScope.USER, agent: '@user', user: 'ann' });
  });

  it('is refused where the agent learns no skills, or has as many as it may', async () => {
    await setAgent('off', { enabled: false, approvalMode: 'review' });
    await setAgent('small', { enabled: true, maxSkills: 1, approvalMode: 'review' });
    const off = await refusal(skills().registerSkill({ skill: draftOf('add_off', { agent: 'off' }) }));
    expect(off.message).toContain('enabled');
    await skills().registerSkill({ skill: draftOf('add_small', { agent: 'small' }) });
    const full = await refusal(skills().registerSkill({ skill: draftOf('add_more', { agent: 'small' }) }));
    expect(full).toMatchObject({ status: status.FAILED_PRECONDITION });
    expect(full.message).toContain('max_skills');
  });

  it.each([
    ['no draft', undefined, 'skill'],
    ['a name of capitals', draftOf('Upper'), 'skill.name'],
    ['no agent', draftOf('x', { agent: '' }), 'skill.agent'],
    ['no description', draftOf('x', { description: ' ' }), 'skill.description'],
    ['no code', draftOf('x', { code: '' }), 'skill.code'],
    ['a kind of its own', draftOf('x', { kind: 'spell' }), 'skill.kind'],
    ['a category with capitals', draftOf('x', { category: 'Text' }), 'skill.category'],
    ['a package without version', draftOf('x', { packages: ['numpy'] }), 'skill.packages[0]'],
    ['too many tags', draftOf('x', { tags: Array.from({ length: 51 }, (_, i) => `t${i}`) }), 'skill.tags'],
    ['a test of nothing', draftOf('x', { tests: [{}] }), 'skill.tests[0]'],
    ['a test that expects nothing', draftOf('x', { tests: [{ test: { case: 'call', value: {} } }] }), 'skill.tests[0].call.expected'],
    ['a parameter that the code has not', draftOf('x', { parameters: [{ name: 'c', type: 'int', required: true }] }), 'skill.parameters'],
    ['a user’s scope without user', draftOf('x', { scope: SkillScope.USER }), 'skill.user'],
    ['code that is too long', draftOf('x', { code: `#${'x'.repeat(400_001)}` }), 'skill.code'],
  ])('refuses %s', async (_what, skill, field) => {
    const refused = await refusal(skills().registerSkill(skill === undefined ? {} : { skill }));
    expect(refused.status).toBe(status.INVALID_ARGUMENT);
    expect(refused.fields).toContain(field);
  });
});

describe('a check', () => {
  it('says what verification finds, and stores nothing', async () => {
    const found = await skills().checkSkill({ skill: draftOf('add_checked') });
    expect(found).toMatchObject({ passed: true, reason: '' });
    expect(found.mutantsNoticed).toBeGreaterThan(0);
    expect(found.parameters).toHaveLength(2);
    expect((await refusal(skills().getSkill({ name: 'skills/add_checked', agent }))).status).toBe(status.NOT_FOUND);
    const dangerous = draftOf('runs', { code: 'import os\n\ndef runs(x: str) -> int:\n    return os.system(x)\n', tests: [] });
    const wrong = await skills().checkSkill({ skill: dangerous });
    expect(wrong.passed).toBe(false);
  });
});

describe('another verification', () => {
  it('of a rejected skill starts over, once per request', async () => {
    const wrong = draftOf('wrong_again', { tests: [callOf([1, 2], 4)] });
    await skills().registerSkill({ skill: wrong, wait: true });
    const request = { name: 'skills/wrong_again', agent, requestId: 'verify-1' };
    const again = await skills().verifySkill(request);
    expect(again.status).toBe(SkillStatus.REJECTED);
    expect(again.history.map(({ to }) => to)).toEqual([
      SkillStatus.CANDIDATE,
      SkillStatus.REJECTED,
      SkillStatus.CANDIDATE,
      SkillStatus.REJECTED,
    ]);
    expect((await skills().verifySkill(request)).history).toHaveLength(4);
  });

  it('of what is in use leaves it there with new evidence, once per request', async () => {
    const before = await skills().getSkill({ name: 'skills/add_numbers', agent });
    const request = { name: 'skills/add_numbers', agent, requestId: 'verify-2' };
    const again = await skills().verifySkill(request);
    expect(again).toMatchObject({ status: SkillStatus.ACTIVE, version: before.version, digest: before.digest });
    expect(again.history.slice(before.history.length)).toMatchObject([
      { from: SkillStatus.ACTIVE, to: SkillStatus.ACTIVE, by: 'verification' },
    ]);
    expect(again.proof?.verifyTime).not.toEqual(before.proof?.verifyTime);
    expect((await skills().verifySkill(request)).history).toHaveLength(again.history.length);
  });

  it('of what waits for review lets it wait', async () => {
    await setAgent('reviewing', { enabled: true, approvalMode: 'review' });
    await skills().registerSkill({ skill: draftOf('reviewed_twice', { agent: 'reviewing' }), wait: true });
    const again = await skills().verifySkill({ name: 'skills/reviewed_twice', agent: 'reviewing' });
    expect(again.status).toBe(SkillStatus.PENDING_REVIEW);
    expect(again.history.at(-1)).toMatchObject({ from: SkillStatus.PENDING_REVIEW, to: SkillStatus.PENDING_REVIEW });
  });

  it('is refused of what was archived, of what all agents use, and of what another tenant has', async () => {
    await skills().registerSkill({ skill: draftOf('put_away', { agent: 'archivist' }), wait: true });
    await skills('rev').archiveSkill({ name: 'skills/put_away', agent: 'archivist' });
    expect((await refusal(skills().verifySkill({ name: 'skills/put_away', agent: 'archivist' }))).status).toBe(status.FAILED_PRECONDITION);
    const shared = { ...draftOf('used_by_all', { agent: '' }), scope: SkillScope.TENANT };
    await skills('rev').registerSkill({ skill: shared, wait: true });
    expect((await refusal(skills().verifySkill({ name: 'skills/used_by_all', agent }))).status).toBe(status.PERMISSION_DENIED);
    expect((await skills('rev').verifySkill({ name: 'skills/used_by_all', agent })).status).toBe(SkillStatus.ACTIVE);
    expect((await refusal(skills('globex').verifySkill({ name: 'skills/add_numbers', agent }))).status).toBe(status.NOT_FOUND);
  });

  it('of what a person rejected is for reviewers, and then waits for one', async () => {
    const named = { name: 'skills/unwanted', agent: 'reviewing' };
    await skills().registerSkill({ skill: draftOf('unwanted', { agent: 'reviewing' }), wait: true });
    await skills('rev').rejectSkill({ ...named, reason: 'nobody wants it' });
    await setAgent('reviewing', { enabled: true, approvalMode: 'automatic' });
    expect((await refusal(skills().verifySkill(named))).status).toBe(status.PERMISSION_DENIED);
    const again = await skills('rev').verifySkill(named);
    expect(again).toMatchObject({ status: SkillStatus.PENDING_REVIEW, statusReason: 'waits for review: somebody rejected it' });
  });

  it.each([
    ['reviewers', '@tenant', SkillScope.TENANT, 'acme', 'rev'],
    ['operators', '@global', SkillScope.GLOBAL, 'rev', 'ops'],
  ] as const)('of what is shared is for its %s', async (_whose, owner, scope, other, own) => {
    const named = { name: 'skills/shared_no_more', agent: owner };
    await skills(own).registerSkill({ skill: draftOf('shared_no_more', { agent: '', scope, tests: [callOf([1, 2], 4)] }), wait: true });
    expect((await refusal(skills(other).verifySkill(named))).status).toBe(status.PERMISSION_DENIED);
    expect((await refusal(skills('globex').verifySkill(named))).status).toBe(
      scope === SkillScope.GLOBAL ? status.PERMISSION_DENIED : status.NOT_FOUND,
    );
    expect((await skills(own).verifySkill(named)).status).toBe(SkillStatus.REJECTED);
  });

  it('is a reviewer’s way back to a revoked skill', async () => {
    const named = { name: 'skills/revoked', agent };
    const { digest } = await skills().registerSkill({ skill: draftOf('revoked', { sources: ['documents/d1'] }), wait: true });
    await skills('rev').approveSkill({ ...named, digest });
    await skills('rev').revokeSource({ source: 'documents/d1' });
    expect(await skills('rev').restoreSkill(named)).toMatchObject({ status: SkillStatus.DEPRECATED });
    expect((await refusal(skills('rev').rollbackSkill({ ...named, toVersion: 1 }))).status).toBe(status.FAILED_PRECONDITION);
    expect((await refusal(skills().verifySkill({ ...named, version: 1 }))).status).toBe(status.PERMISSION_DENIED);
    const back = await skills('rev').verifySkill({ ...named, version: 1 });
    expect([SkillStatus.ACTIVE, SkillStatus.PENDING_REVIEW]).toContain(back.status);
  });
});

describe('a use', () => {
  it('runs the skill with no model, and fills in what has a default', async () => {
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

  it('names the argument that is wrong', async () => {
    const refused = await refusal(use({ parameters: { a: 'two' } }));
    expect(refused.status).toBe(status.INVALID_ARGUMENT);
    expect(refused.message).toContain('a');
    expect((await refusal(use({ parameters: { b: 2 } }))).status).toBe(status.INVALID_ARGUMENT);
  });

  it('is counted once per request id, whose body stays the same', async () => {
    const code = 'def halve(x: int) -> float:\n    if x < 0:\n        raise ValueError("negative")\n    return x / 2\n';
    await skills().registerSkill({ skill: draftOf('halve', { code, tests: [callOf([4], 2), callOf([10], 5)] }), wait: true });
    const request = { name: 'skills/halve', parameters: { x: 8 }, requestId: 'use-1' };
    expect(resultOf(await use(request))).toBe(4);
    expect(resultOf(await use(request))).toBe(4);
    expect(await refusal(use({ ...request, parameters: { x: 9 } }))).toMatchObject({ code: 'ALREADY_EXISTS' });
    expect(await refusal(use({ ...request, user: 'bob' }))).toMatchObject({ code: 'ALREADY_EXISTS' });
    const failed = await use({ name: 'skills/halve', parameters: { x: -1 } });
    expect(failed).toMatchObject({ success: false, error: expect.stringContaining('negative') as string });
    await expect
      .poll(async () => skills().getSkill({ name: 'skills/halve', agent }), { timeout: 20_000 })
      .toMatchObject({ usedCount: 2n, executionCount: 1n, failures: [{ error: expect.stringContaining('negative') as string }] });
  });

  it('that was refused leaves its request id to the call that is put right', async () => {
    const requestId = 'use-put-right';
    expect(await refusal(use({ parameters: { a: 'x' }, requestId }))).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await use({ parameters: { a: 2, b: 7 }, requestId })).toMatchObject({ success: true, version: 1 });
    expect(await refusal(use({ parameters: { a: 2, b: 8 }, requestId }))).toMatchObject({ code: 'ALREADY_EXISTS' });
  });

  it('that comes again runs the version that it ran first', async () => {
    const name = 'add_again';
    // Another skill with the code of `ADD` is marked by now.
    const own = draftOf(name, { code: ADD.replace('Adds two', 'Adds any two') });
    const first = await skills().registerSkill({ skill: own, wait: true });
    const again = { name: `skills/${name}`, requestId: 'use-again' };
    expect(await use(again)).toMatchObject({ version: 1 });
    const draft = draftOf(name, { code: ADD.replace('Adds two', 'Adds up two') });
    const second = await skills().registerSkill({ skill: draft, baseVersion: first.version, wait: true });
    expect(second).toMatchObject({ version: 2, status: SkillStatus.ACTIVE });
    expect(await use(again)).toMatchObject({ version: 1 });
    expect(await use({ name: `skills/${name}` })).toMatchObject({ version: 2 });
  });

  it('puts what has no name for Python in its place, and answers as the schema says', async () => {
    const code = 'def spread(least: int, /, *more: int) -> set[int]:\n    return {least + one for one in more}\n';
    const listOf = (...members: number[]) => ({ kind: { case: 'listValue', value: { values: members.map(value) } } }) as const;
    const calls = [
      { args: [1, 2, 3], expected: listOf(3, 4) },
      { args: [5, 0, 0], expected: listOf(5) },
    ];
    const tests = calls.map(
      ({ args, expected }) => ({ test: { case: 'call', value: { args: { values: args.map(value) }, expected } } }) as const,
    );
    const spread = await skills().registerSkill({ skill: draftOf('spread', { code, tests }), wait: true });
    expect(spread).toMatchObject({ status: SkillStatus.ACTIVE, outputSchema: { type: 'array', items: { type: 'integer' } } });
    const parameters = { least: 10, more: [1, 2, 2] };
    expect(resultOf(await use({ name: 'skills/spread', parameters }))).toMatchObject({ values: [11, 12].map(value) });
    expect((await refusal(use({ name: 'skills/spread', parameters: { least: 1, more: ['x'] } }))).fields).toEqual(['parameters.more.0']);
  });

  it('of a skill that is missing asks for it', async () => {
    const missing = await use({ name: 'skills/nothing_such' });
    expect(missing).toMatchObject({ success: false, error: 'Skill not found', skillRequestSubmitted: true });
    expect(missing.wantedSkill).toMatch(/^wantedSkills\/w/);
    expect((await use({ name: 'skills/nothing_such' })).wantedSkill).toBe(missing.wantedSkill);
  });

  it('of a misspelled name asks for nothing, and says what was meant', async () => {
    const near = await use({ name: 'skills/spraed' });
    expect(near).toMatchObject({ success: false, error: expect.stringContaining('did you mean "spread"?') as string });
    expect(near).toMatchObject({ skillRequestSubmitted: false, wantedSkill: '' });
  });

  it('makes its agent an active one, whose wishes go before those of others', async () => {
    const wish = (name: string) => skills().requestSkill({ name, agent: 'waking', description: '' });
    expect(await wish('asked_before')).toMatchObject({ priority: 5 });
    const { wantedSkill } = await use({ name: 'skills/nothing_there', agent: 'waking' });
    expect(await skills().getWantedSkill({ name: wantedSkill })).toMatchObject({ priority: 7, agent: 'waking' });
    expect(await wish('asked_behind')).toMatchObject({ priority: 7 });
  });

  it('of another tenant’s skill finds nothing', async () => {
    expect(await use({}, 'globex')).toMatchObject({ success: false, error: 'Skill not found' });
    expect(await use({ agent: 'other' })).toMatchObject({ success: false });
  });

  it('is refused where skills are switched off', async () => {
    const refused = await refusal(use({ agent: 'off' }));
    expect(refused).toMatchObject({ status: status.FAILED_PRECONDITION });
    expect(refused.message).toContain('enabled');
  });
});

describe('functions to load', () => {
  it('come as code with all that they need', async () => {
    const loaded = await skills().loadFunctions({ names: ['add_three', 'skills/add_numbers'], agent });
    expect(loaded.functions).toMatchObject([{ name: 'skills/add_three', version: 1 }, { name: 'skills/add_numbers' }]);
    expect(loaded.functions[0]?.signature).toContain('def add_three(a: int');
    expect(loaded.code).toContain('add_numbers');
  });

  it('that are missing are named', async () => {
    const refused = await refusal(skills().loadFunctions({ names: ['add_three', 'nothing_such'], agent }));
    expect(refused).toMatchObject({ status: status.NOT_FOUND });
    expect(refused.message).toContain('nothing_such');
    expect((await refusal(skills().loadFunctions({ names: [], agent }))).fields).toEqual(['names']);
  });
});
