import { type CellTool, type CellToolAnswer, type CellToolCall, EMPTY_SCRATCHPAD, type Scratchpad } from '@etude/contracts/scratchpad';
import { randomUUID } from 'node:crypto';
import { SandboxLimits } from '@etude/contracts/sandbox';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SandboxLost, type WorkCell, type WorkCellOutcome, type WorkSandbox, type WorkSandboxes } from '../src/ports/sandboxes.js';

export interface WorkSandboxesUnderTest {
  readonly workSandboxes: WorkSandboxes;
  close?(): Promise<void>;
}

const ADD: CellTool = { name: 'add', parameters: ['a', 'b'], description: 'Adds two numbers.' };
const FIND: CellTool = { name: 'notes/find', parameters: ['query'], description: 'Finds notes.' };
const never = () => new AbortController().signal;
const cellOf = (code: string, given: Partial<WorkCell> = {}): WorkCell => ({
  executionId: `c-${randomUUID()}`,
  code,
  tools: [],
  scratchpad: EMPTY_SCRATCHPAD,
  ...given,
});
const requestOf = () => ({ tenant: 'acme', requestId: `work-${randomUUID()}`, template: undefined, limits: SandboxLimits.parse({}) });
const sum = async ({ arguments: { a, b } }: CellToolCall): Promise<CellToolAnswer> => ({ success: true, result: Number(a) + Number(b) });
const fails = async (): Promise<CellToolAnswer> => ({ success: false, error: 'no such note' });
const unexpected = (call: CellToolCall): Promise<CellToolAnswer> => Promise.reject(new Error(`called ${call.tool}`));
const bytes = (text: string) => new TextEncoder().encode(text);

