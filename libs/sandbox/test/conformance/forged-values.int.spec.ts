import type { SandboxFile } from '@etude/contracts/sandbox';
import { describe, expect, it } from 'vitest';
import { call, checked, useSandboxes } from '../sandbox-fixture.js';

const DATA: SandboxFile = { path: 'data/rows.txt', contentBase64: Buffer.from('3\n1\n2\n').toString('base64') };

/** A class whose instances hold the items `held`, but whose methods return the items `shown`. */
const twoFaced = (base: string, held: string, shown: string) => `
class Two(${base}):
    def __iter__(self): return iter(${shown})
    def __len__(self): return len(${shown})
    def __getitem__(self, at): return ${shown}[at]
    def __contains__(self, one): return True
    def __eq__(self, other): return True
    def __repr__(self): return repr(${shown})
    def items(self): return dict(${shown}).items()
    def keys(self): return dict(${shown}).keys()
def f(*given):
    return Two(${held})
`;

const QUEENS = `
board = f(6)
assert len(board) == 6 and sorted(board) == [0, 1, 2, 3, 4, 5]
for a in range(6):
    for b in range(a):
        assert abs(board[a] - board[b]) != a - b
`;
const LINKED = 'class Node:\n    def __init__(self, value): self.value = value\n';
const STOP = 'def stop(code=0): raise SystemExit(code)\n';

/** Name, forged answer, honest twin, tests. */
const CHECKED: ReadonlyArray<readonly [string, string, string, string]> = [
  [
    'an object that shows another board at each look',
    'class Board:\n    turn = 0\n    def __len__(self): return 6\n    def __iter__(self): return iter(range(6))\n    def __getitem__(self, at):\n        Board.turn += 100\n        return Board.turn\ndef f(n): return Board()',
    'def f(n): return [1, 3, 5, 0, 2, 4]',
    QUEENS,
  ],
  [
    'an object of a class that the tests do not name',
    `${LINKED}def f(x): return Node(1)`,
    'def f(x): return {"value": 1}',
    'r = f(1)\nassert (r["value"] if type(r) is dict else r.value) == 1',
  ],
  ['a list that shows other items', twoFaced('list', '[2, 1]', '[1, 2]'), 'def f(x): return [1, 2]', 'assert f(1) == [1, 2]'],
  ['a tuple that shows other items', twoFaced('tuple', '[2, 1]', '[1, 2]'), 'def f(x): return (1, 2)', 'assert list(f(1)) == [1, 2]'],
  [
    'a set that shows itself sorted',
    twoFaced('set', '[9, 1]', '[1, 9]'),
    'def f(x): return [1, 9]',
    'r = f(1)\nassert r == sorted(r) and r[0] == 1',
  ],
  [
    'a dict that shows other items',
    twoFaced('dict', '{"a": 2}', '{"a": 1}'),
    'def f(x): return {"a": 1}',
    'assert dict(f(1).items()) == {"a": 1}',
  ],
  ['a function of the tests that raises SystemExit', 'def f(g): g(0)', 'def f(g): return 1', `${STOP}r = f(stop)\nassert r == 1`],
  ['sys.exit handed over', 'def f(g): g()', 'def f(g): return 1', 'import sys\nr = f(sys.exit)\nassert r == 1'],
  [
    'a rewritten file of the task',
    'def f(x):\n    open("data/rows.txt", "w").write("1\\n")\n    return [1]',
    'def f(x): return sorted(map(int, open("data/rows.txt")))',
    'r = f(1)\nassert r == sorted(map(int, open("data/rows.txt")))',
  ],
  [
    'a rewritten file of the task that is read by pathlib',
    'import os\ndef f(x):\n    os.remove("data/rows.txt")\n    open("data/rows.txt", "w").write("1\\n")\n    return 1',
    'def f(x): return len(open("data/rows.txt").readlines())',
    'import pathlib\nr = f(1)\nassert r == len(pathlib.Path("/tmp/work/data/../data/rows.txt").read_text().split())',
  ],
];

