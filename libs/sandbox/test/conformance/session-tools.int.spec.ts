import { randomUUID } from 'node:crypto';
import type { Json } from '@etude/contracts/json';
import type { SandboxLimits } from '@etude/contracts/sandbox';
import { type CellToolAnswer, type CellToolCall, EMPTY_SCRATCHPAD, type Scratchpad } from '@etude/contracts/scratchpad';
import { describe, expect } from 'vitest';
import { requestOf, useSandboxes } from '../sandbox-fixture.js';
import { Heard, itInSession, type TestSession } from '../session-fixture.js';

const tool = (name: string) => ({ name, parameters: ['a', 'b'], description: `Calls ${name}.` });
const TOOLS = [tool('add'), tool('notes/find'), tool('store'), tool('class')];

/** Answers a call by `send`, which uses the call's own number unless another one is given. */
type Answerer = (call: CellToolCall, send: (answer: CellToolAnswer, number?: number, execution?: string) => Promise<void>) => unknown;

interface Given {
  readonly answer?: Answerer;
  readonly scratchpad?: Scratchpad;
  readonly limits?: Partial<SandboxLimits>;
}

const result = (value: Json): CellToolAnswer => ({ success: true, result: value });
const echo: Answerer = ({ arguments: given }, send) => send(result(given));

/** Runs a cell with tools and a scratchpad. */
async function work({ claimed }: TestSession, code: string, given: Given = {}) {
  const { answer = echo, limits = {}, scratchpad = EMPTY_SCRATCHPAD } = given;
  const executionId = `tools-${randomUUID()}`;
  const calls: CellToolCall[] = [];
  const toolCall = (call: CellToolCall) => {
    calls.push(call);
    void answer(call, (made, number = call.number, execution = executionId) => claimed.answer(execution, number, made));
  };
  const heard = Object.assign(new Heard(), { toolCall });
  const run = { kind: 'cell' as const, code, tools: TOOLS, scratchpad: structuredClone(scratchpad) as never };
  await claimed.execute({ ...requestOf([run], { limits }), executionId, keep: true }, heard, new AbortController().signal);
  const [ended] = heard.results;
  if (!ended) throw new Error('the sandbox gave no result');
  const values = Object.fromEntries((ended.scratchpad?.values ?? []).map(({ name, ...value }) => [name, value]));
  return { calls, ended, values, stdout: heard.text, displays: heard.displays };
}

const late: Answerer = (_call, send) => setTimeout(() => void send(result('late')), 700);
const answersThrice: Answerer = async ({ number }, send) => {
  await send(result('forged'), number, 'another execution');
  await send(result('forged'), number + 1);
  await send(result(`right ${number}`));
  await send(result('second'));
};

/** Writes a forged report to the socket over which the interpreter reports. */
const FORGE = `
import os, stat, struct, json
def forge(report):
    body = json.dumps(report).encode()
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, struct.pack(">I", len(body)) + body)
        except OSError: pass
`;