/** The promises of every WorkSandboxes, fake or real. */
export function workSandboxesConformance(make: () => Promise<WorkSandboxesUnderTest>): void {
  const opened = async () => {
    const made = await make();
    const { workSandboxes } = made;
    onTestFinished(async () => made.close?.());
    const sandbox = await workSandboxes.open(requestOf(), never());
    onTestFinished(() => sandbox.close(never()));
    const cell = (code: string, given: Partial<WorkCell> = {}, answer = unexpected): Promise<WorkCellOutcome> =>
      sandbox.run(cellOf(code, given), answer, never());
    return { sandbox, cell, workSandboxes };
  };

  describe('cells', () => {
    it('gives output, displays and errors, and keeps names', async () => {
      const { cell } = await opened();
      expect(await cell('x = 20\nprint("hello")\nx + 1')).toMatchObject({
        exit: 'ok',
        exitCode: 0,
        stdout: 'hello\n',
        displays: [{ 'text/plain': '21' }],
        stateLost: false,
      });
      expect(await cell('x / 0')).toMatchObject({ exit: 'nonzero', error: { type: 'ZeroDivisionError', line: 1 }, displays: [] });
      expect((await cell('x')).displays).toEqual([{ 'text/plain': '20' }]);
    });

    it('follows a repeated execution with its calls, and runs nothing', async () => {
      const { sandbox, cell } = await opened();
      const asked = cellOf('print("once")\nopen("runs", "a").write("x")\nadd(1, 2)', { tools: [ADD] });
      const numbers: number[] = [];
      const answer = (call: CellToolCall) => (numbers.push(call.number), sum(call));
      const first = await sandbox.run(asked, answer, never());
      expect(await sandbox.run(asked, answer, never())).toEqual(first);
      expect(numbers).toEqual([1, 1]);
      expect((await cell('open("runs").read()')).displays).toEqual([{ 'text/plain': "'x'" }]);
    });

    it('stops a cell on abort and keeps the interpreter', async () => {
      const { sandbox, cell } = await opened();
      await cell('kept = 1');
      const abort = new AbortController();
      const stopped = sandbox.run(cellOf('add(1, 2)', { tools: [ADD] }), () => (abort.abort(), new Promise(() => undefined)), abort.signal);
      await expect(stopped).rejects.toMatchObject({ name: 'AbortError' });
      expect((await cell('kept')).displays).toEqual([{ 'text/plain': '1' }]);
    });

    it('reports the loss of the interpreter and keeps files', async () => {
      const { sandbox, cell } = await opened();
      const { scratchpad } = await cell('store("kept", [1])\nopen("f", "w").write("file")');
      const lost = await cell('import os\nos.kill(os.getpid(), 9)', { scratchpad: scratchpad! });
      expect(lost).toMatchObject({ exit: 'signal', stateLost: true });
      expect(lost.scratchpad).toBeUndefined();
      expect((await cell('kept, open("f").read()', { scratchpad: scratchpad! })).displays).toEqual([{ 'text/plain': "([1], 'file')" }]);
      expect(await sandbox.list(never())).toMatchObject([{ path: 'f', sizeBytes: 4 }]);
    });
  });

  describe('tools', () => {
    it('answers positional and keyword calls, and calls by name', async () => {
      const { cell } = await opened();
      const calls: CellToolCall[] = [];
      const answer = (call: CellToolCall): Promise<CellToolAnswer> => (
        calls.push(call),
        call.tool === 'add' ? sum(call) : Promise.resolve({ success: true, result: [{ id: 1, text: 'é' }] })
      );
      const code = 'print(add(1, b=2), tools.call("notes/find", query="q"), tools.call("add", {"a": 3, "b": 4}), tools.list())';
      const { stdout } = await cell(code, { tools: [ADD, FIND] }, answer);
      expect(stdout).toBe("3 [{'id': 1, 'text': 'é'}] 7 ['add', 'notes/find']\n");
      expect(calls).toEqual([
        { number: 1, tool: 'add', arguments: { a: 1, b: 2 } },
        { number: 2, tool: 'notes/find', arguments: { query: 'q' } },
        { number: 3, tool: 'add', arguments: { a: 3, b: 4 } },
      ]);
    });

    it('raises ToolError for a failure, and TypeError for unknown keywords', async () => {
      const { cell } = await opened();
      const code =
        'for act in (lambda: add(1, 2), lambda: add(c=1), lambda: tools.call("other")):\n  try: act()\n  except Exception as e: print(type(e).__name__, e)';
      const { stdout } = await cell(code, { tools: [ADD] }, fails);
      expect(stdout.split('\n').slice(0, 3)).toEqual([
        'ToolError no such note',
        "TypeError add() got an unexpected keyword 'c'; its parameters: a, b",
        "ToolError there is no tool 'other', only add",
      ]);
    });

    it('leaves the cell running when the answer throws', async () => {
      const { sandbox } = await opened();
      const asked = cellOf('add(20, 22)', { tools: [ADD] });
      await expect(sandbox.run(asked, unexpected, never())).rejects.toThrow('called add');
      expect((await sandbox.run(asked, sum, never())).displays).toEqual([{ 'text/plain': '42' }]);
    });
  });

  describe('the scratchpad', () => {
    it('is reported after each cell and names its values', async () => {
      const { cell } = await opened();
      const first = await cell('store("best", {"score": 3})\nobserve("saw")\nfail("greedy")');
      expect(first.scratchpad).toMatchObject({
        values: [{ name: 'best', shown: "{'score': 3}" }],
        observations: ['saw'],
        failedApproaches: ['greedy'],
      });
      const second = await cell('best["score"] += 1\nstore = None\nprint(recall("best"), recall("no", 7), memory.observations)');
      expect(second.stdout).toBe("{'score': 4} 7 ['saw']\n");
      expect((await cell('best = 5')).scratchpad?.values).toMatchObject([{ name: 'best', shown: '5' }]);
    });

    it('begins in another sandbox with the given state', async () => {
      const { cell, workSandboxes } = await opened();
      const { scratchpad } = await cell(
        'class A: pass\nstore("data", list(range(3)))\nstore("a", A())\nstore("f", lambda: 1)\nobserve("o")',
      );
      const other = await workSandboxes.open(requestOf(), never());
      onTestFinished(() => other.close(never()));
      const after = await other.run(cellOf('print(data, memory.observations)', { scratchpad: scratchpad! }), unexpected, never());
      expect(after.stdout).toBe("[0, 1, 2] ['o']\n");
      expect(lostOf(after.scratchpad)).toEqual({ data: false, a: true, f: true });
    });
  });

  describe('files', () => {
    it('are written, read, listed and searched', async () => {
      const { sandbox, cell } = await opened();
      await sandbox.write('notes/a.txt', bytes('one\ntwo words\nthree'), never());
      await sandbox.write('notes/a.txt', bytes('one\ntwo words\nthree two'), never());
      expect((await cell('open("notes/a.txt").readlines()[1]')).displays).toEqual([{ 'text/plain': "'two words\\n'" }]);
      expect(Buffer.from((await sandbox.read('notes/a.txt', 5, never()))!).toString()).toBe('one\nt');
      expect(await sandbox.read('missing', 5, never())).toBeNull();
      expect(await sandbox.list(never())).toEqual([{ path: 'notes/a.txt', sizeBytes: 23, modifiedAt: expect.any(Number) }]);
      expect(await sandbox.search('two', 1, never())).toEqual({ lines: [{ path: 'notes/a.txt', line: 2, text: 'two words' }], total: 2 });
      await expect(sandbox.write('../out', bytes(''), never())).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    });
  });

  it('gives the same sandbox for the same request, and none after its end', async () => {
    const { workSandboxes } = await opened();
    const request = requestOf();
    const first = await workSandboxes.open(request, never());
    expect((await workSandboxes.open(request, never())).name).toBe(first.name);
    await first.close(never());
    await first.close(never());
    await expect(runIn(first)).rejects.toBeInstanceOf(SandboxLost);
    await expect(first.list(never())).rejects.toBeInstanceOf(SandboxLost);
  });
}

const runIn = (sandbox: WorkSandbox) => sandbox.run(cellOf('1'), unexpected, never());
const lostOf = (scratchpad: Scratchpad | undefined) =>
  Object.fromEntries((scratchpad?.values ?? []).map(({ name, lost }) => [name, lost !== undefined]));
