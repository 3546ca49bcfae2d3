import { describe, expect, it } from 'vitest';
import { call, command, program, useSandboxes } from '../sandbox-fixture.js';

const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('a program', () => {
  const sandboxes = useSandboxes();

  it('reads stdin in every way that Python offers', async () => {
    const code = 'import sys\nprint(input(), sys.stdin.readline().strip(), open(0).read() if False else sys.stdin.read().split())';
    expect(await sandboxes.one(program(code, 'a\nb\nc d\n'))).toMatchObject({ exit: 'ok', stdout: "a b ['c', 'd']\n" });
    expect(await sandboxes.one(program('print(open(0).read())', 'whole'))).toMatchObject({ stdout: 'whole\n' });
    expect(await sandboxes.one(program('print(open("/dev/stdin").read())', 'whole'))).toMatchObject({ stdout: 'whole\n' });
    expect(await sandboxes.one(program('import sys\nprint(sys.stdin.buffer.read())', 'é'))).toMatchObject({ stdout: "b'\\xc3\\xa9'\n" });
  });

  it('is __main__ and prints a traceback like Python', async () => {
    const result = await sandboxes.one(program('def f(n):\n    return 1 / n\n\nif __name__ == "__main__":\n    print("before")\n    f(0)'));
    expect(result).toMatchObject({ exit: 'nonzero', exitCode: 1, stdout: 'before\n' });
    expect(result.stderr).toContain('Traceback (most recent call last):\n  File "solution.py", line 6, in <module>\n    f(0)\n');
    expect(result.stderr.trimEnd()).toMatch(/ZeroDivisionError: division by zero$/);
    expect(result.stderr).not.toContain('runner');
  });

  it.each([
    ['a syntax error', 'def f(:\n  pass', /SyntaxError/],
    ['a null byte', 'print(1)\0', /null byte/],
    ['a lone surrogate', 'print("\ud800")', /UnicodeEncodeError|surrogates not allowed/],
  ])('reports %s as its own failure', async (_name, code, stderr) => {
    const result = await sandboxes.one(program(code));
    expect(result.exit).toBe('nonzero');
    expect(result.stderr).toMatch(stderr);
  });

  it('joins its threads and runs its exit hooks', async () => {
    const code =
      'import atexit, threading\natexit.register(lambda: print("hook"))\nended = threading.Event()\nthreading.Thread(target=lambda: (ended.wait(), print("thread"))).start()\nprint("end")\nended.set()';
    expect(await sandboxes.one(program(code))).toMatchObject({ exit: 'ok', stdout: 'end\nthread\nhook\n' });
  });

  it.each([
    ['sys.exit("why")', 1, 'why\n'],
    ['sys.exit()', 0, ''],
    ['exit(5)', 5, ''],
    ['raise SystemExit(300)', 44, ''],
    ['os._exit(9)', 9, ''],
  ])('exits by %s', async (statement, exitCode, stderr) => {
    expect(await sandboxes.one(program(`import os, sys\n${statement}`))).toMatchObject({
      exitCode,
      stderr,
      exit: exitCode === 0 ? 'ok' : 'nonzero',
    });
  });

  it('finds the files of the request and may import them', async () => {
    const files = [
      { path: 'data/in.txt', contentBase64: base64('file') },
      { path: 'helper.py', contentBase64: base64('def name(): return "helper"') },
    ];
    const [result] = await sandboxes.run([program('import helper\nprint(open("data/in.txt").read(), helper.name())')], { files });
    expect(result).toMatchObject({ exit: 'ok', stdout: 'file helper\n' });
  });

  it.each(['cell', 'runner', 'answer', 'values'])('finds nothing of the runner when it imports %s', async (name) => {
    expect((await sandboxes.one(program(`import ${name}`))).stderr).toContain('ModuleNotFoundError');
  });

  it('may recurse deeply, fork and use multiprocessing', async () => {
    const deep = 'import sys\nsys.setrecursionlimit(200000)\ndef d(n): return 0 if n == 0 else 1 + d(n - 1)\nprint(d(50000))';
    expect(await sandboxes.one(program(deep))).toMatchObject({ exit: 'ok', stdout: '50000\n' });
    const pool =
      'from multiprocessing import Pool\ndef double(x): return 2 * x\nif __name__ == "__main__":\n    with Pool(2) as p:\n        print(p.map(double, [1, 2, 3]))';
    expect(await sandboxes.one(program(pool))).toMatchObject({ exit: 'ok', stdout: '[2, 4, 6]\n' });
    const child = 'import subprocess\nprint(subprocess.run(["/bin/echo", "hi"], capture_output=True, text=True).stdout)';
    expect(await sandboxes.one(program(child))).toMatchObject({ exit: 'ok', stdout: 'hi\n\n' });
  });
});