/** Name, forged answer, honest twin, and the value of the honest twin. */
const CALLED: ReadonlyArray<readonly [string, string, string, unknown]> = [
  ['a set that shows itself sorted', twoFaced('set', '[9, 1]', '[1, 9]'), 'def f(): return [1, 9]', [1, 9]],
  ['a list that shows other items', twoFaced('list', '[9, 1]', '[1, 9]'), 'def f(): return (1, 9)', [1, 9]],
  [
    'a dict that shows other items',
    twoFaced('dict', '{"a": 2}', '{"a": 1}'),
    'from collections import Counter\ndef f(): return Counter("a")',
    { a: 1 },
  ],
  [
    'bytes that show others',
    'class B(bytes):\n    def __bytes__(self): return b"b"\ndef f(): return B(b"a")',
    'def f(): return b"b"',
    { $bytes: 'Yg==' },
  ],
  [
    'a complex number that shows another',
    'class C(complex):\n    real = imag = 1\n    def __complex__(self): return 1+1j\ndef f(): return C(2, 2)',
    'def f(): return 1+1j',
    { $complex: [1, 1] },
  ],
];

describe('a forged value', () => {
  const sandboxes = useSandboxes();
  const passes = async (code: string, tests: string) => (await sandboxes.run([checked(code, tests)], { files: [DATA] }))[0]?.passed;

  it.each(CHECKED)('fails tests: %s', async (_name, forged, honest, tests) => {
    expect(await passes(honest, tests)).toBe(true);
    expect(await passes(forged, tests)).toBe(false);
  });

  it.each(CALLED)('is returned with its real contents: %s', async (_name, forged, honest, value) => {
    expect((await sandboxes.one(call(honest))).value).toEqual(value);
    expect((await sandboxes.one(call(forged))).value).not.toEqual(value);
  });

  it.each([
    [
      'a generator',
      'def f(n):\n    yield from range(n)',
      'assert list(f(3)) == [0, 1, 2]\ng = f(2)\nassert next(g) == 0 and next(g) == 1 and next(g, None) is None',
    ],
    ['a function', 'def f(n): return lambda m: n + m', 'assert f(2)(3) == 5'],
    ['a partial function', 'import functools\nf = functools.partial(pow, 2)', 'assert f(3) == 8'],
    [
      'a class with state',
      'class Counter:\n    def __init__(self): self.n = 0\n    def add(self): self.n += 1; return self',
      'c = Counter()\nassert c.add().add().n == 2 and c.n == 2',
    ],
    ['an object inside a list', `${LINKED}def f(x): return [Node(1), Node(2)]`, 'assert [n.value for n in f(1)] == [1, 2] and Node'],
  ])('is not %s', async (_name, code, tests) => expect(await passes(code, tests)).toBe(true));

  it('is the same at each look at an object until a call', async () => {
    const code = `class Counting:
    def __init__(self): self.looks = 0
    def _next(self): self.looks += 1; return self.looks
    value = property(_next)
    def __getitem__(self, at): return self._next()
    def __str__(self): return "n" * self._next()
    def __iter__(self): return iter(range(9 - self._next()))
    def read(self): return self._next()
def f(x): return Counting()`;
    const tests = `c = f(1)
assert isinstance(c, Counting)
for look in (lambda: c.value, lambda: c[0], lambda: str(c), lambda: list(c)): assert look() == look() and look()
before = c.value
assert c.read() != c.read() and c.value != before`;
    expect(await passes(code, tests)).toBe(true);
  });

  it('is named in the error if it is an object', async () => {
    const { error } = await sandboxes.one(checked(`${LINKED}def f(x): return Node(1)`, 'f(1)'));
    expect(error).toMatchObject({ type: 'NotPlain', message: expect.stringContaining('gave a Node, which is not plain data') });
  });
});
