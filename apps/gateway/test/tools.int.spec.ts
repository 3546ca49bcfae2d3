import type { JsonObject } from '@bufbuild/protobuf';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { refusal } from './gateway.harness.js';
import { type Caller, skillsForFile, toolCalls } from './skill-workers.js';

const SLUG = 'def slug(text: str, sep: str = "-") -> str:\n    """Makes a slug."""\n    return sep.join(text.lower().split())\n';

const agent = 'coder';
const rig = skillsForFile(() => ({ ETUDE_SKILLS_AUTO_REGISTER: 'true' }));
const call = toolCalls(rig);
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

describe('etude.v1.Tools', () => {
  it('returns an error for an unknown tool and for wrong arguments', async () => {
    expect(await call('x', {})).toMatchObject({ success: false, error: "Tool 'x' not found" });
    expect(await call('execute_code', { cod: '1' })).toMatchObject({
      success: false,
      error: expect.stringMatching(/"code".*received undefined.*Unrecognized key: "cod"/),
    });
  });

  it('refuses a call without an agent, with a wrong session name, or with too large arguments', async () => {
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
  it('are registered, found, used without a model, and loaded into a session', async () => {
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

  it('are found only by their own tenant, agent and user', async () => {
    await register('slug_of_bob', {}, { user: 'bob' });
    expect(await useBobs({ user: 'bob' })).toMatchObject({ success: true });
    for (const caller of [{ user: 'eve' }, {}, { agent: 'tester', user: 'bob' }, { key: 'globex' as const, user: 'bob' }])
      expect(await useBobs(caller)).toMatchObject({ success: false, error: 'Skill not found' });
  });
});