describe('a call', () => {
  const sandboxes = useSandboxes();
  const value = async (expression: string) =>
    (await sandboxes.one(call(`import math, collections\ndef f():\n    return ${expression}`))).value;

  it.each([
    ['None', null],
    ['(1, [2.5, "x"], True)', [1, [2.5, 'x'], true]],
    ['{2, 1, 3}', { $set: [1, 2, 3] }],
    ['b"hi"', { $bytes: 'aGk=' }],
    ['1 + 2j', { $complex: [1, 2] }],
    ['{(2, 3): "b"}', { $dict: [[[2, 3], 'b']] }],
    ['{"$set": 1}', { $dict: [['$set', 1]] }],
    ['float("nan")', { $float: 'nan' }],
    ['[float("inf"), float("-inf")]', [{ $float: 'inf' }, { $float: '-inf' }]],
    ['2 ** 53', 2 ** 53],
    ['2 ** 53 + 1', { $int: '9007199254740993' }],
    ['range(3)', { $repr: 'range(0, 3)' }],
    ['collections.Counter("aab")', { a: 2, b: 1 }],
    ['"\\ud800"', '\ud800'],
    ['[{"__proto__": {"__proto__": 1}}]', JSON.parse('[{"__proto__": {"__proto__": 1}}]')],
  ])('gives %s as JSON', async (expression, expected) => {
    const given = await value(expression);
    expect(given).toEqual(expected);
    expect(JSON.stringify(given)).toBe(JSON.stringify(expected));
  });

  it('takes positional and named arguments', async () => {
    expect(await sandboxes.one(call('def f(a, *, b):\n    return [a, b]', [{ x: [1] }], { b: null }))).toMatchObject({
      value: [{ x: [1] }, null],
    });
  });

  it.each([
    ['def g(): pass', 'NameError', null],
    ['def f():\n    x = []\n    x.append(x)\n    return x', 'ValueError', null],
    ['def f():\n    raise KeyError("k")', 'KeyError', 2],
    ['def f(:', 'SyntaxError', 1],
    ['import sys\nsys.exit(0)', 'SystemExit', 2],
    ['import os\nos._exit(0)', 'NoValue', null],
  ])('reports the exception of %j', async (code, type, line) => {
    const result = await sandboxes.one(call(code));
    expect(result).toMatchObject({ exit: 'nonzero', error: { type, line } });
    expect(result.value).toBeUndefined();
  });

  it('reports an error for a value above the requested size', async () => {
    const asked = { valueKiB: 4, valueParts: 100 };
    const results = await sandboxes.run([
      { ...call('def f(): return "x" * 4000'), ...asked },
      { ...call('def f(): return "x" * 5000'), ...asked },
      { ...call('def f(): return [0] * 200'), ...asked },
    ]);
    expect(results).toMatchObject([
      { exit: 'ok' },
      {
        exit: 'nonzero',
        error: { type: 'ValueError', message: 'the value takes more than 4 KiB as JSON; return less, or print a part of it' },
      },
      {
        exit: 'nonzero',
        error: { type: 'ValueError', message: 'the value has more than 100 commas and brackets; return less, or print a part of it' },
      },
    ]);
    const forged =
      'import os, struct\nb = b\'{"value":"\' + b"x" * 9000 + b\'"}\'\nfor fd in range(3, 64):\n    try: os.write(fd, struct.pack(">I", len(b)) + b)\n    except OSError: pass\nos._exit(0)';
    const [lied] = await sandboxes.run([{ ...call(forged), ...asked }]);
    expect(lied).toMatchObject({ exit: 'nonzero', error: { type: 'NoValue' } });
  });

  it('can not forge its report', async () => {
    const code =
      'import os, struct\ndef f():\n    for body in (b"[" * 100000, b"{}", b"\\xff", b\'{"value":1e400}\', b\'{"value":\' + b"[" * 5000 + b"]" * 5000 + b"}"):\n        for fd in range(3, 30):\n            try: os.write(fd, struct.pack(">I", len(body)) + body)\n            except OSError: pass\n    return 1';
    expect((await sandboxes.one(call(code))).exit).toBe('nonzero');
  });
});