describe('tools of a cell', () => {
  const it = itInSession(useSandboxes({ warm: 1 }));

  it('take plain data, also from arrays, and refuse anything else', async ({ session }) => {
    const code = `class N:
  def tolist(self): return [1, 2.5]
deep = []
for _ in range(40): deep = [deep]
for value in (N(), {1: (2, None)}, object(), float("nan"), "x" * 300_000, deep):
  try: print(add(value))
  except ToolError as error: print(str(error)[:60])`;
    const { stdout, calls } = await work(session, code);
    expect(stdout.split('\n')).toEqual([
      "{'a': [1, 2.5]}",
      "{'a': {'1': [2, None]}}",
      "the arguments of add can't be sent: object is no plain data",
      expect.stringContaining("the arguments of add can't be sent: Out of range float"),
      "the arguments of add can't be sent: they have 300009 bytes a",
      "the arguments of add can't be sent: a malformed report",
      '',
    ]);
    expect(calls.map(({ number }) => number)).toEqual([1, 2]);
  });

  it('are called 200 times at most, one after another also by threads, and never by child processes', async ({ session }) => {
    const code = `import os, threading
got = []
threads = [threading.Thread(target=lambda i=i: got.append(add(i)["a"])) for i in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(got) == list(range(20)))
if os.fork() == 0:
  try: add(1)
  except ToolError as error: print(error, flush=True)
  os._exit(0)
os.wait()
for i in range(180): add(i)
add(1)`;
    const { stdout, ended, calls } = await work(session, code);
    expect(stdout).toBe("True\na process that the cell started can't call tools\n");
    expect(ended.error).toMatchObject({ type: 'ToolError', message: 'a cell may call tools 200 times' });
    expect(calls).toHaveLength(200);
  });

  it('wait longer than the wall limit, but no code runs past it', async ({ session }) => {
    expect(await work(session, 'add(1)', { limits: { wallMs: 500 }, answer: late })).toMatchObject({
      ended: { exit: 'ok' },
      displays: [{ 'text/plain': "'late'" }],
    });
    const code = 'import time\nadd(1)\nwhile True:\n  try: time.sleep(9)\n  except KeyboardInterrupt: add(2)';
    expect((await work(session, code, { limits: { wallMs: 500 } })).ended).toMatchObject({ exit: 'wall', stateLost: true });
  });

  it('take only the first answer to the call that waits', async ({ session }) => {
    const { stdout } = await work(session, 'print(add(1), add(2))', { answer: answersThrice });
    expect(stdout).toBe('right 1 right 2\n');
  });

  it('raise ToolError for a large answer', async ({ session }) => {
    const { ended } = await work(session, 'add(1)', { answer: (_call, send) => send(result('x'.repeat(1_100_000))) });
    expect(ended.error?.message).toMatch(/^the answer has 11\d{5} bytes as JSON, over the limit of 1048576$/);
  });

  it('are left by threads whose cell has ended', async ({ session }) => {
    const code = 'import threading, time\nthread = threading.Thread(target=add, args=(1,))\nthread.start()\ntime.sleep(0.2)';
    expect((await work(session, code, { answer: () => undefined })).ended.exit).toBe('ok');
    expect((await work(session, 'print(add(2))\nthread.join()\nthread.is_alive()')).displays).toEqual([{ 'text/plain': 'False' }]);
  });

  it.for([
    'forge({"type": "tool_call", "cell": 1, "number": 1, "tool": "other", "arguments": {}})',
    'forge({"type": "tool_call", "cell": 1, "number": 0, "tool": "add", "arguments": {}})',
    'forge({"type": "tool_call", "cell": 1, "number": 1, "tool": "add", "arguments": {"a": "x" * 300_000}})',
  ])('end an interpreter that forges a call: %s', async (forged, { session }) => {
    const { ended, calls } = await work(session, `${FORGE}\n${forged}\nimport time; time.sleep(5)`);
    expect(ended.stateLost).toBe(true);
    expect(calls).toEqual([]);
  });

  it('are absent from a cell without them', async ({ session }) => {
    await work(session, '1');
    const { result: plain } = await session.cell('add');
    expect(plain.error?.type).toBe('NameError');
    expect(plain.scratchpad).toBeUndefined();
  });
});

