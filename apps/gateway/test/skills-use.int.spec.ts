import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { status } from '@grpc/grpc-js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type KeyName, refusal } from './gateway.harness.js';
import { ADD_NUMBERS, ADD_THREE, addingDraft, callOf, DOUBLE_IT, type Draft } from './skill-drafts.js';
import { skillsForFile } from './skill-workers.js';

const rig = skillsForFile();
const skills = (key: KeyName = 'acme') => rig.client(Skills, key);
const agent = 'coder';
const register = (skill: Draft) => skills().registerSkill({ skill, wait: true });
const use = (more: object = {}, key: KeyName = 'acme') =>
  skills(key).useSkill({ name: 'skills/add_numbers', agent, parameters: { a: 2, b: 3 }, ...more });
const resultOf = (answer: { result?: { kind: { value?: unknown } } | undefined }) => answer.result?.kind.value;

beforeAll(async () => {
  for (const draft of [ADD_NUMBERS, ADD_THREE, DOUBLE_IT]) await register(draft);
});

describe('a use', () => {
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
});

it('loads functions as code, with the skills that they call', async () => {
  const loaded = await skills().loadFunctions({ names: ['add_three', 'skills/add_numbers'], agent });
  expect(loaded.functions).toMatchObject([{ name: 'skills/add_three', version: 1 }, { name: 'skills/add_numbers' }]);
  expect(loaded.functions[0]?.signature).toContain('def add_three(a: int');
  expect(loaded.code).toContain('add_numbers');
});
