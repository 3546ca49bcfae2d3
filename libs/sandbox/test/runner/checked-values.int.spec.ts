import { describe, expect, it } from 'vitest';
import { checked, useSandboxes } from '../sandbox-fixture.js';

const PASSED = { exit: 'ok', passed: true };

describe('a check', () => {
  const sandboxes = useSandboxes();
  const verdict = async (code: string, tests: string, setup = '') => {
    const { exit, passed, error } = await sandboxes.one(checked(code, tests, setup));
    return error ? { exit, passed, error } : { exit, passed };
  };

  it.each([
    [
      'hands values of every plain kind across and back, exactly',
      'def f(x): return x',
      `
import math, datetime, decimal, fractions, collections
values = [None, True, False, 0, -1, 2**63, -2**200, 10**4000, 0.1, -0.0, 1e308, 5e-324, 3+4j, "", "é😀\\ud800", b"", b"\\x00\\xff",
    [], [[]], (), (1,), ((1, [2]), {3}), set(), {1, "a", (2, 3)}, frozenset({1, frozenset({2})}), {}, {1: "a", (1, 2): [3], None: {}, 2.5: {1}},
    range(3), range(10, 0, -3), slice(1, None), int, str, ..., bytearray(b"ab"), collections.deque([1, 2], 5), collections.OrderedDict(b=1, a=2),
    collections.Counter("abca"), decimal.Decimal("1.10"), fractions.Fraction(1, 3), datetime.date(2020, 2, 29), datetime.timedelta(1, 2, 3),
    datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc), datetime.time(1, 2)]
for value in values:
    back = f(value)
    assert back == value and type(back) is type(value), value
    assert repr(back) == repr(value), value
assert math.isnan(f(float("nan"))) and f(float("inf")) == math.inf
assert list(f({"b": 1, "a": 2})) == ["b", "a"]
assert f([1] * 200000) == [1] * 200000`,
    ],
    [
      'keeps sharing, cycles and depth',
      'def f(x): return x\ndef deep(n):\n    r = []\n    for _ in range(n): r = [r]\n    return r',
      `
a = [1]
pair = f([a, a])
assert pair[0] is pair[1] is a
loop = []
loop.append(loop)
assert f(loop) is loop
r = deep(20000)
n = 0
while r: r = r[0]; n += 1
assert n == 20000`,
    ],
    [
      'sees what the answer changed in its arguments',
      'def f(l, d, s, b, nested):\n    l.sort(); l.append(9)\n    d["new"] = l; del d["old"]\n    s.add(3); s.discard(1)\n    b[0] = 65\n    nested["in"][0].append("deep")\n    return l',
      `
l, d, s, b, inner = [3, 1, 2], {"old": 1}, {1}, bytearray(b"xy"), [[]]
same = f(l, d, s, b, {"in": inner})
assert l == [1, 2, 3, 9] and same is l and d == {"new": l} and d["new"] is l and s == {3} and b == b"Ay" and inner == [["deep"]]`,
    ],
    [
      'raises the exceptions of the answer as its own',
      'class Own(ValueError): pass\ndef f(k):\n    if k == 1: raise ValueError("v", 2)\n    if k == 2: raise Own("own")\n    if k == 3: return {}["x"]\n    if k == 4: return open("/none")\n    raise TypeError',
      `
try: f(1)
except ValueError as e: assert e.args == ("v", 2)
else: assert False
try: f(2)
except Own as e: assert str(e) == "own" and isinstance(e, ValueError)
else: assert False
for n, kind in ((3, KeyError), (4, FileNotFoundError), (5, TypeError)):
    try: f(n)
    except kind: pass
    else: assert False`,
    ],
    [
      'calls functions of the tests and iterates over theirs',
      'def f(g, items): return sorted(items, key=g)\ndef squares(n):\n    for i in range(n): yield i * i\ndef make(n): return lambda x: x + n\ndef take(it): return [next(it), next(it)]\ndef twice(g, x): return g(g(x))',
      `
assert f(lambda x: -x, [1, 3, 2]) == [3, 2, 1]
assert f(len, ["aaa", "b"]) == ["b", "aaa"]
assert list(squares(4)) == [0, 1, 4, 9]
g = squares(3)
assert next(g) == 0 and next(g) == 1
assert sum(squares(5)) == 30 and max(squares(4)) == 9
assert make(3)(4) == 7
import itertools
assert take(itertools.count(5)) == [5, 6]
assert twice(make(2), 1) == 5
def raising(x): raise LookupError("from the tests")
try: twice(raising, 1)
except LookupError as e: assert str(e) == "from the tests"
else: assert False`,
    ],
    [
      'knows the names that the answer imported',
      'import math\nfrom collections import Counter\ndef f(x): return math.sqrt(x)',
      'assert math.isclose(f(2), 2 ** 0.5) and Counter("aa") == {"a": 2}',
    ],
  ])('%s', async (_what, code, tests) => expect(await verdict(code, tests)).toEqual(PASSED));

  it('uses classes that the answer defines, also before it in the setup', async () => {
    const code = `
class Node:
    def __init__(self, data):
        self.data, self.left, self.right = data, None, None
def max_height(node):
    return 0 if node is None else 1 + max(max_height(node.left), max_height(node.right))
f = max_height`;
    const setup = 'root = Node(1)\nroot.left = Node(2)\nroot.right = Node(3)\nroot.left.left = Node(4)\n';
    expect(
      await verdict(
        code,
        'assert (max_height(root)) == 3\nassert root.left.data == 2 and root.left is root.left and root.left.right is None',
        setup,
      ),
    ).toEqual(PASSED);
    expect(await verdict(code.replace('1 + max', '2 + max'), 'assert (max_height(root)) == 3', setup)).toMatchObject({
      passed: false,
      error: { type: 'AssertionError', line: 1 },
    });
  });

  it('uses the classes of the setup on both sides', async () => {
    const setup = 'class ListNode:\n    def __init__(self, val=0, next=None):\n        self.val, self.next = val, next\n';
    const code =
      'def f(head):\n    before = None\n    while head:\n        head.next, before, head = before, head, head.next\n    return before\ndef build(n):\n    return ListNode(n, ListNode(n + 1))';
    const tests = `
def values(n):
    out = []
    while n: out.append(n.val); n = n.next
    return out
first = ListNode(1, ListNode(2, ListNode(3)))
last = f(first)
assert values(last) == [3, 2, 1] and values(first) == [1] and isinstance(last, ListNode)
assert values(build(7)) == [7, 8]`;
    expect(await verdict(code, tests, setup)).toEqual(PASSED);
  });

  it.each([
    ['assert set(f((3, 4, 5, 6), (5, 7, 4, 10))) == set((4, 5))', 'def f(a, b): return tuple(set(a) & set(b))'],
    ['assert f([1, 2, 3], 2) == [(1, 2), (1, 3), (2, 3)]', 'import itertools\ndef f(a, n): return list(itertools.combinations(a, n))'],
    ['assert f("aab") == {"a": 2, "b": 1}', 'from collections import Counter\nf = Counter'],
    ['assert f({"a": 1}) == dict(a=1).keys() and list(f({"a": 1})) == ["a"]', 'def f(d): return d.keys()'],
    [
      'import unittest\nclass T(unittest.TestCase):\n    def test_one(self): self.assertEqual(f(1), 2)\nif __name__ == "__main__":\n    unittest.main()',
      'def f(x): return x + 1',
    ],
    [
      'import threading\nout = []\nts = [threading.Thread(target=lambda n=n: out.append(f(n))) for n in range(8)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nassert sorted(out) == list(range(8))',
      'def f(x): return x',
    ],
  ])('passes %s', async (tests, code) => expect(await verdict(code, tests)).toEqual(PASSED));

  it.each([
    [
      'def f(x): return x',
      'assert f(1) == 1\n\nassert f(2) == 3, "two is %d" % f(2)',
      { type: 'AssertionError', message: 'two is 2', line: 3 },
    ],
    ['def f(x):\n    y = 0\n    return x / y', 'assert f(1) == 1', { type: 'ZeroDivisionError', message: 'division by zero', line: 3 }],
    ['def f(x): return [', 'assert f(1)', { type: 'SyntaxError', line: 1 }],
    ['def g(x): return x', 'assert f(1) == 1', { type: 'NameError' }],
    ['def f(x): return x', 'assert f(1) == 1 and (', { type: 'SyntaxError', line: 1 }],
    ['def f(x):\n    import sys\n    sys.exit(0)', 'assert f(1) == 1', { type: 'SystemExit' }],
    [
      'def f(x): return x',
      'import unittest\nclass T(unittest.TestCase):\n    def test_one(self): self.assertEqual(f(1), 2)\nunittest.main()',
      { type: 'AssertionError', message: '1 != 2', line: 3 },
    ],
  ])('reports what failed and where: %j', async (code, tests, error) => {
    expect(await verdict(code, tests)).toMatchObject({ passed: false, error });
  });

  it('returns the output of the answer, and its traceback only if it ended the tests', async () => {
    const expected = await sandboxes.one(
      checked('def f(x):\n    print("got", x)\n    raise ValueError', 'try: f(1)\nexcept ValueError: pass'),
    );
    expect(expected).toMatchObject({ passed: true, stdout: 'got 1\n', stderr: '' });
    const ended = await sandboxes.one(checked('def f(x):\n    print("got", x)\n    raise ValueError("why")', 'f(1)'));
    expect(ended).toMatchObject({ passed: false, stdout: 'got 1\n' });
    expect(ended.stderr).toContain('File "solution.py", line 3, in f');
    expect(ended.stderr).not.toContain('runner');
  });

  it.each([
    ['prints without end', 'def f(x):\n    while True: print("x" * 1000)', 'output', { outputKiB: 1 }],
    ['computes without end', 'def f(x):\n    while True: pass', 'cpu', { cpuMs: 200 }],
    ['kills itself', 'import os\ndef f(x): os.kill(os.getpid(), 9)', 'signal', {}],
    ['sleeps', 'import time\ndef f(x): time.sleep(60)', 'wall', { wallMs: 300 }],
  ] as const)('has the exit of an answer that %s', async (_name, code, exit, limits) => {
    expect(await sandboxes.one(checked(code, 'assert f(1) == 1'), limits)).toMatchObject({ passed: false, exit });
  });
});
