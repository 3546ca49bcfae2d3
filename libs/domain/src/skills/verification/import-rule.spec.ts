import { describe, expect, it } from 'vitest';
import { PythonSandboxes } from '../../../test/python-sandboxes.js';
import { inspectCode, problemTexts } from './inspect-code.js';

/** What is said against code, beside which there is a function to call. */
async function problems(code: string): Promise<string[]> {
  const place = { sandboxes: new PythonSandboxes(), executionId: 'inspect', tenant: 'acme' };
  const inspected = await inspectCode({ code: `${code}\ndef f(): ...`, entryPoint: 'f' }, place, new AbortController().signal);
  return 'problems' in inspected ? problemTexts(inspected.problems) : [];
}

describe('code that does things when it is loaded', () => {
  it.each([
    'p = print\nx = p(1)',
    'x = list(map(print, [1]))',
    'x = sorted([1], key=lambda y: print(y))',
    'x = [2, 1]\nx.sort(key=print)',
    'import functools\nx = functools.reduce(print, [1, 2])',
    'import sys\nout = sys.stdout\nx = out.write("1")',
    'from pathlib import Path\nx = Path("a").read_text()',
    'from pathlib import Path\na = Path("a")\nx = a.exists()',
    'from functools import partial\np = partial(print, 1)\nx = p()',
    'import types\nx = types.FunctionType(compile("1", "a", "exec"), {})()',
    'import operator\nx = operator.call(print, 1)',
    'k = lambda: print(1)\nx = k()',
    'k = lambda a=print(1): a',
    'def g(a: print(1)): ...',
    'def g() -> print(1): ...',
    'x: print(1) = 2',
    'try:\n    pass\nexcept print(1):\n    pass',
    'import math\nmath.pi = 3',
    'import math\nm = math\nm.pi = 3',
    'import math\nkept = {"m": math}\nkept["m"].pi = 3',
    'import math\n(math.pi, x) = (3, 1)',
    'import math\nclass A:\n    math.pi = 3',
    'import sys\nclass M: ...\nsys.modules["json"] = M',
    'import sys\nsys.modules |= {}',
    'import sys\nx = [0 for sys.dont_write_bytecode in (True,)]',
    'import re\nre._cache = {}',
    'import re\nx = re._cache.clear()',
    'import math, operator\nx = operator.setitem({}, "a", math)',
    'import decimal\nx = decimal.setcontext(decimal.Context())',
    'import builtins\nbuiltins.x = 1',
    'try:\n    import math\nexcept ImportError:\n    math = None\nmath.pi = 3',
    'import math\ndef mark(f):\n    math.pi = 3\n    return f\n@mark\ndef g(): ...',
    'import math\ndef mark(f):\n    setattr(math, "pi", 3)\n    return f\n@mark\ndef g(): ...',
    'import math\ndef mark(f):\n    m = math\n    m.pi = 3\n    return f\n@mark\ndef g(): ...',
    'def mark(f):\n    import math\n    math.pi = 3\n    return f\n@mark\ndef g(): ...',
    'import os\nos.x = 1; y = os.getcwd()',
    'import typing\nx = typing.ForwardRef("print(1)")._evaluate({}, {}, recursive_guard=frozenset())',
    'import collections\nx = collections.defaultdict(print)["a"]',
    'from collections import ChainMap, defaultdict\nx = ChainMap(defaultdict(print))["a"]',
    'import this',
  ])('is refused: %s', async (code) => {
    expect(await problems(code)).toEqual([expect.stringMatching(/^line \d: it .* when it is loaded/)]);
  });

  // "#" stands behind what is refused.
  it.each([
    ['a member of an enumeration', 'import enum\nclass E(enum.Enum):\n    A = 1\n    def __init__(self, v):\n        print(1) #'],
    [
      'values of members',
      'from enum import Enum\nclass E(Enum):\n    @staticmethod\n    def _generate_next_value_(*a):\n        print(1) #',
    ],
    ['a renamed enumeration', 'import enum\nB = enum.Enum\nclass E(B):\n    @classmethod\n    def _missing_(c, v):\n        print(1) #'],
    ['a hash', 'class A:\n    def __hash__(self):\n        print(1) #\nx = {A(): 1}'],
    ['an index', 'class A:\n    def __index__(self):\n        print(1) #\nx = [1][A()]'],
    ['keys', 'class A:\n    def keys(self):\n        print(1) #\nx = dict(A())'],
    ['a property in a format', 'class A:\n    @property\n    def z(self):\n        print(1) #\nx = "{0.z}".format(A())'],
    ['a descriptor', 'class D:\n    def __get__(self, o, t=None):\n        print(1) #\nclass A:\n    x = D()\ny = A.x'],
    ['a factory', 'import collections\ndef w():\n    print(1) #\nx = collections.defaultdict(w)["a"]'],
    ['a metaclass', 'class M(type):\n    def __new__(c, *a):\n        print(1) #\nclass A(metaclass=M): ...'],
    ['an inherited metaclass', 'class M(type):\n    def __init__(c, *a):\n        print(1) #\nclass A(metaclass=M): ...\nclass B(A): ...'],
    ['a function as metaclass', 'def m(n, b, d):\n    print(1) #\n    return type(n, b, d)\nclass A(metaclass=m): ...'],
    [
      'an attribute of an instance',
      'def g():\n    print(1) #\nclass A:\n    def __init__(self):\n        self.go = g\n        self.go()\nx = A()',
    ],
    [
      'an attribute that is set by its name',
      'def g():\n    print(1) #\nclass A:\n    def __init__(self):\n        setattr(self, "go", g)\nx = A()\ny = x.go()',
    ],
    [
      'an attribute whose name is not known',
      'def g():\n    print(1) #\nclass A:\n    def __init__(self, name):\n        object.__setattr__(self, name, g)\nx = A("go")\ny = x.go()',
    ],
    ['a lambda in an attribute', 'class A:\n    def __init__(self):\n        self.go = lambda: print(1) #\nx = A()\ny = x.go()'],
    [
      'a method that is set on a class',
      'def g(self):\n    print(1) #\nclass A: ...\ndef mark(c):\n    setattr(c, "__init__", g)\n    return c\n@mark\nclass B(A): ...\nx = B()',
    ],
    ['an attribute that was given', 'class A:\n    def __init__(self, go):\n        self.go = go\n        self.go() #\nx = A(1)'],
    ['an attribute of a constant', 'def g():\n    print(1) #\nclass A: ...\nx = A()\nx.go = g\ny = x.go()'],
    [
      'an attribute of a comprehension',
      'def g():\n    print(1) #\nclass A:\n    def __init__(self):\n        [0 for self.go in [g]]\nx = A()\ny = x.go()',
    ],
    [
      'an attribute of a context',
      'def g():\n    print(1) #\nclass C:\n    def __init__(self, x):\n        self.x = x\n    def __enter__(self):\n        return self.x\n    def __exit__(self, *_): ...\nclass A:\n    def __init__(self):\n        with C(g) as self.go:\n            pass\nx = A()\ny = x.go()',
    ],
    [
      'a metaclass that prepares',
      'class M(type):\n    def __prepare__(n, b):\n        return {"a": print(1)} #\nclass A(metaclass=M): ...',
    ],
    ['a metaclass from elsewhere', 'import os\nclass A(metaclass=os.system): ... #'],
    ['__init_subclass__', 'class A:\n    def __init_subclass__(cls, **k):\n        print(1) #\nclass B(A): ...'],
    ['__class_getitem__', 'class A:\n    def __class_getitem__(cls, x):\n        print(1) #\nX = A[1]'],
    ['__class_getitem__ in an annotation', 'class A:\n    def __class_getitem__(cls, x):\n        print(1) #\ndef g(a: A[1]): ...'],
    ['__getitem__ of a metaclass', 'class M(type):\n    def __getitem__(c, x):\n        print(1) #\nclass A(metaclass=M): ...\nX = A[1]'],
    ['__set_name__', 'class D:\n    def __set_name__(self, o, n):\n        print(1) #\nclass A:\n    b = D()'],
    ['__mro_entries__', 'class D:\n    def __mro_entries__(self, b):\n        print(1) #\nd = D()\nclass A(d): ...'],
    ['__init__', 'class A:\n    def __init__(self):\n        print(1) #\nX = A()'],
    ['what __init__ calls', 'class A:\n    def __init__(self):\n        self.go()\n    def go(self):\n        print(1) #\nX = A()'],
    ['an inherited __init__', 'class A:\n    def __init__(self):\n        print(1) #\nclass B(A): ...\nX = B()'],
    ['__post_init__', 'from dataclasses import dataclass\n@dataclass\nclass A:\n    def __post_init__(self):\n        print(1) #\nX = A()'],
    [
      'a factory of defaults',
      'from dataclasses import dataclass, field\n@dataclass\nclass A:\n    b: int = field(default_factory=input)\nX = A() #',
    ],
    ['an operator', 'class A:\n    def __add__(self, o):\n        print(1) #\nX = A() + 1'],
    ['the text of an object', 'class A:\n    def __str__(self):\n        return print(1) #\nX = str(A())'],
    ['a method by another name', 'def evil(self):\n    print(1) #\nclass A:\n    __init__ = evil\nX = A()'],
    ['a method that is set from outside', 'class A: ...\nA.__init__ = lambda self: print(1) #\nX = A()'],
    ['a property that is made', 'class A:\n    b = property(lambda self: print(1)) #\nX = A().b'],
    ['a property', 'class A:\n    @property\n    def b(self):\n        print(1) #\nX = A()\nY = X.b'],
    ['a method', 'class A:\n    def b(self):\n        print(1) #\nX = A().b()'],
    ['a decorator', 'def own(g):\n    print(1) #\n    return g\n@own\ndef h(): ...'],
    [
      'a decorator that is made',
      'def own(n):\n    def deco(g):\n        print(1) #\n        return g\n    return deco\n@own(1)\ndef h(): ...',
    ],
    ['a decorator that calls', 'def own(g):\n    g() #\n    return g\n@own\ndef h(): print(1)'],
    ['a decorator that has it called', 'def own(g):\n    list(map(g, [1])) #\n    return g\n@own\ndef h(x): print(1)'],
    ['a class as decorator', 'class Own:\n    def __init__(self, g):\n        print(1) #\n@Own\ndef h(): ...'],
    ['a method as decorator', 'class R:\n    def add(self, g):\n        print(1) #\n        return g\nr = R()\n@r.add\ndef h(): ...'],
    ['a decorator in a class', 'def own(g):\n    print(1) #\nclass A:\n    @own\n    def b(self): ...'],
    ['a decorator of a class', 'def own(c):\n    print(1) #\n    return c\n@own\nclass A: ...'],
    ['a lambda as decorator', 'own = lambda g: print(1) #\n@own\ndef h(): ...'],
    ['what a decorator calls', 'def tell():\n    print(1) #\ndef own(g):\n    tell()\n    return g\n@own\ndef h(): ...'],
    ['a decorator with another module', 'import os\ndef own(g):\n    os.environ["A"] = "1" #\n    return g\n@own\ndef h(): ...'],
    ['a renamed decorator', 'def own(g):\n    print(1) #\nother = own\n@other\ndef h(): ...'],
  ])('is refused with the line of what is done by %s', async (_what, code) => {
    const line = code.split('\n').findIndex((text) => text.endsWith('#')) + 1;
    expect(await problems(code)).toEqual([expect.stringMatching(new RegExp(`^line ${line}: it .* when it is loaded`))]);
  });
});

