import { describe, expect } from 'vitest';
import { useSandboxes } from '../sandbox-fixture.js';
import { itInSession } from '../session-fixture.js';

const TABLE = 'application/vnd.dataresource+json';
/** Code that uses this much CPU time. */
const burn = (seconds: number) => `import time\nend = time.process_time() + ${seconds}\nwhile time.process_time() < end: pass`;
/** Writes forged reports to the socket over which the interpreter reports. */
const FORGE = `
import os, stat, struct, time
def send(raw):
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, raw)
        except OSError: pass
def forge(body): send(struct.pack(">I", len(body)) + body)
`;

describe('a cell of a session', () => {
  const it = itInSession(useSandboxes({ warm: 1 }));

  it('shows its last value, unless it is None or followed by a semicolon', async ({ session: { cell } }) => {
    expect((await cell('x = 2\nx * 21')).displays).toEqual([{ 'text/plain': '42' }]);
    expect((await cell('_ + 1')).displays).toEqual([{ 'text/plain': '43' }]);
    for (const silent of ['None', 'x;', 'y = x', '', '# only a comment']) expect((await cell(silent)).displays).toEqual([]);
  });

  it('prints tracebacks with lines of its own and of earlier cells, without frames of the runner', async ({ session: { cell } }) => {
    await cell('def half(n):\n    return n / 0');
    const { stderr, result } = await cell(
      'try:\n    half(1)\nexcept ZeroDivisionError as error:\n    raise ValueError("no half") from error',
    );
    expect(stderr).toContain('File "<cell 2>", line 2, in <module>\n    half(1)\n');
    expect(stderr).toContain('File "<cell 1>", line 2, in half\n    return n / 0\n');
    expect(stderr.trimEnd()).toMatch(/ValueError: no half$/);
    expect(stderr).not.toMatch(/runner|session_cell/);
    expect(result).toMatchObject({ exit: 'nonzero', exitCode: 1, error: { type: 'ValueError', message: 'no half', line: 4 } });
  });

  it.for([
    ['def f(:', /File "<cell 1>", line 1\n {4}def f\(:\n[^]*SyntaxError/],
    ['print(1)\0', /null bytes/],
    ['def f(n): return f(n + 1)\nf(0)', /RecursionError/],
    [`${'('.repeat(300)}1${')'.repeat(300)}`, /SyntaxError|MemoryError|RecursionError/],
  ] as const)('fails by itself and keeps the session: %j', async ([code, stderr], { session: { cell } }) => {
    const failed = await cell(code);
    expect(failed.stderr).toMatch(stderr);
    expect(failed.result).toMatchObject({ exit: 'nonzero' });
    expect(failed.result.stateLost).toBeUndefined();
    expect((await cell('"on"')).displays).toEqual([{ 'text/plain': "'on'" }]);
  });

  it.for([
    ['import sys; sys.exit("why")', 1, 'why\n'],
    ['exit(7)', 7, ''],
  ] as const)('ends by %s, and the session goes on', async ([code, exitCode, stderr], { session: { cell } }) => {
    await cell('kept = 1');
    expect(await cell(code)).toMatchObject({ stderr, result: { exitCode, exit: 'nonzero' } });
    expect((await cell('kept')).displays).toEqual([{ 'text/plain': '1' }]);
  });

  it('says that there is no stdin', async ({ session: { cell } }) => {
    expect((await cell('input("name? ")')).stderr).toMatch(/EOFError: .*no stdin/);
    expect((await cell('import sys; sys.stdin.read()')).displays).toEqual([{ 'text/plain': "''" }]);
  });

  it('is interrupted at its wall limit with its processes, and keeps its names', async ({ session: { cell } }) => {
    await cell('kept = 1');
    for (const slow of ['while True: pass', 'import time; time.sleep(60)', 'import subprocess; subprocess.run(["sleep", "60"])']) {
      const { result, stderr } = await cell(slow, { wallMs: 2_000 });
      expect(result).toMatchObject({ exit: 'wall' });
      expect(result.stateLost).toBeUndefined();
      expect(stderr).toMatch(/KeyboardInterrupt\s*$/);
    }
    expect((await cell('kept')).displays).toEqual([{ 'text/plain': '1' }]);
  });

  it.for([
    ['catches the interrupt', 'import time\nwhile True:\n    try:\n        time.sleep(60)\n    except KeyboardInterrupt: pass'],
    ['ignores the signal', 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass'],
    ['never comes back from C', 'import re\nre.match("(a+)+$", "a" * 40 + "b") if False else sum(range(10**12))'],
  ] as const)('is ended if it %s', async ([_name, code], { session: { cell } }) => {
    await cell('lost = 1');
    const { result } = await cell(code, { wallMs: 300 });
    expect(result).toMatchObject({ exit: 'wall', stateLost: true });
    expect(result.wallMs).toBeLessThan(20_000);
    expect((await cell('"lost" in globals()')).displays).toEqual([{ 'text/plain': 'False' }]);
  });

  it('is interrupted again after a cell that ignored the signal', async ({ session: { cell } }) => {
    await cell('import signal\nkept = signal.signal(signal.SIGINT, signal.SIG_IGN) and 1');
    expect((await cell('while True: pass', { wallMs: 2_000 })).result).toMatchObject({ exit: 'wall' });
    expect((await cell('kept')).displays).toEqual([{ 'text/plain': '1' }]);
  });

  it('has its own CPU limit: five of half a second pass under a second, one of two does not', async ({ session: { cell } }) => {
    for (let count = 0; count < 5; count++) expect((await cell(burn(0.5), { cpuMs: 1_000 })).result).toMatchObject({ exit: 'ok' });
    expect((await cell(burn(2), { cpuMs: 1_000 })).result).toMatchObject({ exit: 'cpu' });
  });

  it('meets its memory limit as a MemoryError and keeps its names', async ({ session: { cell } }) => {
    await cell('kept = 1');
    expect((await cell('x = "a" * (1 << 30)\ndisplay(x)', { memoryMiB: 128 })).result).toMatchObject({ exit: 'oom' });
    expect((await cell('kept')).displays).toEqual([{ 'text/plain': '1' }]);
  });

  it('continues only in the parent after a fork', async ({ session: { cell } }) => {
    const forked = await cell('import os, time\nkept = 1\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nelse:\n    kept = 2\npid > 0');
    expect(forked.displays).toEqual([{ 'text/plain': 'True' }]);
    expect(forked.stdout).toBe('False\n');
    expect((await cell('kept')).displays).toEqual([{ 'text/plain': '1' }]);
  });

  it('leaves no process behind and keeps the session', async ({ session: { cell, command } }) => {
    await cell(
      'import os, subprocess, time\nchild = subprocess.Popen(["sleep", "600"], start_new_session=True)\nif os.fork() == 0:\n    os.setsid()\n    while True: time.sleep(1)',
    );
    const look = await command(
      'for s in /proc/[0-9]*/stat; do cat $s; done | grep -c " [RSD] "; for c in /proc/[0-9]*/cmdline; do tr "\\\\0" " " < $c; echo; done | grep -c "^sleep "',
    );
    expect(look.stdout.split('\n')[1]).toBe('0');
    expect((await cell('child.wait()')).displays).toEqual([{ 'text/plain': '-9' }]);
  });

  it('counts no process that an earlier cell left', async ({ session: { cell } }) => {
    const limits = { processes: 24 };
    const bomb =
      'import os, subprocess, time\nwhile True:\n    try:\n        pid = os.fork()\n    except OSError:\n        break\n    if pid == 0:\n        time.sleep(600)';
    await cell(bomb, limits);
    const next = await cell('[one.wait() for one in [subprocess.Popen(["true"]) for _ in range(12)]].count(0)', limits);
    expect(next).toMatchObject({ result: { exit: 'ok' }, displays: [{ 'text/plain': '12' }] });
  });

  it('stops threads between cells, and continues them in the next', async ({ session: { cell, command } }) => {
    const thread = `
import threading, time
ticks, longest, last = 0, 0, time.monotonic()
def tick():
    global ticks, longest, last
    while True:
        now = time.monotonic()
        ticks, longest, last = ticks + 1, max(longest, now - last), now
        time.sleep(0.001)
threading.Thread(target=tick, daemon=True).start()
while ticks < 5: time.sleep(0.001)`;
    await cell(thread);
    await command('sleep 0.5');
    // This loop ends only if the thread goes on in this cell.
    const goesOn = 'start = ticks\nwhile ticks < start + 5: time.sleep(0.001)\nlongest >= 0.5';
    expect(await cell(goesOn)).toMatchObject({ result: { exit: 'ok' }, displays: [{ 'text/plain': 'True' }] });
  });

  it('finds modules and changes that were uploaded just now', async ({ session: { cell, files } }) => {
    expect((await cell('import helper')).stderr).toMatch(/ModuleNotFoundError/);
    await files.write('helper.py', 0, Buffer.from('name = "helper"'), true);
    expect((await cell('import helper; helper.name')).displays).toEqual([{ 'text/plain': "'helper'" }]);
  });
});

describe('what a cell displays', () => {
  const it = itInSession(useSandboxes({ warm: 1 }));

  it('has every form that a value offers', async ({ session: { cell } }) => {
    const code = `
class Rich:
    def __repr__(self): return "rich"
    def _repr_mimebundle_(self, include=None, exclude=None): return {"text/latex": "$x$", "application/x+json": {"a": 1}}, {"meta": 1}
    def _repr_html_(self): return "<b>é</b>"
    def _repr_markdown_(self): return "**m**", {}
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_jpeg_(self): return b"\\xff\\xd8"
    def _repr_json_(self): return {"k": [1, None, "x"]}
Rich()`;
    expect((await cell(code)).displays).toEqual([
      {
        'text/plain': 'rich',
        'text/latex': '$x$',
        'application/x+json': { a: 1 },
        'text/html': '<b>é</b>',
        'text/markdown': '**m**',
        'image/svg+xml': '<svg/>',
        'image/png': 'iVBORw==',
        'image/jpeg': '/9g=',
        'application/json': { k: [1, null, 'x'] },
      },
    ]);
  });

  it('is exact as JSON, even for values that JSON readers round', async ({ session: { cell } }) => {
    const code = String.raw`
display([{"id": 9007199254740993, "__proto__": {"b": [2 ** 53, True]}}, 1.5])
display({"\ud800": 1})
display([float("nan")])
raise ValueError("bad \ud800")`;
    const { displays, result } = await cell(code);
    expect(JSON.stringify(displays[0]?.['application/json'])).toBe(
      '[{"id":{"$int":"9007199254740993"},"__proto__":{"b":[9007199254740992,true]}},1.5]',
    );
    expect(displays[1]).toEqual({ 'text/plain': String.raw`{'\ud800': 1}` });
    expect(displays[2]).toEqual({ 'text/plain': '[nan]' });
    expect(result?.error).toMatchObject({ type: 'ValueError', message: String.raw`bad \ud800` });
  });

  it('keeps its place between the printed texts', async ({ session: { cell } }) => {
    const { told } = await cell('for i in range(20):\n    print("p%d" % i)\n    display(i)');
    const lines = Array.from({ length: 20 }, (_, i) => [`p${i}\n`, JSON.stringify(String(i))]).flat();
    expect(told).toEqual(lines);
  });

  it('names in its text the errors that its methods raised', async ({ session: { cell } }) => {
    const code =
      'class Bad:\n    def __repr__(self): raise ValueError("no")\n    def _repr_html_(self): 1 / 0\n    def _repr_json_(self): return {1, 2}\nBad()';
    const { displays, result } = await cell(code);
    expect(displays[0]?.['text/plain']).toMatch(
      /repr raised ValueError: no[^]*_repr_html_ raised ZeroDivisionError[^]*_repr_json_ raised TypeError: Object of type set/,
    );
    expect(result).toMatchObject({ exit: 'ok' });
  });

  it('is a table for a data frame', async ({ session: { cell } }) => {
    const code = `
class Frame:
    columns = ["a", "b"]
    def __init__(self, rows): self.rows = rows
    def __len__(self): return self.rows
    def head(self, most): return Frame(min(most, self.rows))
    def to_dict(self): raise AssertionError
    def itertuples(self, index=True, name="Pandas"): return ((2**60, float("nan")) for _ in range(self.rows))
display(Frame(1), Frame(5000))`;
    const [short, long] = (await cell(code)).displays.map((display) => display[TABLE]);
    expect(short).toEqual({ schema: { fields: [{ name: 'a' }, { name: 'b' }] }, data: [{ a: '1152921504606846976', b: null }] });
    expect(long).toMatchObject({ rowsTotal: 5_000, data: { length: 1_000 } });
  });

  it('shows open figures as images when the cell ends, and closes them', async ({ session: { cell } }) => {
    const fake = `
import sys, types
class Figure:
    __module__ = "matplotlib.figure"
    def savefig(self, file, format, **options): file.write(b"\\x89PNG" + format.encode())
pyplot = types.ModuleType("matplotlib.pyplot")
figures = {1: Figure(), 2: Figure()}
pyplot.get_fignums = lambda: list(figures)
pyplot.figure = figures.get
pyplot.close = lambda which: figures.clear()
sys.modules["matplotlib.pyplot"] = pyplot
display(figures[2])
1 / 0`;
    const { displays, result } = await cell(fake);
    expect(displays.map((display) => display['image/png'])).toEqual(['iVBOR3BuZw==', 'iVBOR3BuZw==']);
    expect(result.error?.type).toBe('ZeroDivisionError');
    expect((await cell('import os; os.environ["MPLBACKEND"]')).displays).toEqual([{ 'text/plain': "'Agg'" }]);
  });

  it('stays within its bounds and says how much was left out', async ({ session: { cell } }) => {
    const many = await cell('for i in range(3000): display(i)');
    expect(many.displays).toHaveLength(1_001);
    expect(many.displays.at(-1)?.['text/plain']).toMatch(/^2000 more outputs were dropped/);
    const large =
      'class Big:\n    def __repr__(self): return "big"\n    def _repr_html_(self): return "x" * (3 << 20)\nfor _ in range(4): display(Big())';
    const bounded = await cell(large);
    expect(bounded.displays.map((display) => 'text/html' in display)).toEqual([true, true, false]);
    expect(bounded.displays[2]?.['text/plain']).toMatch(/^2 more outputs were dropped/);
    const [text] = (await cell('display("a" * (100 << 20))')).displays;
    expect(JSON.stringify(text).length).toBeLessThan(70_000);
    const commas = await cell('class Commas:\n    def _repr_svg_(self): return "," * 1000000\nCommas()');
    expect(commas.displays[0]?.['text/plain']).toMatch(/too large/);
  });

  it.for([
    ['a second end', 'forge(b\'{"type":"ended","cell":1,"exitCode":0}\')'],
    ['no JSON', 'forge(b"{{{")'],
    ['a frame without end', 'send(b"\\xff" * 100)'],
    ['a number beyond all', 'forge(b\'{"type":"display","cell":1,"data":{"text/plain":"x","n":1e999}}\')'],
    ['deep nesting', 'forge(b\'{"type":"display","cell":1,"data":{"text/plain":"x","n":\' + b"[" * 100000 + b"]" * 100000 + b"}}")'],
    ['a display without text', 'forge(b\'{"type":"display","cell":1,"data":{}}\')'],
    ['displays without end', 'for _ in range(12000): forge(b\'{"type":"display","cell":1,"data":{"text/plain":"x"}}\')'],
    ['many values', 'forge(b\'{"type":"display","cell":1,"data":{"text/plain":"x","n":[\' + b"[]," * 2000000 + b"0]}}")'],
  ] as const)('harms only its own session when it forges %s', async ([_name, attack], { session: { cell, command } }) => {
    const { result, displays } = await cell(`${FORGE}\n${attack}\ntime.sleep(0.2)`, { wallMs: 2_000 });
    expect(['ok', 'kernel_lost', 'signal', 'nonzero', 'wall']).toContain(result.exit);
    expect(displays.length).toBeLessThanOrEqual(1_001);
    expect((await command('echo on')).stdout).toBe('on\n');
    expect((await cell('"on"')).displays.at(-1)).toEqual({ 'text/plain': "'on'" });
  });
});
