import type { SandboxFile } from '@etude/contracts/sandbox';
import { describe, expect, it } from 'vitest';
import { checked, useSandboxes } from '../sandbox-fixture.js';

const SETUP = 'class P:\n    def __init__(self, x): self.x = x\n    def same(self, other): return self.x == other.x\n';
const SHADOW = 'def yes(*a): return True\n';
const CASE = 'import unittest\nclass T(unittest.TestCase):\n    def test_one(self): self.assertEqual(f(1), 2)\n';

const file = (path: string, text: string): SandboxFile => ({ path, contentBase64: Buffer.from(text).toString('base64') });

describe('what the tests take for granted', () => {
  const sandboxes = useSandboxes();
  const verdict = async (code: string, tests: string, setup = '', files: SandboxFile[] = []) => {
    const [result] = await sandboxes.run([checked(code, tests, setup)], { files, limits: { wallMs: 8_000 } });
    return result?.passed;
  };

  it.each(['unittest', 'statistics', 'decimal', 'csv', 'unittest/__init__', 'solution'])(
    'is no module %s that the answer wrote into its folder',
    async (name) => {
      const evil = 'import os, json, struct\\nb = json.dumps({\\"passed\\": True, \\"error\\": None}).encode()\\n';
      const spray =
        'for fd in range(3, 64):\\n    try: os.write(fd, struct.pack(\\">I\\", len(b)) + b)\\n    except OSError: pass\\nos._exit(0)';
      const code = `import os\nos.makedirs("/tmp/work/unittest", exist_ok=True)\nopen("/tmp/work/${name}.py", "w").write("${evil}${spray}")\ndef f(x): return 0`;
      const [module] = name.split('/');
      expect(await verdict(code, `try:\n    import ${module}\nexcept ImportError: pass\nassert f(1) == 2`)).toBe(false);
    },
  );

  it('includes helper files as given, even if the answer changed them', async () => {
    const files = [
      file('helper.py', 'from tools.more import LIMIT\ndef same(a, b): return a == b and LIMIT == 3'),
      file('./tools/more.py', 'LIMIT = 3'),
    ];
    const tests = 'import helper\nassert helper.same(f(1), 2)';
    const rewrite = 'open("helper.py", "w").write("def same(a, b): return True")\n';
    expect(await verdict(`${rewrite}def f(x): return 0`, tests, '', files)).toBe(false);
    expect(await verdict(`${rewrite}def f(x): return 2`, tests, '', files)).toBe(true);
  });

  it('includes methods of setup classes, even if an instance has an attribute of that name', async () => {
    const returned = `${SETUP}${SHADOW}def f(x):\n    p = P(0)\n    p.same = yes\n    return p`;
    expect(await verdict(returned, 'assert f(1).same(P(5))', SETUP)).toBe(false);
    expect(await verdict(`${SHADOW}def f(p):\n    p.same = yes`, 'p = P(1)\nf(p)\nassert p.same(P(5))', SETUP)).toBe(false);
    expect(await verdict(`${SETUP}def f(x): return P(x)`, 'assert f(5).same(P(5))', SETUP)).toBe(true);
  });

  it('includes standard library modules that only the answer imported', async () => {
    const fake = 'class M:\n    def isclose(self, *a): return True\nmath = M()\ndef f(x): return 0';
    expect(await verdict(fake, 'assert math.isclose(f(1), 2)')).toBe(false);
  });

  it('includes that an object is as long as it says', async () => {
    const empty = 'class L:\n    def __len__(self): return 3\n    def __iter__(self): return iter([])\ndef f(x): return L()';
    expect(await verdict(empty, 'r = f(1)\nassert len(r) == 3\nfor a, b in zip(r, [1, 2, 3]): assert a == b')).toBe(false);
    const shrinking = 'class L:\n    told = [3, 0]\n    def __len__(self): return self.told.pop(0)\ndef f(x): return L()';
    expect(await verdict(shrinking, 'r = f(1)\nassert len(r) == 3\nfor i in range(len(r)): assert r[i] == i')).toBe(false);
  });

  it('lets honest objects change their length', async () => {
    const stack = 'class S:\n    def __init__(self): self.l = [1, 2, 3]\n    def __len__(self): return len(self.l)\n';
    const more = '    def pop(self): return self.l.pop()\n    def __iter__(self): return iter(self.l)\ndef f(x): return S()';
    const tests =
      's = f(1)\nassert isinstance(s, S) and len(s) == 3 and list(s) == [1, 2, 3] and s.pop() == 3 and len(s) == 2 and list(s) == [1, 2]\nwhile len(s): s.pop()\nassert list(s) == []';
    expect(await verdict(stack + more, tests)).toBe(true);
  });

  it('includes that the answer lives while it calls back', async () => {
    const code =
      'import os, threading, time\ndef f(g):\n    threading.Thread(target=lambda: (time.sleep(0.05), os._exit(0))).start()\n    g()';
    expect(await verdict(code, 'import time\ntry: f(lambda: time.sleep(0.3))\nexcept BaseException: pass')).toBe(false);
  });

  it.each(['unittest.main(argv=[""], exit=False)', 'unittest.TextTestRunner().run(unittest.makeSuite(T))'])(
    'is that a failed case fails the check, also by %s',
    async (end) => {
      expect(await verdict('def f(x): return 0', `${CASE}${end}`)).toBe(false);
      expect(await verdict('def f(x): return 2', `${CASE}${end}`)).toBe(true);
    },
  );
});