describe('code that only defines', () => {
  it.each([
    'import functools, time\ndef timed(g):\n    """Text."""\n    @functools.wraps(g)\n    def inner(*a):\n        print(time.time())\n        return g(*a)\n    return inner\n@timed\ndef h(): ...',
    'import time\ndef retry(n):\n    if n < 1:\n        raise ValueError("few")\n    def deco(g):\n        def inner(*a):\n            time.sleep(n)\n            return g(*a)\n        return inner\n    return deco\n@retry(3)\ndef h(): ...',
    'ALL = {}\ndef register(name):\n    def deco(g):\n        ALL[name] = g\n        return g\n    return deco\n@register("a")\ndef h(): print(1)',
    'class M(type):\n    def __new__(cls, name, bases, space):\n        made = super().__new__(cls, name, bases, space)\n        made.names = sorted(space)\n        return made\nclass A(metaclass=M): ...',
    'class A:\n    known = []\n    def __init_subclass__(cls, **more):\n        super().__init_subclass__(**more)\n        A.known.append(cls)\nclass B(A): ...',
    'class A:\n    def __class_getitem__(cls, x):\n        return cls\nX = A[1]',
    'from typing import Generic, TypeVar\nT = TypeVar("T")\nclass Box(Generic[T]):\n    def __init__(self, x: T):\n        self.x = x\nONE: Box[int] = Box(1)',
    'class A:\n    def __init__(self, **more):\n        for name, value in more.items():\n            setattr(self, name, value)\nx = A(a=1)',
    'class A:\n    def __init__(self, items):\n        self.items = list(items)\n        self.items.append(1)\nx = A([1])',
    'def g():\n    print(1)\ndef h(): ...\nh.helper = g',
    'def g():\n    print(1)\nclass A:\n    def __init__(self):\n        self.go = g\nx = A()',
    'class A:\n    def __init__(self, get):\n        self.get = get\nx = {"a": 1}\ny = x.get("a")',
    'class B:\n    def __call__(self): ...\nclass A:\n    def __init__(self, name):\n        setattr(self, name, B())\n        self.__init__ = A\nx = A("b")\ny = x.b()',
    'class Unit:\n    def __init__(self, name):\n        self.name = name.strip()\n    def __enter__(self):\n        print(1)\nMETRE = Unit("m")',
    'from enum import Enum\nclass Colour(Enum):\n    RED = 1\n    @property\n    def dark(self): print(1)\nNAMES = {Colour.RED: "red"}',
    'import collections, math\nD = collections.defaultdict(list)\nD["a"] = [1]\nT = {"pi": math.pi}\nT["e"] = {}\nT["e"]["b"] = D',
    'from enum import Enum\nclass A(Enum):\n    B = 1\n    def __init__(self, v):\n        self.v = v\n    def __str__(self):\n        return self.name',
    'class A:\n    def show(self): print(1)\nx = [A()]\nx[0].n = 1',
    'def a(x): print(x)\ndef b(x): return open(x)\nTABLE = {"a": a, "b": b}',
    'import functools\ndef a(x, y): print(x)\nHALF = functools.partial(a, 1)\nMORE = dict(a=a)',
    'import time\nfrom dataclasses import dataclass, field\n@dataclass\nclass A:\n    at: float = field(default_factory=time.time)',
    'square = lambda x: x * x\nNINE = square(3)\nBY = sorted(["b", "a"], key=lambda x: x.lower())',
    'import datetime, pathlib\nDAY = datetime.date(2020, 1, 1).isoformat()\nHERE = pathlib.Path("a") / "b"\nUP = HERE.with_suffix(".c")',
    'class Error(Exception):\n    def __init__(self, what):\n        super().__init__(f"no {what}")',
    'from __future__ import annotations\ndef g(a: some.thing(1)): ...',
    'from abc import ABC, abstractmethod\nclass A(ABC):\n    @abstractmethod\n    def g(self): ...\nclass B(A):\n    def g(self): print(1)',
    'import sys\nWIDE = sys.maxsize > 2**32\nif sys.version_info >= (3, 9):\n    A = 1',
    'import functools\n@functools.singledispatch\ndef g(x): print(x)\n@g.register\ndef _(x: int): print(x)\n@g.register(str)\ndef _(x): print(x)',
    'class A:\n    __class_getitem__ = classmethod(type([1, 2]))\n    c = staticmethod(len)\nA.__doc__ = "Text."',
    'from functools import lru_cache\ncached = lru_cache(maxsize=None)\n@cached\ndef g(x): print(x)',
    'class A:\n    @property\n    def b(self): print(1)\n    @b.setter\n    def b(self, x): print(1)\n    @staticmethod\n    def c(): print(1)',
    'import json, numpy as np\nBIG = np.array([1, 2]).sum()\nclass E(json.JSONEncoder):\n    def default(self, o): print(o)',
  ])('is taken: %s', async (code) => {
    expect(await problems(code)).toEqual([]);
  });
});

