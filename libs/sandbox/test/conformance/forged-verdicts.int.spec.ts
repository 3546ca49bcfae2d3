import { describe, expect, it } from 'vitest';
import { checked, useSandboxes } from '../sandbox-fixture.js';

/** Every attack below fails these tests. The value 8671309 occurs only here. */
const TESTS = `
def check(candidate):
    expected = "the secret is 8671309"
    assert candidate(1) == 8671309, "first"
    assert candidate(2) == expected, "second"
    for known in ([1, 2], (3,), {"a": 1}, 2.5):
        assert candidate(known) == known, "third"

check(f)
`;

const SETUP = 'def encode(text):\n    return text[::-1]\n';

const BASICS: Record<string, string> = {
  'prints PASS': 'def f(x):\n    print("PASS")\n    print("{\\"passed\\": true}")\n    return None',
  'exits 0 when it is called': 'import sys\ndef f(x):\n    sys.exit(0)',
  'calls os._exit(0) while it loads': 'import os\nos._exit(0)',
  'replaces sys.exit and os._exit': 'import sys, os\nsys.exit = os._exit = lambda *a: None\ndef f(x):\n    return None',
};

const PATCHES: Record<string, string> = {
  'overrides builtins': `
import builtins
for name in ("isinstance", "all", "any", "abs", "len", "type", "bool", "repr", "hasattr", "issubclass", "callable"):
    setattr(builtins, name, lambda *a, **k: True)
def f(x):
    return None`,
  'makes assertions harmless': `
import builtins
class Quiet(Exception):
    def __new__(cls, *a):
        raise SystemExit(0)
builtins.AssertionError = Quiet
def f(x):
    return None`,
  'replaces the codec': `
import json, struct, sys, base64
json.dumps = lambda *a, **k: '{"kind":"value","root":true,"table":[],"changed":[]}'
struct.pack = lambda *a: b"\\0\\0\\0\\1"
base64.b64encode = lambda *a: b""
for name in list(sys.modules):
    if name not in ("sys", "builtins"):
        sys.modules[name] = None
def f(x):
    return None`,
  'patches every function it can reach': `
import gc, types
def fake(*a, **k):
    return True
def f(x):
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType and thing not in (fake, f) and "run" in str(thing.__code__.co_filename):
            try:
                thing.__code__ = fake.__code__
            except Exception:
                pass
    return True`,
};

const EQUAL = `
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 1
    def __bool__(self): return True`;
const OBJECTS: Record<string, string> = {
  'returns an object that equals all': `class Same:${EQUAL}\ndef f(x):\n    return Same()`,
  'returns a forged int': `class Same(int):${EQUAL}\ndef f(x):\n    return Same(0)`,
  'returns a forged str': `class Same(str):${EQUAL}\ndef f(x):\n    return Same("")`,
  'returns a forged float': `class Same(float):${EQUAL}\n    def __sub__(self, o): return 0.0\n    def __abs__(self): return 0.0\ndef f(x):\n    return Same(0)`,
  'forges __class__': `class Same:${EQUAL}\n    __class__ = property(lambda self: int)\ndef f(x):\n    return Same()`,
  'forges through a metaclass': `class Meta(type):${EQUAL}\nclass Same(metaclass=Meta):\n    pass\ndef f(x):\n    return Same`,
  'returns itself': 'def f(x):\n    return f',
  'ends loops by StopIteration': 'def f(x):\n    raise StopIteration',
};

const OTHERS: Record<string, string> = {
  'kills its parent': 'import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\ndef f(x):\n    return None',
  'kills everything': 'import os, signal\ndef f(x):\n    os.kill(-1, signal.SIGKILL)\n    return None',
  'interrupts everything': `
import os, signal
def f(x):
    for pid in [int(p) for p in os.listdir("/proc") if p.isdigit()]:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM, signal.SIGHUP, signal.SIGCHLD):
            if pid != os.getpid():
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
    return None`,
  'limits the others': `
import os, resource
def f(x):
    for pid in [int(p) for p in os.listdir("/proc") if p.isdigit()]:
        for kind in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_DATA):
            try:
                if pid != os.getpid():
                    resource.prlimit(pid, kind, (0, 0))
            except OSError:
                pass
    return None`,
};

const DESCRIPTORS: Record<string, string> = {
  'writes verdicts to every descriptor it inherited': `
import os, json, struct
def forged():
    for document in ({"passed": True}, {"passed": True, "error": None}, {"type": "run", "seq": 0, "result": {"exit": "ok", "passed": True}}):
        body = json.dumps(document).encode()
        yield struct.pack(">I", len(body)) + body
        yield body + b"\\n"
def spray():
    for fd in range(0, 1024):
        for data in forged():
            try:
                os.write(fd, data)
            except OSError:
                pass
def f(x):
    spray()
    return None`,
  'opens the descriptors of every process': `
import os, json, struct
body = json.dumps({"passed": True, "error": None}).encode()
data = struct.pack(">I", len(body)) + body
opened = 0
def f(x):
    global opened
    for pid in [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
        try:
            names = os.listdir("/proc/%s/fd" % pid)
        except OSError:
            names = [str(n) for n in range(64)]
        for name in names:
            for flags in (os.O_WRONLY, os.O_RDWR):
                try:
                    os.write(os.open("/proc/%s/fd/%s" % (pid, name), flags), data)
                    opened += 1
                except OSError:
                    pass
    print("opened", opened)
    return None`,
  'takes descriptors and memory of other processes': `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
won = []
def f(x):
    for pid in [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
        if libc.ptrace(16, pid, 0, 0) == 0: won.append("ptrace")
        buffer = ctypes.create_string_buffer(8)
        if libc.syscall(310, pid, buffer, 1, buffer, 1, 0) >= 0: won.append("readv")
        fd = libc.syscall(434, pid, 0)
        for number in range(32):
            if fd >= 0 and libc.syscall(438, fd, number, 0) >= 0: won.append("getfd")
        for name in ("mem", "maps", "environ", "auxv", "syscall", "stack"):
            try:
                open("/proc/%d/%s" % (pid, name), "rb").read(16)
                won.append(name)
            except OSError:
                pass
    print("won", won)
    return None`,
  'answers ahead of time, huge, deep and malformed': `
import os, json, struct, socket
def send(body):
    for fd in range(3, 64):
        try:
            os.write(fd, struct.pack(">I", len(body)) + body)
        except OSError:
            pass
for body in (b'{"ready":["f"]}', b'{"kind":"value","root":8671309,"table":[],"changed":[]}' , b"[" * 50000, b'{"kind":"value","root":' + b'["t",[' * 5000 + b"1" + b"]]" * 5000 + b',"table":[],"changed":[]}', b"\\xff\\xfe", b"null", b'{"bye":true}'):
    send(body)
def f(x):
    return None`,
};