describe('the scratchpad of a session', () => {
  const it = itInSession(useSandboxes({ warm: 1 }));

  it('refuses names that hide others or are none', async ({ session }) => {
    const names = ['class', 'a b', '1a', '__x', 'memory', 'recall', 'tools', 'x'.repeat(61), ''];
    const code = `for name in ${JSON.stringify(names)}:\n  try: store(name, 1)\n  except ValueError as error: print("refused")\nstore("ﬁ", 2)\nfi`;
    const { stdout, displays, values } = await work(session, code);
    expect(stdout).toBe('refused\n'.repeat(names.length));
    expect(displays).toEqual([{ 'text/plain': '2' }]);
    expect(Object.keys(values)).toEqual(['fi']);
  });

  it('gives its names back to the next cell, and a tool hides none of them', async ({ session }) => {
    await work(session, 'store("a", [1]); store = memory = recall = None; del a');
    const { stdout } = await work(session, 'store("b", 2); print(a, memory.variables, tools.call("store", a=1))');
    expect(stdout).toBe("[1] {'a': [1], 'b': 2} {'a': 1}\n");
  });

  it('stores no value under the name of a tool, and loses none to one', async ({ session }) => {
    expect((await work(session, 'store("add", 1)')).ended.error).toMatchObject({ type: 'ValueError' });
    const run = { kind: 'cell' as const, code: 'store("add", 1)', scratchpad: { values: [], observations: [], failedApproaches: [] } };
    const request = { ...requestOf([run]), executionId: 'without-tools', keep: true };
    await session.claimed.execute(request, new Heard(), new AbortController().signal);
    const { values, stdout } = await work(session, 'print(add(2), recall("add"))');
    expect([stdout, values['add']?.shown]).toEqual(["{'a': 2} 1\n", '1']);
  });

  it('keeps small values in the state and large ones in files, also for another interpreter', async ({ session }) => {
    const code = 'store("small", b"x" * 60_000)\nstore("large", b"y" * 70_000)\nfor i in range(10): store(f"n{i}", bytes(60_000))';
    const { values } = await work(session, code);
    expect(values['small']).toMatchObject({
      pickled: expect.any(String) as string,
      shown: expect.stringMatching(/^b'x{98}\.\.\.$/) as string,
    });
    expect(values['large']).toMatchObject({ file: '.scratchpad/large.pickle' });
    expect(Object.values(values).filter(({ pickled }) => pickled)).toHaveLength(8);
    expect((await work(session, 'import os; os.kill(os.getpid(), 9)')).ended).toMatchObject({ stateLost: true });
    expect((await work(session, 'len(small), len(large), len(n9)')).displays).toEqual([{ 'text/plain': '(60000, 70000, 60000)' }]);
  });

  it('tells which values were lost, until they are stored again', async ({ session }) => {
    await work(session, 'class A: pass\nstore("a", A())\nstore("f", lambda: 1)\nstore("big", bytes(70_000))');
    await work(session, 'import os, shutil; shutil.rmtree(".scratchpad"); os.kill(os.getpid(), 9)');
    const { values, displays } = await work(session, 'store("f", 5)\nrecall("a", "gone"), list(memory.variables)');
    expect(displays).toEqual([{ 'text/plain': "('gone', ['f'])" }]);
    expect(values['a']?.lost).toMatch(/^AttributeError: .*'A'/);
    expect(values['big']?.lost).toMatch(/^FileNotFoundError/);
    expect(values['f']).toEqual({ shown: '5', pickled: expect.any(String) as string });
  });

  it('survives hostile values', async ({ session }) => {
    const code = `class Hostile:
  def __repr__(self): raise SystemExit(3)
  def __reduce__(self): raise RecursionError
class Text(str):
  def __str__(self): return 7
class Shown:
  def __repr__(self): return Text("shown")
store("a", Hostile()); store("b", Shown()); store("c", "\\U0001f600" * 200); observe("\\ud800" + "," * 2_000)
for _ in range(300): observe("o"); fail("f")`;
    const { ended, values } = await work(session, code);
    expect(ended.exit).toBe('ok');
    expect(values).toMatchObject({ a: { shown: '<Hostile without a repr: SystemExit>' }, b: { shown: 'shown' } });
    expect(ended.scratchpad?.observations).toHaveLength(200);
  });

  it.for([
    '{"values": [{"name": "a", "shown": "", "pickled": "A" * 100_000}], "observations": [], "failedApproaches": []}',
    '{"values": [{"name": "a", "shown": "", "file": "../secret"}], "observations": [], "failedApproaches": []}',
    '{"values": [{"name": "a b", "shown": ""}], "observations": [], "failedApproaches": []}',
    '{"values": [], "observations": [1], "failedApproaches": []}',
  ])('ends the sandbox of an interpreter that forges a state: %s', async (state, { session }) => {
    const forged = `${FORGE}\nforge({"type": "ended", "cell": 1, "exitCode": 0, "error": None, "scratchpad": ${state}})\nimport time; time.sleep(5)`;
    await expect(work(session, forged)).rejects.toThrow('no result');
    expect(await session.claimed.lost).toMatchObject({
      exit: 'kernel_lost',
      message: expect.stringContaining('malformed "run"') as string,
    });
  });
});

describe('a search in files', () => {
  const it = itInSession(useSandboxes({ warm: 1 }));

  it('finds lines of texts, without binary, large and foreign files', async ({ session: { command, files } }) => {
    const long = `printf 'needle%0400d\\n' 1 > z.txt`;
    await command(
      `mkdir d; printf 'a\\nthe needle\\n' > d/a.txt; printf 'needle\\0' > b.bin; printf '\\377needle' > c; ln -s d/a.txt link; ${long}; yes needle | head -c 1100000 > large`,
    );
    const { lines, total } = await files.search('needle', 10);
    expect(total).toBe(2);
    expect(lines).toEqual([
      { path: 'd/a.txt', line: 2, text: 'the needle' },
      { path: 'z.txt', line: 1, text: `needle${'0'.repeat(294)}` },
    ]);
    expect(await files.search('needle', 1)).toMatchObject({ lines: [{ path: 'd/a.txt' }], total: 2 });
    expect(await files.search('a.b', 10)).toEqual({ lines: [], total: 0 });
  });
});
