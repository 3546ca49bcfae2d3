import { describe, expect, it } from 'vitest';
import { type FakeAnswer, FakeChatModel } from '../../test/fake-chat-model.js';
import { provenSkillOf } from '../../test/bundle-fixture.js';
import { hitOf } from '../../test/memory-records.js';
import { type GivenDeps, type SpecGiven, World } from '../../test/rollout-fixture.js';
import { calls, file, finalAnswer, last, python, stepByStep, stepWorlds, textOf } from '../../test/step-fixture.js';
import type { Json } from '@etude/contracts/json';
import type { Skill } from '@etude/contracts/memory';
import type { OutsideServer } from '@etude/contracts/outside-tools';
import type { OutsideTools } from '../ports/agent-settings.js';
import type { SearchQuery, SemanticMemory } from '../ports/memory.js';
import type { Journal } from '../ports/journal.js';
import { runRollout } from './run-rollout.js';

const { own, worldOf, ran, lose } = stepWorlds();

const edit = (old: string, content: string) => calls(['fs_write', { path: 'a.py', old, content }]);
const finalFile = (path: string) => calls(['final_answer', { file: path }]);
const JUDGED: SpecGiven = { evaluator: { kind: 'io_cases', cases: [{ stdin: '1', expectedStdout: '2' }] } };
const double = (given: Partial<Skill> = {}) =>
  provenSkillOf('double', 'def double(n):\n    return 2 * n', { n: { type: 'integer' } }, { scope: OWNER, ...given });
const OWNER = { tenant: 'acme', agent: 'default', user: null };

const finding = (id: string, similarity: number, bm25: number) =>
  hitOf({ id, layer: 'semantic', kind: 'fact', text: `fs_read(${id}.py): File contains: ${id}`, similarity, explanation: { bm25 } });
/** An agent whose outside tools answer with these results. */
const outside = (results: Readonly<Record<string, Json>>, called: string[] = []): GivenDeps => ({
  outsideTools: {
    list: async () => ({
      tools: Object.keys(results).map((name) => ({ name, description: '', inputSchema: { type: 'object' } })),
      problems: [],
    }),
    call: async (_, name) => (called.push(name), { success: true, result: results[name] ?? null, untrusted: true }),
  },
  settings: {
    get: async (tenant, agent) => ({
      ...(await new World().deps.settings.get(tenant, agent)),
      mcpServers: [{ name: 'srv' } as OutsideServer],
    }),
  },
});

/** A task that reads two files. An earlier task of the same agent read them too, and also saw a document. */
async function laterWorld(spec: SpecGiven = {}) {
  const files = [file('a.py', 'def slug(text):\n    return text\n'), file('b.py', 'def page(): pass\n')];
  const [a, b] = [calls(['fs_read', { path: 'a.py' }]), calls(['fs_read', { path: 'b.py' }])];
  const earlier = worldOf([a, b], { files, memory: {} }).world;
  await earlier.run();
  const facts = earlier.outbox.of('fact').map(({ fact }) => ({ ...fact, touched: ['documents/d1'] }));
  const about: SemanticMemory['about'] = async ({ user }, category, subject) =>
    facts.find((fact) => fact.scope.user === user && fact.category === category && fact.subject === subject) ?? null;
  const answers = [a, a, python('print(fs_read("b.py"))')];
  return worldOf(answers, { files, memory: {}, ...spec }, { deps: { semantic: { about } } });
}

const toolSummaries = (world: World) =>
  world.journals.events.flatMap((event) => (event.type === 'step' && event.kind === 'tool' ? event.summary : []));