describe('code that hands on what others use when it is loaded', () => {
  it.each([
    'import math\ndef f(m):\n    m.pi = 3\nk = f\nx = k(math)',
    'import math\nk = lambda m: setattr(m, "pi", 3)\nx = k(math)',
    'import math\nclass A:\n    def __init__(self, m):\n        m.pi = 3\nx = A(math)',
    'import math\nclass A:\n    def __init__(self, m):\n        self.m = m\n        self.m.pi = 3\nx = A(math)',
    'import math\nclass A:\n    def __init__(self, d):\n        d["m"].pi = 3\nx = A({"m": math})',
    'import math\nclass A:\n    def __init__(self, d):\n        for m in d:\n            m.pi = 3\nx = A([math])',
    'import math\nK = [math]\nclass A:\n    def __init__(self, d):\n        d[0].pi = 3\nx = A(K)',
    'import math\ndef mark(m):\n    m.pi = 3\n    def deco(g):\n        return g\n    return deco\n@mark(math)\ndef g(): ...',
    'import math\ndef mark(f, m=math):\n    m.pi = 3\n    return f\n@mark\ndef g(): ...',
    'import math\ndef mark(f):\n    change(math)\n    return f\ndef change(m):\n    m.pi = 3\n@mark\ndef g(): ...',
    'import math\ndef mark(f):\n    for m in [math]:\n        m.pi = 3\n    return f\n@mark\ndef g(): ...',
    'import math\ndef mark(f):\n    [0 for m in [math] for m.pi in [3]]\n    return f\n@mark\ndef g(): ...',
    'import math\ndef mark(f):\n    m, n = math, 1\n    m.pi = 3\n    return f\n@mark\ndef g(): ...',
    'import math\nm, n = math, 1\nm.pi = 3',
    'import math\ndef f(m):\n    m.pi = 3\nx = list(map(f, [math]))',
    'import math\nfrom functools import partial\ndef f(m):\n    m.pi = 3\np = partial(f, math)\nx = p()',
    'import math\nx = sorted([math], key=lambda m: setattr(m, "pi", 3))',
    'import math\nclass A:\n    def __init_subclass__(cls, m):\n        m.pi = 3\nclass B(A, m=math): ...',
    'import math\nclass A:\n    def __add__(self, m):\n        m.pi = 3\nx = A() + math',
    'import math\nclass A:\n    def __getitem__(self, m):\n        m.pi = 3\nx = A()[math]',
    'import math\nclass A:\n    def __setattr__(self, k, m):\n        m.pi = 3\nx = A()\nx.a = math',
    'import math\nclass A:\n    def __setitem__(self, k, m):\n        m.pi = 3\nx = A()\nx[1] = math',
    'import math\nclass A:\n    m = math\nA.m.pi = 3',
    'import math\nclass A:\n    def __init__(self):\n        self.m = math\n        self.m.pi = 3\nx = A()',
    'import math\nclass A:\n    def go(self):\n        self.pi = 3\nk = A.go\nx = k(math)',
    'import math\nclass A:\n    def go(self):\n        self.pi = 3\nB = A\nx = B.go(math)',
    'import os\nclass A:\n    def __init__(self, m):\n        m.system("ls")\nx = A(os)',
    'import os\nclass A:\n    def __init__(self, m):\n        self.m = m\n        self.m.getcwd()\nx = A(os)',
    'import sys\nclass A:\n    def __init__(self, m):\n        m.append("a")\nx = A(sys.path)',
    'import math\nx = math.__dict__.update(pi=3)',
    'import math\ndef mark(f):\n    math.__dict__.update(pi=3)\n    return f\n@mark\ndef g(): ...',
    'import fractions\ndef mark(f):\n    type.__setattr__(fractions.Fraction, "x", 1)\n    return f\n@mark\ndef g(): ...',
    'import functools, json\nx = functools.update_wrapper(json.dumps, len)',
    'class A:\n    def go(self):\n        print(1)\nk = A().go\nx = k()',
    'class A:\n    def go(self):\n        print(1)\nk = A.go\nx = k(1)',
    'import math\nclass A:\n    def __init__(self, m):\n        f(m)\ndef f(m):\n    m.pi = 3\nx = A(math)',
    'import math\nclass A:\n    def __init__(self, *m, **k):\n        m[0].pi = 3\nx = A(math)',
    'import math\nclass A:\n    def __init__(self, m):\n        vars(m)["pi"] = 3\nx = A(math)',
    'import math\nclass A:\n    def __init__(self, m):\n        setattr(m, "pi", 3)\nx = A(math)',
    'import math\nclass A:\n    def __init__(self, m):\n        m.__dict__.update(pi=3)\nx = A(math)',
    'import math\nclass A:\n    def __init__(self):\n        self.m = 1\n    def set(self, m):\n        m.pi = 3\na = A()\nx = a.set(math)',
    'import math\nclass A:\n    @property\n    def m(self): ...\n    @m.setter\n    def m(self, m):\n        m.pi = 3\na = A()\na.m = math',
    'import math\nclass M(type):\n    def __call__(c, m):\n        m.pi = 3\nclass A(metaclass=M): ...\nx = A(math)',
    'import math\ndef mark(m):\n    def deco(g):\n        g.pi = 3\n        return g\n    deco(m)\n    return deco\n@mark(math)\ndef g(): ...',
    'import math\nclass A:\n    def __init__(self, m):\n        self.__class__.m = m\n        self.m.pi = 3\nx = A(math)',
    'import os\nX = os.path\nX += 1',
    'import sys\np = sys.path\np += ["a"]',
    'def mark(go):\n    def deco(g):\n        go()\n        return g\n    return deco\n@mark(print)\ndef h(): ...',
    'import sys\nclass A:\n    def __init__(self, p):\n        p += ["a"]\nx = A(sys.path)',
    'import sys\nclass A:\n    def __init__(self, p):\n        x = list(p)\n        x[0].pi = 3\nx = A([sys])',
    'import sys\nclass A:\n    def __init__(self, p):\n        self.x = [p]\n        self.x[0].pi = 3\nx = A(sys)',
    'import math\nclass A:\n    def __init__(self, m):\n        self.m = m\n        self.go()\n    def go(self):\n        self.m.pi = 3\nx = A(math)',
    'import math\nclass A:\n    def __init__(self, m):\n        self.m = m\n    def go(self):\n        self.m.pi = 3\na = A(math)\nx = a.go()',
    'import math\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    m: object\n    def __post_init__(self):\n        self.m.pi = 3\nx = A(math)',
    'import math\ndef mark(m):\n    def deco(g):\n        change(m)\n        return g\n    return deco\ndef change(m):\n    m.pi = 3\n@mark(math)\ndef g(): ...',
    'import math\ndef mark(m):\n    def inner():\n        m.pi = 3\n    inner()\n    return lambda g: g\n@mark(math)\ndef g(): ...',
    'import math\nk = lambda m: (lambda: setattr(m, "pi", 3))()\nx = k(math)',
    'import math\nk = lambda m: [setattr(n, "pi", 3) for n in [m]]\nx = k(math)',
    'import math\nclass A:\n    def __init__(self, m, v):\n        m[0].pi = v\nx = [A([m], 1) for m in [math]]',
    'import math\nclass A:\n    def __init__(self, m):\n        with m as n:\n            n.pi = 3\nx = A(math)',
    'import math\nclass A:\n    def __init__(self, m):\n        next(iter([m])).pi = 3\nx = A(math)',
    'import math\nclass A:\n    def __init__(self, m):\n        ident(m).pi = 3\ndef ident(x): return x\nx = A(math)',
    'import math\nclass A:\n    @classmethod\n    def go(cls, m):\n        m.pi = 3\nB = A\nx = B.go(math)',
    'import math\nclass A:\n    @staticmethod\n    def go(m):\n        m.pi = 3\nB = A\nx = B.go(math)',
    'import math\nclass A:\n    @staticmethod\n    def go(m):\n        m.pi = 3\nB = A()\nx = B.go(math)',
    'import math\ndef f(m):\n    m.pi = 3\ndef g(h=f): ...\nclass P:\n    go = f\nclass A:\n    def __init__(self, m):\n        P.go(m)\nx = A(math)',
    'import math\ndef f(m):\n    m.pi = 3\nclass A:\n    go = staticmethod(f)\na = A()\nx = a.go(math)',
    'import math\ndef f(m):\n    m.pi = 3\nclass A: ...\na = A()\na.go = f\nx = a.go(math)',
    'import math\ndef f(s, m):\n    m.pi = 3\nclass A:\n    __init__ = f\nx = A(math)',
    'import functools, math\ndef f(a, m):\n    m.pi = 3\nx = functools.reduce(f, [1, math])',
    'import math\nclass D:\n    def __set__(self, o, m):\n        m.pi = 3\nclass A:\n    d = D()\na = A()\na.d = math',
    'import math\nclass D:\n    def __set_name__(self, o, n):\n        o.m.pi = 3\nclass A:\n    m = math\n    d = D()',
  ])('is refused: %s', async (code) => {
    expect(await problems(code)).toEqual([expect.stringMatching(/^line \d+: it (changes|hands|calls) .* when it is loaded/)]);
  });

  it('is told what it changes', async () => {
    expect(await problems('import sys\nsys.modules["json"] = 1')).toEqual([expect.stringContaining('it changes sys.modules when')]);
    expect(await problems('import math\nclass A:\n    def __init__(self, m):\n        m.pi = 3\nx = A(math)')).toEqual([
      expect.stringContaining('line 5: it hands math to code that changes it or calls its methods when'),
    ]);
  });

  it.each([
    'import json\ndef retry(*on):\n    def deco(g):\n        def inner():\n            g()\n        inner.on = on\n        g.on = on\n        return g\n    return deco\n@retry(json.JSONDecodeError)\ndef h(): ...',
    'import json\nTABLE = {}\ndef register(*types):\n    def deco(g):\n        for t in types:\n            TABLE[t] = g\n        return g\n    return deco\n@register(json.JSONEncoder, json.JSONDecoder)\ndef h(): ...',
    'class A:\n    def __init__(self, items):\n        items.append(1)\n        self.items = items\n        self.items[0] = 2\nMINE = []\nx = A(MINE)\ny = A([1, 2])',
    'def fill(d):\n    d["a"] = 1\n    return d\nk = fill\nx = k({})\nMINE = {}\ny = k(MINE)',
    'import json\ndef mark(f):\n    f.x = 1\n    return f\n@mark\nclass E(json.JSONEncoder): ...',
    'import json\nclass M(type):\n    def __new__(cls, name, bases, space):\n        made = super().__new__(cls, name, bases, space)\n        made.names = sorted(space)\n        return made\nclass A(json.JSONEncoder, metaclass=M): ...',
    'import datetime, re\nclass P:\n    def __init__(self, p, at):\n        self.p = p\n        self.at = at.isoformat()\n        self.kept = {}\n        self.kept["p"] = p\nx = P(re.compile("a"), datetime.date(2020, 1, 1))',
    'class Box:\n    def __init__(self, n):\n        self.n = n.replace("a", "b")\n        n.x = 1\nBOXES = [Box(n) for n in ("a", "b")]',
    'class Node:\n    def __init__(self, left=None):\n        self.left = left\n        if left is not None:\n            left.parent = self\nA = Node()\nB = Node(A)',
    'import re\nclass A:\n    def __init__(self, table):\n        self.table = dict(table)\n        for k, v in table.items():\n            self.table[k] = re.compile(v)\nx = A({"a": "b"})',
    'import sys\nclass A:\n    def __init__(self, p):\n        self.p = p\nx = A(sys.platform)',
    'import numpy as np\nclass G:\n    def __init__(self, a, dtype):\n        a[0] = 1\n        self.a = a\nx = G([1, 2], "float")',
    'import operator\nOPS = {"+": operator.add}\nclass C:\n    def __init__(self, ops):\n        self.ops = ops\n        self.ops["-"] = operator.sub\nx = C(OPS)',
    'import json\nclass Rule:\n    def __init__(self, on, name):\n        self.on = on\n        self.name = name.strip()\n        self.seen = []\n        self.seen.append(1)\n    def add(self, x):\n        self.seen.append(x)\n        return self\nR = Rule(json.JSONDecodeError, "a")',
    'class A:\n    def __init__(self, n, *rest):\n        self.n = n\n        self.rest = rest\n        self.total = 0\n        for r in rest:\n            self.total += r\nX = A(1, 2, 3)\nN = 1\nN += 1\nS = "a"\nS += "b"\nL = [1]\nL += [2]',
    'import sys\nFLAGS = sys.maxsize | 1\nFLAGS |= 2\nALL = [1] + [2]\nALL += [sys.maxsize]\nALL[0] = 2',
    'def register(table):\n    def deco(g):\n        table[g.__name__] = g\n        return g\n    return deco\nMINE = {}\n@register(MINE)\ndef h(): ...',
    'def deco(f):\n    log = []\n    def inner(*a):\n        log.append(a)\n        return f(*a)\n    inner.log = log\n    return inner\n@deco\ndef h(): ...',
    'import json\nclass V:\n    def __init__(self, kind, check):\n        self.kind = kind\n        self.check = check\n    def __call__(self, f):\n        f.check = self\n        return f\n@V(json.JSONDecodeError, len)\ndef h(): ...',
    'import math\nclass P:\n    def __init__(self, x, y):\n        self.x, self.y = x, y\n    def __add__(self, o):\n        return P(self.x + o.x, self.y + o.y)\nA = P(1, math.pi)\nB = A + P(2, 3)',
    'class A:\n    def add(self): return 1\n    plus = add\nx = A()\ny = x.plus()',
  ])('is taken where that changes only what is its own: %s', async (code) => {
    expect(await problems(code)).toEqual([]);
  });
});