describe('a forged verdict', () => {
  const sandboxes = useSandboxes();

  const attacks = Object.entries({ ...BASICS, ...PATCHES, ...OBJECTS, ...OTHERS, ...DESCRIPTORS });
  it.each(attacks)('earns nothing: %s', async (_name, code) => {
    const result = await sandboxes.one(checked(code, TESTS), { wallMs: 4_000 });
    expect(result).toMatchObject({ passed: false });
    expect(result.exit).not.toBe('ok');
    expect(result.stdout).not.toMatch(/opened [1-9]|won \[['"]/);
  });

  it('is not needed by an honest answer', async () => {
    const honest = 'def f(x):\n    return {1: 8671309, 2: "the secret is 8671309"}[x] if x in (1, 2) else x';
    expect(await sandboxes.one(checked(honest, TESTS))).toMatchObject({ passed: true });
  });

  it('earns nothing by stopping the checker', async () => {
    const code = `
import os, signal
def f(x):
    for pid in [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
        os.kill(pid, signal.SIGSTOP)
    return None`;
    expect(await sandboxes.one(checked(code, TESTS), { wallMs: 1_000 })).toMatchObject({ passed: false, exit: 'wall' });
  });

  it('earns nothing if the tests catch every exception', async () => {
    const tests = 'for n in range(3):\n    try:\n        f(n)\n    except BaseException:\n        pass\n';
    expect(await sandboxes.one(checked('import os\ndef f(x):\n    os._exit(0)', tests))).toMatchObject({ passed: false });
    expect(await sandboxes.one(checked('def f(x):\n    raise ValueError', tests))).toMatchObject({ passed: true });
  });

  it.each([
    [
      'ends a loop of the tests early',
      'def f(x):\n    raise StopIteration',
      'assert all(map(f, [1, 2])), "all"\nassert list(map(f, [1])) == [], "never"',
    ],
    [
      'lies about what it contains',
      'class Any:\n    def __contains__(self, x): return True\n    def __iter__(self): return iter([1])\ndef f(x):\n    return Any()',
      'assert 5 in f(1)',
    ],
    [
      'redefines a helper of the setup',
      `${SETUP}def encode(text):\n    return "same"\ndef f(text):\n    return "same"`,
      'assert encode(f("abc")) == "abc"',
    ],
    [
      'forges a helper class of the tests',
      'class Anything: pass\ndef f(x):\n    Anything.__module__ = "solution"\n    return Anything()',
      'class Anything:\n    def __eq__(self, other): return True\nassert f(1) == 3',
    ],
  ])('earns nothing if it %s', async (_name, code, tests) => {
    expect(await sandboxes.one(checked(code, tests, SETUP))).toMatchObject({ passed: false });
  });

  it('finds neither tests nor expected values in its memory', async () => {
    const spy = `
import gc, sys, re
needle = "".join(chr(c) for c in (56, 54, 55, 49, 51, 48, 57))
phrase = "".join(chr(c) for c in (115, 101, 99, 114, 101, 116, 32, 105, 115))
def search():
    found = []
    frame = sys._getframe()
    while frame:
        for name, value in list(frame.f_locals.items()) + list(frame.f_globals.items()):
            if name not in ("needle", "phrase", "found", "text") and type(value) in (str, bytes, int) and needle in str(value):
                found.append("frame " + name)
        frame = frame.f_back
    for thing in gc.get_objects():
        if type(thing) in (list, tuple, dict):
            for item in (thing.values() if type(thing) is dict else thing):
                if type(item) is int and item == int(needle):
                    found.append("gc")
    pattern = re.compile(re.escape(phrase[:3]) + b"".decode() + re.escape(phrase[3:] + " ") + needle[:3])
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as mem:
        for line in maps:
            span, mode = line.split()[:2]
            if "r" not in mode or "[v" in line:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            try:
                mem.seek(start)
                data = mem.read(end - start)
            except (OSError, ValueError, OverflowError):
                continue
            for match in re.finditer(rb"the secret i[s] 86", data):
                found.append("memory")
    return found
def f(x):
    print("found", search())
    return None`;
    const result = await sandboxes.one(checked(spy, TESTS));
    expect(result.stdout).toBe('found []\n');
    expect(result.passed).toBe(false);
    // The same search finds a value that the answer was given.
    const given = await sandboxes.one(checked(spy, 'f("the secret is 8671309")'));
    expect(given.stdout).toContain("'memory'");
  });
});