describe('a command', () => {
  const sandboxes = useSandboxes();

  it('runs in the working directory with the files of the request', async () => {
    const files = [{ path: 'solution.py', contentBase64: base64('print("from file")') }];
    const [result] = await sandboxes.run([command('pwd; ls; python3 solution.py; cat; exit 7', 'input')], { files });
    expect(await sandboxes.one(command("echo a b | awk '{print $2}' | sort | sed s/b/c/"))).toMatchObject({ exit: 'ok', stdout: 'c\n' });
    expect(result).toMatchObject({ exit: 'nonzero', exitCode: 7, stdout: '/tmp/work\nsolution.py\nfrom file\ninput' });
  });
});

describe('several runs', () => {
  const sandboxes = useSandboxes();

  it('see neither files nor processes of each other', async () => {
    const leave =
      'import os\nfor d in ("/tmp", "/tmp/work", "/dev/shm"):\n    os.makedirs(d + "/a/b/c", exist_ok=True)\n    open(d + "/left", "w").write("x")\nos.chmod("/tmp/work/a", 0)\nif os.fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(60)';
    const look =
      'import os\nprint(sorted(os.listdir("/tmp")), os.listdir("/tmp/work"), os.listdir("/dev/shm"), sum(n.isdigit() for n in os.listdir("/proc")) < 6)';
    const [, after] = await sandboxes.run([program(leave), program(look)], { files: [{ path: 'given', contentBase64: base64('1') }] });
    expect(after).toMatchObject({ stdout: "['work'] ['given'] [] True\n" });
  });

  it('find the files as given, even if an earlier run changed them', async () => {
    const files = [{ path: 'given', contentBase64: base64('first') }];
    const results = await sandboxes.run([program('open("given", "w").write("second")'), program('print(open("given").read())')], { files });
    expect(results[1]).toMatchObject({ stdout: 'first\n' });
  });

  it('continue after a run that left a deep tree', async () => {
    const deep = 'import os\nfor _ in range(3000):\n    os.mkdir("d")\n    os.chdir("d")';
    expect((await sandboxes.run([program(deep), program('import os\nprint(os.listdir("."))')]))[1]).toMatchObject({ stdout: '[]\n' });
  });

  it('hash alike unless the request has another seed', async () => {
    const hash = program('print(hash("etude"))');
    const stdout = async (hashSeed?: number) =>
      (await sandboxes.run([hash, hash], hashSeed === undefined ? {} : { hashSeed })).map((run) => run.stdout);
    const [first, second] = await stdout();
    expect(second).toBe(first);
    expect(await stdout(0)).toEqual([first, first]);
    const [other, again] = await stdout(7);
    expect(other).not.toBe(first);
    expect(again).toBe(other);
  });
});
