import type { JsonObject } from '@bufbuild/protobuf';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { type RunningScriptedModel, startScriptedModel } from '@etude/model/scripted-server';
import { until } from '@etude/test-support/until';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type KeyName, refusal } from './gateway.harness.js';
import { skillsForFile } from './skill-workers.js';
import { type Caller, toolCalls } from './tool-calls.js';

const WRITTEN = {
  code: 'def count_vowels(text: str) -> int:\n    """Counts vowels."""\n    return sum(1 for letter in text.lower() if letter in "aeiou")\n',
  entry_point: 'count_vowels',
  description: 'Counts the vowels of a text.',
  tests: [
    { args: ['banana'], expected: 3 },
    { args: ['AEIOU xyz'], expected: 5 },
    { args: ['rhythm'], expected: 0 },
  ],
};
const SLUG = 'def slug(text: str, sep: str = "-") -> str:\n    """Makes a slug."""\n    return sep.join(text.lower().split())\n';

const agent = 'coder';
let model: RunningScriptedModel;
beforeAll(async () => {
  model = await startScriptedModel({
    script: {
      rules: [
        { system: 'You write one reusable Python function', match: '"skill": "count_vowels"', reply: JSON.stringify(WRITTEN) },
        { system: 'You write one reusable Python function', reply: 'I would rather not.' },
      ],
    },
  });
});
afterAll(() => model.close());

const rig = skillsForFile(() => ({
  ETUDE_SKILLS_AUTO_REGISTER: 'true',
  OPENAI_BASE_URL: model.url,
  OPENAI_API_KEY: 'scripted',
  OPENAI_MODEL: model.model,
}));
const call = toolCalls(rig);
const skills = (key: KeyName = 'acme') => rig.client(Skills, key);
const register = (name: string, more: JsonObject = {}, caller: Caller = {}) =>
  call(
    'register_skill',
    {
      name,
      description: 'Makes a slug of a title.',
      code: SLUG,
      category: 'text.slugs',
      tests: [
        { args: ['Hello World'], expected: 'hello-world' },
        { kwargs: { text: 'A b C', sep: '_' }, expected: 'a_b_c' },
      ],
      ...more,
    },
    caller,
  );
const useBobs = (caller: Caller) => call('use_skill', { skill_id: 'slug_of_bob', parameters: { text: 'A' } }, caller);
const useOnce = (text: string) => call('use_skill', { skill_id: 'slug', parameters: { text } }, { requestId: 'use-once' });

describe('etude.v1.Tools', () => {
  it('answers a tool that is not there, and wrong arguments', async () => {
    expect(await call('x', {})).toMatchObject({ success: false, error: "Tool 'x' not found" });
    expect(await call('execute_code', { cod: '1' })).toMatchObject({
      success: false,
      error: expect.stringMatching(/"code".*received undefined.*Unrecognized key: "cod"/),
    });
  });

  it('refuses a call without an agent, and a session that is no name', async () => {
    expect(await refusal(rig.client(Tools).callTool({ tool: 'search' }))).toMatchObject({
      status: status.INVALID_ARGUMENT,
      fields: ['agent'],
    });
    const tooMuch = rig.client(Tools).callTool({ tool: 'execute_code', agent, arguments: { code: 'x'.repeat(1_100_000) } });
    expect((await refusal(tooMuch)).code).toBe('PAYLOAD_TOO_LARGE');
    const badSession = rig.client(Tools).callTool({ tool: 'search', agent, session: 'a b' });
    expect(await refusal(badSession)).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['session'] });
  });
});

describe('skills by tools', () => {
  it('are registered, found, used without a model, and loaded', async () => {
    const registered = await register('slug');
    expect(registered).toMatchObject({
      success: true,
      result: { status: 'registered', skill_id: '/instances/acme/providers/Etude.Skill/skills/slug', version: 1, tests: 'given' },
    });
    expect((await call('search', { query: 'Makes a slug of a title.' })).result['skills']).toMatchObject([
      { name: 'slug', recommended: true, parameters: [{ name: 'text', type: 'str' }, { name: 'sep' }] },
    ]);
    expect(await call('use_skill', { skill_id: 'text.slugs.slug', parameters: { text: 'One Two' } })).toMatchObject({
      success: true,
      result: { skill: 'slug', version: 1, result: 'one-two' },
    });
    const session = { session: 's-load' };
    expect(await call('load_functions', { names: ['slug'] }, session)).toMatchObject({
      result: { functions: [{ name: 'slug', signature: expect.stringContaining('def slug(') }], loaded: ['slug'] },
    });
    const code = 'from skills import slug as again\n[slug("A B"), again("C D")]';
    expect(await call('execute_code', { code }, session)).toMatchObject({
      success: true,
      result: { result: ['a-b', 'c-d'], functions: ['slug'] },
    });
    expect(await call('execute_code', { code: '1 + 1\n\nslug(3)' }, session)).toMatchObject({
      success: false,
      error: expect.stringMatching(/AttributeError.*\(line 3\)$/),
    });
  });

  it("are nobody else's", async () => {
    await register('slug_of_bob', {}, { user: 'bob' });
    expect(await useBobs({ user: 'bob' })).toMatchObject({ success: true });
    for (const caller of [{ user: 'eve' }, {}, { agent: 'tester', user: 'bob' }, { key: 'globex' as const, user: 'bob' }])
      expect(await useBobs(caller)).toMatchObject({ success: false, error: 'Skill not found' });
  });

  it('answer one request once, and refuse its id for another', async () => {
    await register('slug');
    const first = await useOnce('A');
    expect(await useOnce('A')).toEqual(first);
    expect((await refusal(useOnce('B'))).code).toBe('ALREADY_EXISTS');
  });
});

describe('a skill that is missed', () => {
  it('is asked for, written by the model, and arrives in review', async () => {
    const missing = await call('use_skill', { skill_id: 'count_vowels', parameters: { text: 'a' }, action_description: 'Count vowels.' });
    const id = String(missing.result['request_id']);
    expect(missing).toMatchObject({ success: false, error: 'Skill not found', result: { skill_request_submitted: true } });
    const name = `wantedSkills/${id}`;
    const wanted = await until(
      async () => {
        const now = await skills().getWantedSkill({ name });
        return now.state === 'registered' || now.state === 'failed' ? now : null;
      },
      { what: 'the wish to be over' },
    );
    expect(wanted).toMatchObject({ state: 'registered', registeredSkill: 'skills/count_vowels', priority: 7, scripted: true, reason: '' });
    const skill = await until(
      async () => {
        const now = await skills().getSkill({ name: 'skills/count_vowels', agent });
        return now.status === SkillStatus.PENDING_REVIEW || now.status === SkillStatus.REJECTED ? now : null;
      },
      { what: 'the skill to be verified' },
    );
    expect(skill).toMatchObject({ status: SkillStatus.PENDING_REVIEW, origin: 'request', sources: [name], scripted: true, version: 1 });
    expect(skill.untrusted).toEqual([expect.stringContaining(name)]);
    await skills('rev').approveSkill({ name: skill.name, digest: skill.digest, agent });
    expect(await call('use_skill', { skill_id: 'count_vowels', parameters: { text: 'banana' } })).toMatchObject({
      success: true,
      result: { result: 3 },
    });
    expect((await refusal(skills().requestSkill({ name: 'count_vowels', agent }))).status).toBe(status.FAILED_PRECONDITION);
  });
});
