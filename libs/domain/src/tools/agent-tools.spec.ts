import type { RunResult } from '@etude/contracts/sandbox';
import { describe, expect, it } from 'vitest';
import { never, refusal, skillOf, startTools } from '../../test/tools-fixture.js';
import { EtudeError } from '@etude/contracts/errors';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import { defineTool } from './tool-definition.js';
import { ToolRegistry } from './agent-tools.js';

const OFF = { enabled: false };
const CODE = 'def parse_csv(text):\n    return text';

describe('execute_code', () => {
  it('returns the value of the last expression and the printed text', async () => {
    const { call, sandboxes } = startTools([], () => ({ value: { value: [1, 2] }, stdout: 'hello\n', wallMs: 7 }));
    expect(await call('execute_code', { code: '[1, 2]' })).toEqual({
      success: true,
      result: { result: [1, 2], stdout: 'hello\n', stderr: '', duration_ms: 7, functions: [], todos: [] },
    });
    expect(sandboxes.requests[0]).toMatchObject({ tenant: 'acme', owner: { agent: 'coder', user: null } });
  });

  it('fails with the line of the error and the printed text', async () => {
    const error = { type: 'ZeroDivisionError', message: 'division by zero', line: 3 };
    const { call } = startTools([], () => ({ value: { error }, stdout: 'before\n' }));
    expect(await call('execute_code', { code: '1 / 0' })).toMatchObject({
      success: false,
      error: 'ZeroDivisionError: division by zero (line 3)',
      result: { stdout: 'before\n' },
    });
  });

  it('has the loaded functions and shows the plan', async () => {
    const { call, sandboxes } = startTools([skillOf('parse_csv')]);
    await call('load_functions', { names: ['parse_csv'] });
    await call('write_todos', { todos: [{ content: 'Read', status: 'in_progress' }] });
    const outcome = await call('execute_code', { code: 'parse_csv("a")' });
    expect(outcome).toMatchObject({ result: { functions: ['parse_csv'], todos: [{ content: 'Read', status: 'in_progress' }] } });
    expect(sandboxes.requests.at(-1)?.template).toBe('numbers');
    expect(sandboxes.requests.at(-1)?.runs[0]).toMatchObject({
      code: expect.stringMatching(/^# with parse_csv\n/),
      args: ['parse_csv("a")', ['parse_csv']],
    });
    expect(await call('execute_code', { code: '1' }, {}, { session: 's2' })).toMatchObject({ result: { functions: [], todos: [] } });
  });
});

describe('tools without procedural memory', () => {
  it('run code and find tools', async () => {
    const { call } = startTools([skillOf('parse_csv')]);
    expect(await call('execute_code', { code: '1' }, OFF)).toMatchObject({ success: true });
    expect(await call('search', { query: 'execute code' }, OFF)).toMatchObject({
      success: true,
      result: { skills: [], note: expect.stringContaining('off'), tools: [{ name: 'execute_code' }] },
    });
  });

  it.each([
    ['use_skill', { skill_id: 'parse_csv' }],
    ['load_functions', { names: ['parse_csv'] }],
    ['register_skill', { name: 'a', description: 'b', code: CODE }],
    ['list_skill_categories', {}],
    ['list_subcategories', { category_id: 'text' }],
    ['list_skills', { subcategory_id: 'text' }],
    ['code_interpreter', { prompt: 'x', operation: 'search_skills' }],
    ['code_interpreter', { prompt: 'x', operation: 'use_skill', skill_name: 'a' }],
    ['code_interpreter', { prompt: CODE, operation: 'register_skill', skill_name: 'a', skill_description: 'b' }],
  ])('name the setting that turns procedural memory on: %s', async (tool, args) => {
    const { call, fake } = startTools([skillOf('parse_csv')]);
    const outcome = await call(tool, args, OFF);
    expect(outcome).toMatchObject(refusal(/off for agent "coder".*enabled = true/));
    expect([fake.used, fake.registered, fake.wished]).toEqual([[], [], []]);
  });
});

it('search finds skills and tools, and recommends skills from the threshold on', async () => {
  const { call, fake } = startTools([skillOf('parse_csv'), skillOf('write_csv')]);
  fake.similarity = 0.82;
  const outcome = await call('search', { query: 'execute code', max_results: 1 });
  expect(outcome).toMatchObject({
    success: true,
    result: {
      skills: [
        { name: 'parse_csv', similarity: 0.82, recommended: true, parameters: [{ name: 'text', type: 'str', description: 'the text' }] },
      ],
      tools: [{ name: 'execute_code' }, {}, {}].slice(0, 1),
    },
  });
  expect(fake.offered).toEqual(['parse_csv']);
  fake.skills[0] = skillOf('parse_csv', { sources: ['tabcdefgh-r1.episode', 'documents/d1'] });
  expect(await call('search', { query: 'x', max_results: 1 })).toMatchObject({
    result: { skills: [{ origins: ['episodes/tabcdefgh-r1', 'documents/d1'], untrusted_origins: ['documents/d1'] }] },
  });
  expect(await call('search', { query: 'x' }, { skillSearchThreshold: 0.9 })).toMatchObject({
    result: { skills: [{ recommended: false }, {}] },
  });
  expect(await call('search', { query: 'x', min_similarity: 0.85 })).toMatchObject({ result: { skills: [] } });
});

const begunTodos = (count: number) => Array.from({ length: count }, (_, at) => ({ content: `Step ${at}`, status: 'in_progress' }));

it('write_todos refuses more than one item in progress', async () => {
  const { call } = startTools();
  expect(await call('write_todos', { todos: begunTodos(1) })).toMatchObject({ success: true });
  expect(await call('write_todos', { todos: begunTodos(3) })).toEqual({
    success: false,
    error: 'Wrong arguments. "todos" must have at most one item in_progress; the plan has 3.',
  });
  expect(await call('execute_code', { code: '1' })).toMatchObject({ result: { todos: begunTodos(1) } });
});

describe('use_skill', () => {
  it('runs the skill under an id of this call', async () => {
    const { call, fake } = startTools([skillOf('parse_csv', { category: 'text.csv' })]);
    const outcome = await call('use_skill', { skill_id: 'text.csv.parse_csv', parameters: { text: 'a' } }, {}, { callId: 'c1' });
    expect(outcome).toEqual({
      success: true,
      result: { skill: 'parse_csv', version: 1, result: { text: 'a' }, output: 'printed', duration_ms: 3 },
    });
    expect(fake.used).toEqual([{ name: 'parse_csv', parameters: { text: 'a' }, files: [], useId: 'c1' }]);
  });

  it.each(['missing', 'other.place.missing', '/instances/acme/providers/P/skills/missing'])(
    'requests the missing skill %s',
    async (skillId) => {
      const { call, fake } = startTools([skillOf('parse_csv', { category: 'text.csv' })]);
      const outcome = await call('use_skill', { skill_id: skillId, parameters: { a: 1 }, action_description: 'Do it.' });
      expect(outcome).toEqual({ success: false, error: 'Skill not found', result: { skill_request_submitted: true, request_id: 'w1' } });
      expect(fake.wished).toEqual([{ name: skillId.split(/[./]/).at(-1), description: 'Do it.', example: { a: 1 } }]);
    },
  );

  it('reports that too many requests are open', async () => {
    const { call, fake } = startTools();
    fake.wishesMax = 0;
    const told = { success: false, error: 'Skill not found. Too many are open.', result: { skill_request_submitted: false } };
    expect(await call('use_skill', { skill_id: 'missing' })).toEqual(told);
    expect(await call('code_interpreter', { prompt: 'x', operation: 'use_skill', skill_name: 'missing' })).toEqual(told);
  });

  it('requests nothing under an invalid name', async () => {
    const { call, fake } = startTools();
    const told = { success: false, error: expect.stringContaining('not a valid skill name') };
    expect(await call('use_skill', { skill_id: 'DROP TABLE' })).toEqual(told);
    expect(await call('code_interpreter', { prompt: 'x', operation: 'use_skill', skill_name: 'DROP TABLE' })).toMatchObject(told);
    expect(fake.wished).toEqual([]);
  });

  it('passes the situation only to skills that declare it', async () => {
    const taken = { type: '', description: '', required: true };
    const swords = skillOf('swords', { category: 'combat.melee', parameters: [{ name: 'difficulty_modifier', ...taken }] });
    const parry = skillOf('parry', { parameters: [{ name: 'action_description', ...taken }] });
    const { call, fake } = startTools([swords, parry, skillOf('parse_csv')]);
    const situation = { action_description: 'parry', difficulty_modifier: 0.5 };
    await call('use_skill', { skill_id: 'combat.melee.swords', ...situation });
    await call('use_skill', { skill_id: 'swords' });
    await call('code_interpreter', { operation: 'use_skill', skill_name: 'parry', prompt: 'parry' });
    const untaken = await call('use_skill', { skill_id: 'parse_csv', ...situation });
    expect(untaken.result).toMatchObject({ note: 'parse_csv takes no difficulty_modifier.' });
    const passed = [{ difficulty_modifier: 0.5 }, { difficulty_modifier: 0 }, { action_description: 'parry' }, {}];
    expect(fake.used.map(({ parameters }) => parameters)).toEqual(passed);
    expect(fake.used.map(({ name }) => name)).toEqual(['swords', 'swords', 'parry', 'parse_csv']);
  });
});

describe('register_skill', () => {
  const draft = { name: 'parse_csv', description: 'Reads CSV.', code: CODE };

  it('registers with the given tests', async () => {
    const { call, fake } = startTools();
    const outcome = await call('register_skill', { ...draft, tests: [{ args: ['a'], expected: 'a' }] });
    expect(outcome).toEqual({
      success: true,
      result: {
        status: 'registered',
        skill_name: 'parse_csv',
        skill_id: '/instances/acme/providers/Etude.Skill/skills/parse_csv',
        version: 1,
        tests: 'given',
        evidence: ['its tests pass'],
      },
    });
    expect(fake.registered[0]).toMatchObject({
      by: 'key',
      entryPoint: 'parse_csv',
      tests: [{ kind: 'call', args: ['a'], expected: 'a', tolerance: 0 }],
    });
  });

  it('makes tests from examples that give the same result twice', async () => {
    const { call, fake, sandboxes } = startTools([], () => ({ value: 'a' }));
    const outcome = await call('register_skill', { ...draft, examples: [{ args: ['a'] }] });
    expect(outcome).toMatchObject({ result: { status: 'registered', tests: 'recorded' } });
    expect(fake.registered[0]?.tests).toEqual([{ kind: 'call', args: ['a'], kwargs: {}, expected: 'a', tolerance: 0 }]);
    expect(sandboxes.requests.map(({ hashSeed }) => hashSeed)).toEqual([undefined, expect.any(Number)]);
  });

  let runs = 0;
  const failed = { exit: 'nonzero', error: { type: 'KeyError', message: "'a'", line: 2 } } as const;
  const exampled = { examples: [{ args: ['a'] }] };

  it.each<[string, object, () => Partial<RunResult>, readonly string[], string]>([
    ['an example that answers differently each time', exampled, () => ({ value: (runs += 1) }), [], 'a different value'],
    ['an example that fails', exampled, () => failed, [], "KeyError: 'a'"],
    ['an example that returns no JSON value', exampled, () => ({ value: { $repr: '<object>' } }), [], "a value that JSON can't hold"],
    ['a draft without tests', {}, () => ({}), [], 'no tests'],
    ['code that the parser refuses', exampled, () => ({}), ['line 3: it runs print()'], 'line 3: it runs print()'],
  ])('rejects %s', async (_what, more, run, problems, reason) => {
    const { call, fake } = startTools([], run);
    fake.problems = [...problems];
    const outcome = await call('register_skill', { ...draft, ...more });
    expect(outcome).toMatchObject({ success: true, result: { status: 'rejected', reason: expect.stringContaining(reason) } });
    expect(fake.registered).toEqual([]);
  });

  it('returns the status of a waiting skill', async () => {
    const { call, fake } = startTools();
    const tested = { ...draft, tests: [{ expected: null }] };
    fake.answer = { ...fake.answer, status: 'pending_review', reason: 'waits for review' };
    expect(await call('register_skill', tested)).toMatchObject({ result: { status: 'pending_review', reason: 'waits for review' } });
    fake.answer = { ...fake.answer, status: 'waiting' };
    expect(await call('register_skill', tested)).toMatchObject({ result: { status: 'pending_verification' } });
  });
});

const counted = (counts: Readonly<Record<string, number>>) => Object.entries(counts).map(([id, skill_count]) => ({ id, skill_count }));

describe('list_skills and its like', () => {
  const skills = [
    skillOf('swords', { category: 'combat.melee.swords' }),
    skillOf('axes', { category: 'combat.melee' }),
    skillOf('bows', { category: 'combat.ranged' }),
    skillOf('add'),
  ];

  it('walk the categories from the top', async () => {
    const { call, fake } = startTools(skills);
    const walked: ReadonlyArray<[string, object, object]> = [
      ['list_skill_categories', {}, { categories: counted({ '(none)': 1, combat: 3 }) }],
      ['list_subcategories', { category_id: 'combat' }, { subcategories: counted({ 'combat.melee': 2, 'combat.ranged': 1 }) }],
      ['list_skills', { subcategory_id: 'combat.melee' }, { total: 2, skills: [{ name: 'swords' }, { name: 'axes' }] }],
      ['list_skills', { subcategory_id: '(none)' }, { skills: [{ name: 'add' }] }],
    ];
    for (const [tool, args, result] of walked) expect(await call(tool, args)).toMatchObject({ result });
    expect(fake.offered).toEqual(['swords', 'axes', 'add']);
  });
});

describe('code_interpreter', () => {
  it('executes by default', async () => {
    const { call } = startTools([], () => ({ value: { value: 3 }, stdout: 'x\n' }));
    expect(await call('code_interpreter', { prompt: '1 + 2' }, {}, { session: 'default' })).toEqual({
      success: true,
      result: { results: [3], output: 'x\n', files: [] },
    });
  });

  const asked = { prompt: CODE, operation: 'register_skill', skill_name: 'parse_csv', skill_description: 'Reads.' };
  const described = { name: 'parse_csv', description: 'What parse_csv does.', similarity: 0.9 };
  const registered = { status: 'registered', skill_name: 'parse_csv', skill_id: '/instances/acme/providers/Etude.Skill/skills/parse_csv' };

  it.each<[object, object]>([
    [
      { operation: 'search_skills', prompt: 'read csv' },
      { skills: [{ ...described, parameters: [{ name: 'text', type: 'str', description: 'the text' }] }] },
    ],
    [
      { operation: 'use_skill', skill_name: 'parse_csv', skill_parameters: { text: 'a' } },
      { results: [{ text: 'a' }], output: 'printed', files: [] },
    ],
    [{ ...asked, skill_parameters: { text: 'a' } }, registered],
  ])('searches, uses and registers skills: %j', async (given, result) => {
    const { call, fake } = startTools([skillOf('parse_csv')], () => ({ value: 'a' }));
    expect(await call('code_interpreter', given)).toEqual({ success: true, result });
    const tests = [{ kind: 'call', args: [], kwargs: { text: 'a' }, expected: 'a', tolerance: 0 }];
    expect(fake.registered.map((draft) => draft.tests)).toEqual(result === registered ? [tests] : []);
  });

  it('names the field that registering lacks', async () => {
    const told = { success: false, error: 'Wrong arguments. "prompt" is missing: register_skill needs it.' };
    expect(await startTools().call('code_interpreter', { ...asked, prompt: '' })).toEqual(told);
  });
});

describe('tools of memory', () => {
  it('find the kinds that each is for, with the origins that are not trusted', async () => {
    const { call } = startTools();
    expect(await call('recall_fact', { query: 'vault' })).toMatchObject({
      result: { answer: 'The vault opens at nine.', records: [{ kind: 'fact' }] },
    });
    expect(await call('rag_query', { query: 'chapter' })).toMatchObject({
      result: { records: [{ kind: 'chunk', text: 'Chapter one.', untrusted_origins: ['documents/d1'] }] },
    });
    expect(await call('recall', { query: 'all' })).toMatchObject({ result: { records: [{ kind: 'fact' }, { kind: 'chunk' }] } });
    expect(await call('recall_similar_experience', { query: 'all' })).toEqual({ success: true, result: { records: [] } });
  });

  it('remember a fact with its owner and source, once for each call', async () => {
    const { call, outbox } = startTools();
    const more = { user: 'ann', callId: 'c1' };
    for (let at = 0; at < 2; at += 1) await call('remember', { fact: 'The vault is blue.', subject: 'vault' }, {}, more);
    expect([...outbox.writes.values()]).toMatchObject([
      { kind: 'fact', fact: { text: 'The vault is blue.', subject: 'vault', source: 'told', scope: { agent: 'coder', user: 'ann' } } },
    ]);
    expect(await call('remember', { fact: '  ' })).toMatchObject({ success: false });
  });
});

const settings = ProceduralMemorySettings.parse({});

const echo = (run: (text: string) => Promise<string> = async (text) => text) =>
  defineTool({
    name: 'echo',
    title: 'Echo',
    description: 'Says it again.',
    input: z.strictObject({
      text: z.string().min(1).max(5),
      times: z.number().int().min(1).default(1),
      how: z.enum(['loud', 'low']).optional(),
    }),
    output: z.strictObject({ said: z.string() }),
    readOnly: true,
    idempotent: true,
    run: async ({ text, times }) => ({ success: true, result: { said: (await run(text)).repeat(times) } }),
  });

describe('ToolRegistry', () => {
  const { contextOf } = startTools();
  const call = (tool: ReturnType<typeof echo>, name: string, args: unknown) =>
    new ToolRegistry([tool]).call(name, args, contextOf(), never);
  const failing = (thrown: Error) => {
    const tool = echo(async () => {
      throw thrown;
    });
    return call(tool, 'echo', { text: 'a' });
  };

  it('publishes the schemas that it checks', async () => {
    const [tool] = new ToolRegistry([echo()]).listed;
    expect(tool?.inputSchema).toMatchObject({
      type: 'object',
      required: ['text'],
      additionalProperties: false,
      properties: { text: { type: 'string', minLength: 1, maxLength: 5 }, times: { default: 1 }, how: { enum: ['loud', 'low'] } },
    });
    expect(tool?.outputSchema).toMatchObject({ type: 'object', required: ['said'] });
    expect(tool?.describe(settings)).toBe('Says it again.');
    expect(await call(echo(), 'echo', { text: 'a', times: 2 })).toEqual({ success: true, result: { said: 'aa' } });
  });

  it.each([
    [{}, '"text": Invalid input: expected string, received undefined.'],
    [{ text: 'a', times: 0 }, '"times": Too small'],
    [{ text: 'a', tone: 1 }, 'Unrecognized key: "tone"'],
    ['text', '"arguments": Invalid input'],
  ])('names the argument that is wrong in %j', async (args, complaint) => {
    expect(await call(echo(), 'echo', args)).toEqual({ success: false, error: expect.stringContaining(complaint) });
  });

  it('returns errors of the caller and throws errors of the system', async () => {
    expect(await failing(new EtudeError('FAILED_PRECONDITION', 'because'))).toEqual({ success: false, error: 'because' });
    for (const error of [new EtudeError('SANDBOX_UNAVAILABLE', 'gone'), new EtudeError('CANCELLED', 'stop'), new TypeError('ours')])
      await expect(failing(error)).rejects.toBe(error);
  });
});

describe('agentTools', () => {
  it('have ten fixed names and schemas of objects', () => {
    const tools = startTools().registry.listed;
    const names =
      'code_interpreter search use_skill execute_code load_functions register_skill write_todos recall remember list_skill_categories';
    expect(tools.slice(0, 10).map(({ name }) => name)).toEqual(names.split(' '));
    for (const { inputSchema, outputSchema } of tools) {
      expect([inputSchema['type'], outputSchema['type']]).toEqual(['object', 'object']);
      expect(JSON.stringify(inputSchema)).not.toContain('"$ref":"#"');
    }
  });

  it('advise to search first if the settings prefer skills', () => {
    const { registry } = startTools();
    const said = (preferSkills: boolean) =>
      registry.listed.map((tool) => tool.describe({ ...settings, enabled: true, preferSkills, skillSearchThreshold: 0.85 })).join('\n');
    expect(said(true)).toMatch(/Search first[\s\S]*above 0\.85[\s\S]*otherwise execute[\s\S]*Register what worked/);
    expect(said(false)).not.toContain('Search first');
  });
});