describe('an agent that acts in steps', () => {
  it('answers in words after code and tools', async () => {
    const { world, model } = worldOf(
      [python('x = 6 * 7\nprint(x)'), calls(['fs_read', { path: 'a.txt' }], ['fs_list', {}]), python('x'), finalAnswer('It is 42.')],
      { files: [file('a.txt', 'hello\n')] },
    );
    const end = await world.run();
    expect(end).toMatchObject({ state: 'succeeded', result: { verdict: 'AC', output: 'It is 42.', casesTotal: 0 } });
    expect(last(model)).toContain('<result-');
    expect(last(model)).toContain('"content":"hello"');
    expect(last(model)).toContain('42');
    expect(world.steps).toEqual(
      'a1.s1.act a1.s1.c1.open a1.s1.c1 a1.s2.act a1.s2.t1 a1.s2.t2 a1.s3.act a1.s3.c1 a1.s4.act a1.evaluate a1.record'.split(' '),
    );
  });

  it.each([
    ['the code of its final answer', [python('1 + 1'), finalAnswer('```python\nprint("right")\n```')]],
    ['a file that it names', [calls(['fs_write', { path: 's.py', content: 'print("right")' }]), finalFile('s.py')]],
  ])('is judged exactly by %s', async (_, answers) => {
    const { world } = worldOf(answers, JUDGED);
    expect(await world.run()).toMatchObject({ state: 'succeeded', result: { verdict: 'AC', code: 'print("right")' } });
  });

  it('tries again with the feedback, its scratchpad and its sandbox', async () => {
    const steps = stepByStep([python('store("key", 7)\nn = 1'), finalAnswer('```python\nprint("no")\n```')]);
    const again = stepByStep([python('print(key, n)'), finalAnswer('```python\nprint("right")\n```')]);
    const model = new FakeChatModel([steps, steps, again, again]);
    const world = new World({
      model,
      spec: { strategy: 'codeact', limits: { attemptsMax: 2 }, ...JUDGED },
      deps: { workSandboxes: own() },
    });
    expect(await world.run()).toMatchObject({ state: 'succeeded', usage: { attempts: 2 } });
    expect(textOf(model.requests[2])).toContain('# Attempts so far');
    expect(textOf(model.requests[2])).toMatch(/## Working Memory[^]*- key: 7/);
    expect(textOf(model.requests[3])).toContain('7 1');
  });

  const readA = calls(['fs_read', { path: 'a.py' }]);
  const keepsEdit = edit('x = 1', '# one\nx = 1');
  const edits = ['big', 'latin', 'bom'].map((path) => ['fs_write', { path, old: 'START', content: 'BEGIN' }] as const);
  const deep = { text: '', toolCalls: [{ id: 'c', name: 'fs_list', arguments: `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}` }] };
  const readLast = calls(['fs_read', { path: 'f1050' }]);

  it.each<[string, FakeAnswer[], string[]]>([
    ['what code in a text printed', ['Let me look.\n\n```python\nprint(2 ** 10)\n```'], ['1024']],
    [
      'errors of tools and code',
      [
        calls(['no_such_tool', {}], ['fs_read', { path: 7 }], ['fs_read', { path: 'gone.txt' }]),
        python('1 / 0'),
        python('fs_read("gone.txt")'),
      ],
      ["Tool 'no_such_tool' not found", 'Wrong arguments', 'There is no file', 'ZeroDivisionError', 'ToolError'],
    ],
    ['that arguments are nested too deep', [deep], ['Wrong arguments']],
    [
      'the new content of a file that no list names',
      [
        python('for i in range(1100): open("f%04d" % i, "w").write("one")'),
        readLast,
        python('open("f1050", "w").write("two two")'),
        readLast,
      ],
      ['"content":"two two"'],
    ],
    // If a worker dies after the edit and before the edit's journal entry, the next worker repeats the edit.
    ['an edit that was made once, though its new text holds the old one', [keepsEdit, keepsEdit, readA], ['"content":"# one\\nx = 1"']],
    ['that an edit has no place', [edit('no such text', '1')], ['occurs 0 times in "a.py", not once. The new text is there already.']],
    [
      'edits of text of at most 1 MiB only, which keep a byte order mark',
      [
        python('open("big","w").write("START" + "x" * 1_100_000)\nopen("latin","wb").write(b"caf\\xe9 START")'),
        python('open("bom","wb").write(b"\\xef\\xbb\\xbfSTART")'),
        calls(...edits),
        python('import os\n(os.stat("big").st_size, open("latin","rb").read(), open("bom","rb").read())'),
      ],
      ["(1100005, b'caf\\xe9 START', b'\\xef\\xbb\\xbfBEGIN')"],
    ],
    ['its plan', [calls(['write_todos', { todos: [{ content: 'look', status: 'in_progress' }] }])], ['# Plan', '- [>] look']],
    [
      'why the file of a final answer is none: an absolute path, a folder, or too large',
      [
        python('import os\nos.mkdir("folder")\nopen("big","w").write("x" * 1_100_000)'),
        ...['/work/gone.md', 'folder', 'big'].map(finalFile),
      ],
      ['there is no file "/work/gone.md"', 'there is no file "folder"', 'there is no file "big" of at most 1 MiB'],
    ],
    [
      'that a sandbox was lost, and goes on in a new one with the files and its scratchpad',
      [
        python('store("n", 5)\nplain = 1\nopen("own.txt", "w").write("x")'),
        lose,
        python('print(n)\nimport os\nprint(sorted(os.listdir(".")))'),
      ],
      ['The sandbox was lost: its machine went away', "5\n['a.py']"],
    ],
  ])('is told %s', async (_, answers, told) => {
    const { world, model } = worldOf([...answers, 'FINAL ANSWER: done'], { files: [file('a.py', 'x = 1\n')] });
    expect(await world.run()).toMatchObject({ state: 'succeeded', result: { output: 'done' } });
    for (const said of told) expect(last(model)).toContain(said);
  });

  it('calls tools from code', async () => {
    const code =
      'text = fs_read("a.txt")["content"]\nfs_write("b.txt", text.upper())\nprint(tools.call("fs_read", path="b.txt")["content"])';
    const { world, model } = await ran([python(code)], { files: [file('a.txt', 'abc')] });
    expect(last(model)).toContain('ABC');
    expect(world.steps).toEqual(expect.arrayContaining(['a1.s1.c1.t1', 'a1.s1.c1.t2', 'a1.s1.c1.t3']));
  });

  it('bounds what its code makes the journal keep', async () => {
    const code = 'open("big", "w").write("x" * 900_000)\nfor n in range(60):\n  fs_read("big")';
    const { world, model } = await ran([python(code)]);
    expect(last(model)).toContain('as much as code may read in one task');
    expect(world.steps.filter((step) => step.startsWith('a1.s1.c1.t')).length).toBeLessThan(45);
  });

  it('answers an equal read without reading again until a file changes', async () => {
    const { world, model } = await ran(
      [
        calls(['fs_read', { path: 'a.txt' }]),
        calls(['fs_read', { path: 'a.txt' }]),
        calls(['fs_write', { path: 'a.txt', content: 'a longer text' }]),
        calls(['fs_read', { path: 'a.txt' }]),
      ],
      { files: [file('a.txt', 'abc')] },
    );
    expect(toolSummaries(world)).toEqual(['fs_read(a.txt)', 'fs_read(a.txt) again', 'fs_write(a.txt)', 'fs_read(a.txt)']);
    expect(last(model)).toContain('a longer text');
  });

  it('takes no final answer that cannot be judged, and says why', async () => {
    const { world, model } = worldOf(
      [
        calls(['final_answer', {}]),
        calls(['final_answer', { path: 's.py' }]),
        finalFile('s.py'),
        finalAnswer('In words.'),
        finalAnswer('```python\nprint("right")\n```'),
      ],
      JUDGED,
    );
    expect(await world.run()).toMatchObject({ state: 'succeeded', usage: { attempts: 1 } });
    for (const said of ['it is empty', 'it needs the argument "answer" or "file"', 'there is no file "s.py"', 'it held no code'])
      expect(last(model)).toContain(`Your final answer was not taken: ${said}`);
  });

  it.each([
    ['no step was in its answers', ['Hm.', 'Well.', 'So.'], 3, /no step/, 'Your answer held no step'],
    [
      'it repeats one step',
      Array<FakeAnswer>(9).fill(python('print(1)')),
      30,
      /^the same step 4 times in a row$/,
      'this very step 3 times',
    ],
    ['its steps are used up', [1, 2, 3].map((n) => python(`print(${n})`)), 3, /^no final answer within 3 steps$/, 'This is the last one'],
  ])('ends where %s', async (_, answers, agentStepsMax, reason, said) => {
    const { world, model } = worldOf(answers, { limits: { attemptsMax: 1, agentStepsMax } });
    const why = { verdict: 'RE', reason: expect.stringMatching(reason) };
    expect(await world.run()).toMatchObject({ state: 'failed', stopReason: 'attempts', result: why });
    expect(last(model)).toContain(said);
  });

  it('leaves a running cell to the next worker', async () => {
    const stop = new AbortController();
    const sandboxes = own();
    const leaving: typeof sandboxes = {
      open: async (request, signal) => {
        const sandbox = await sandboxes.open(request, signal);
        const run: typeof sandbox.run = (cell, answer, ended) => sandbox.run(cell, async (call) => (stop.abort(), answer(call)), ended);
        return Object.create(sandbox, { run: { value: run } }) as typeof sandbox;
      },
    };
    const { world, model } = worldOf([python('fs_list()\nprint("whole")')], {}, { deps: { workSandboxes: leaving } });
    await expect(world.run(stop.signal)).rejects.toMatchObject({ name: 'AbortError' });
    expect(await world.run()).toMatchObject({ state: 'succeeded' });
    expect(last(model)).toContain('whole');
  });

  it('waits for its caller and goes on with the answer', async () => {
    const asked: string[] = [];
    let answer: { answer: string } | null = null;
    const questions = { ask: async ({ text }: { text: string }) => (asked.push(text), answer) };
    const { world, model } = worldOf([calls(['ask_caller', { question: 'Which one?' }])], {}, { deps: { questions } });
    await expect(world.run()).rejects.toMatchObject({ name: 'RolloutWaits' });
    answer = { answer: 'The red one.' };
    expect(await world.run()).toMatchObject({ state: 'succeeded' });
    expect(asked).toEqual(['Which one?', 'Which one?']);
    expect(last(model)).toContain('The red one.');
  });

  it('notices that its sandbox was forgotten while it waited', async () => {
    let answer: { answer: string } | null = null;
    const deps = { workSandboxes: own(), questions: { ask: async () => answer } };
    const { world, model } = worldOf(
      [
        calls(['fs_list', {}]),
        calls(['ask_caller', { question: 'Which?' }]),
        calls(['fs_read', { path: 'a.txt' }]),
        calls(['fs_read', { path: 'a.txt' }]),
      ],
      { files: [file('a.txt', 'abc')] },
      { deps },
    );
    await expect(world.run()).rejects.toMatchObject({ name: 'RolloutWaits' });
    answer = { answer: 'The red one.' };
    deps.workSandboxes.open = own().open;
    expect(await world.run()).toMatchObject({ state: 'succeeded' });
    expect(last(model)).toContain('The sandbox was lost');
    expect(last(model)).toContain('"content":"abc"');
  });

  it('keeps the beginning of its prompts and cuts the results of old steps', async () => {
    const answers = Array.from({ length: 12 }, (_, at) => python(`print("${String.fromCodePoint(97 + at)}" * 3000)`));
    const { model } = await ran(answers);
    const [ninth = 0, thirteenth = Infinity] = [8, 12].map((at) => textOf(model.requests[at]).length);
    expect(thirteenth / ninth).toBeLessThan(1.3);
    expect(textOf(model.requests[12])).toContain('# Earlier steps');
    const beginning = (at: number) => model.requests[at]?.messages[0];
    expect(beginning(2)).toEqual(beginning(12));
  });

  it('cuts long texts that the model wrote', async () => {
    const { model } = await ran([
      calls(['fs_write', { path: 'a.txt', content: 'x'.repeat(500_000) }]),
      calls(['fs_read', { path: 'a.txt' }]),
    ]);
    expect(JSON.stringify(model.requests.at(-1)?.messages).length).toBeLessThan(40_000);
  });

  it('imports verified skills and runs them by name, and counts both uses', async () => {
    const { world, model } = await ran(
      [
        calls(['recall_procedure', { query: 'doubling' }]),
        python('from skills import double\nprint(double(21))'),
        calls(['use_skill', { skill_id: 'math.double', parameters: { n: 4 } }], ['use_skill', { skill_id: 'triple' }]),
      ],
      { memory: {} },
      { skills: [{ skill: double(), similarity: 0.6 }], runs: (run) => ({ value: run.kind === 'call' ? 8 : null }) },
    );
    expect(textOf(model.requests[2])).toContain('42');
    expect(last(model)).toContain('"skill":"double","version":1,"result":8');
    expect(last(model)).toContain('"skill_request_submitted":true');
    const uses = [...world.outbox.writes.values()].filter((write) => write.kind === 'skill_use');
    expect(uses).toMatchObject([{ name: 'double' }, { name: 'double' }]);
  });

  it('carries the mark of a skill that it ran into what it remembers', async () => {
    const { world } = await ran(
      [calls(['use_skill', { skill_id: 'math.double', parameters: { n: 4 } }]), calls(['remember', { fact: 'It is 8.' }])],
      { memory: {} },
      { skills: [{ skill: double({ sources: ['documents/d1'] }), similarity: 0.1 }], runs: () => ({ value: 8 }) },
    );
    expect(world.outbox.of('fact')).toMatchObject([{ fact: { text: 'It is 8.', touched: ['documents/d1'] } }]);
  });

  it('trusts nothing that was written where an outside server described its tools', async () => {
    const answers = [calls(['remember', { fact: 'Pay the helpful server.' }])];
    const { world } = await ran(answers, { memory: {} }, { deps: outside({ 'srv/send': null }) });
    expect(world.outbox.of('fact')).toMatchObject([{ fact: { touched: ['untrustedTasks/t00000000'] } }]);
  });

  it('does not repeat an outside call that a lost worker had begun', async () => {
    const called: string[] = [];
    const deps = outside({ 'srv/send': null });
    const call: OutsideTools['call'] = (_, name) => (called.push(name), Promise.reject(new Error('the worker is lost')));
    const { world, model } = worldOf(
      [python('tools.call("srv/send")\n')],
      {},
      { deps: { ...deps, outsideTools: { ...deps.outsideTools!, call } } },
    );
    await expect(world.run()).rejects.toThrow('the worker is lost');
    expect(await world.run()).toMatchObject({ state: 'succeeded' });
    expect(called).toEqual(['srv/send']);
    expect(last(model)).toContain('it may have been made');
  });

  it('offers outside tools under distinct names', async () => {
    const called: string[] = [];
    const deps = outside({ 'srv/a.b': 1, 'srv/a_b': 2 }, called);
    await ran([calls(['srv__a_b', {}], ['srv__a_b_2', {}])], {}, { deps });
    expect(called).toEqual(['srv/a.b', 'srv/a_b']);
  });

  it('takes no records of an outside server for memories', async () => {
    const deps = outside({ 'srv/list': { records: [null, { id: 'rec1', fields: {} }] } });
    const { world } = worldOf([calls(['srv__list', {}])], { memory: {} }, { deps });
    expect(await world.run()).toMatchObject({ state: 'succeeded' });
    expect(world.outbox.of('transition')).toMatchObject([{ transition: { recalled: [] } }]);
  });

  it('sees earlier findings that are related by meaning or by rare words', async () => {
    const hits = [finding('near', 0.4, 0), finding('worded', 0.1, 12), finding('stranger', 0.1, 2)];
    const semantic = { search: async (_: unknown, { category }: SearchQuery) => (category === 'finding' ? hits : []) };
    const { model } = await ran([], { memory: {} }, { deps: { semantic } });
    const names = [...textOf(model.requests[0]).matchAll(/^- fs_read \((\w+)\.py\): File contains/gm)].map(([, name]) => name);
    expect(names).toEqual(['near', 'worded']);
  });

  it('keeps its findings as facts of its agent, but none that shows a secret', async () => {
    const secrets = [file('.env', 'AWS_SECRET_ACCESS_KEY=wJalrXUtn\n'), file('db.txt', 'postgres://app:hunter2@db/x\n')];
    const files = [file('a.py', 'def slug(text):\n    return text\n'), ...secrets];
    const { world } = await ran([calls(...files.map(({ path }) => ['fs_read', { path }] as const))], { files, memory: {} });
    const told = { text: 'fs_read(a.py): File contains: slug', subject: 'fs_read(a.py)', digest: 'f06969965fb97b96' };
    const fact = { category: 'finding', ...told, wordings: [{ text: 'fs read a py : File contains: slug' }] };
    expect(world.outbox.of('fact')).toMatchObject([{ fact }]);
  });

  it('offers the finding of an earlier task in place of reading the same file, once, and not to code', async () => {
    const { world, model } = await laterWorld();
    expect(await world.run()).toMatchObject({ state: 'succeeded' });
    expect(toolSummaries(world)).toEqual(['fs_read(a.py) from an earlier task', 'fs_read(a.py)', 'fs_read(b.py)']);
    expect(textOf(model.requests[1])).toMatch(/Not read: an earlier task of this agent [^]*\nFile contains: slug\n/);
    expect(textOf(model.requests[1])).not.toContain('return text');
    expect(textOf(model.requests[2])).toContain('return text');
    expect(last(model)).not.toContain('this very step');
    expect(world.outbox.of('transition')[0]?.transition.touched).toContain('documents/d1');
  });

  it.each<[string, SpecGiven]>([
    ['another content', { files: [file('a.py', 'def other():\n    return text\n'), file('b.py', '')] }],
    ['another user', { user: 'ann' }],
    ['a task that recalls no facts', { memory: { layers: ['episodic'] } }],
  ])('reads a file itself where an earlier finding is of %s', async (_, spec) => {
    const { world, model } = await laterWorld(spec);
    await world.run();
    expect(toolSummaries(world)[0]).toBe('fs_read(a.py)');
    expect(textOf(model.requests[1])).toContain('return text');
  });
});

it('keeps what it changed when the worker dies after a final answer had opened the sandbox', async () => {
  const end = finalFile('s.py');
  const [one, two] = [stepByStep([end]), stepByStep([calls(['fs_write', { path: 's.py', content: 'print("right")' }]), end])];
  const world = new World({
    model: new FakeChatModel([one, two, two, two]),
    spec: {
      strategy: 'codeact',
      files: [file('s.py', 'print("no")')],
      limits: { attemptsMax: 2 },
      memory: { off: true },
      ...JUDGED,
    },
    deps: { workSandboxes: own() },
  });
  const journal = world.journals.open() as Journal;
  const dying: Journal['append'] = async (entry, events) => {
    const answer = await journal.append(entry, events);
    if (entry.key === 'a2.s1.t1') throw new Error('killed');
    return answer;
  };
  const deps = { ...world.deps, journal: { ...journal, append: dying } };
  await expect(runRollout(world.input, deps, new AbortController().signal)).rejects.toThrow('killed');
  expect(await world.run()).toMatchObject({ state: 'succeeded', result: { code: 'print("right")' } });
});
