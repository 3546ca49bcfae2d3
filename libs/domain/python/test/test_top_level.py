import ast
import unittest

import top_level

TAKEN = [
    'import re\nWORD = re.compile("x")',
    'from collections import namedtuple as n\nP = n("P", "a b")\nZERO = P(0, 0)',
    "from dataclasses import dataclass, field\n@dataclass(frozen=True)\nclass A:\n    b: list = field(default_factory=list)\nX = A()",
    "import functools\n@functools.lru_cache(maxsize=None)\ndef g(): ...",
    'NAMES = "a b".split()\nPAIRS = {name: len(name) for name in sorted(NAMES)}\nBACK = {v: k for k, v in PAIRS.items()}',
    'if __name__ == "__main__":\n    print(1)',
    "import sys\nif sys.version_info >= (3, 9):\n    A = 1\nelse:\n    A = 2",
    "try:\n    import numpy as np\nexcept ImportError:\n    np = None",
    "KEY = lambda x: open(x)",
    "class A:\n    size = 1\n    @property\n    def b(self): ...\n    @b.setter\n    def b(self, value): ...",
    '"""Text."""\nfrom __future__ import annotations\n...',
    "from enum import Enum\nclass Colour(Enum):\n    RED = 1\n    @property\n    def dark(self): print(1)\nNAMES = {Colour.RED: 'red'}",
    "from abc import ABC, abstractmethod\nclass A(ABC):\n    @abstractmethod\n    def g(self): ...",
    "from typing import Generic, Optional, TypeVar\nT = TypeVar('T')\nclass Box(Generic[T]): ...\nONE: Optional[Box[int]] = Box()",
    "import datetime, pathlib\nDAY = datetime.date(2020, 1, 1)\nHERE = pathlib.Path('a') / 'b'",
    "from decimal import Decimal\nRATE, LIMIT = Decimal('0.1'), 10\n__all__ = ['a']\n__all__ += ['b']",
    "import functools\n@functools.singledispatch\ndef g(x): print(x)\n@g.register\ndef _(x: int): print(x)",
    "def a(x): print(x)\nTABLE = {'a': a, 'b': lambda x: open(x)}\nDEFAULT = TABLE['a']",
    "from skills import slug\ndef f(x, mark=frozenset('ab')) -> 'str': return slug(x)",
]
REFUSED = [
    "#\nprint(1)",
    '#\nx = open("f")',
    "#\nfor i in (1, 2): pass",
    "#\nwith a: pass",
    "#\nraise ValueError",
    "import os\nx = os.listdir()",
    '#\nx = [eval(y) for y in ("1",)]',
    "class A:\n    print(1)",
    "#\ndef g(a=input()): ...",
    "#\ndef g(a: print(1)): ...",
    "#\n@print\ndef g(): ...",
    "def own(g): return g\n@own\ndef h(): ...",
    "if True:\n    print(1)",
    "try:\n    print(1)\nfinally:\n    pass",
    "def g(): ...\nx = g()",
    "#\nx = (lambda: 1)()",
    "import datetime\nx = datetime.datetime.now()",
    "from os import getcwd as compile\nx = compile()",
    "str = print\nx = str(1)",
    "import math\nmath.pi = 3",
    "import sys; T = {}\nsys.modules['json'] = T",
    "p = print\nx = p(1)",
    "from pathlib import Path\nx = Path('a').read_text()",
    "import sys; out = sys.stdout\nx = out.write('1')",
    "import atexit\n@atexit.register\ndef g(): ...",
    "import re\nx = re._cache.clear()",
    "class A:  __init__ = print\nx = [][0]()",
    "class B(dict):\n    x = open('f')",
]


def lines(code):
    return [problem["line"] for problem in top_level.problems_of(ast.parse(code))]


class TopLevelTest(unittest.TestCase):
    def test_takes_imports_definitions_and_constants(self):
        for code in TAKEN:
            with self.subTest(code):
                self.assertEqual(top_level.problems_of(ast.parse(code)), [])

    def test_refuses_the_line_that_does_something(self):
        for code in REFUSED:
            with self.subTest(code):
                self.assertEqual(lines(code), [2])

    def test_tells_each_line_once_and_what_to_do(self):
        problems = top_level.problems_of(ast.parse("print(open('f'))\nx = 1\nx = input()"))
        self.assertEqual([problem["line"] for problem in problems], [1, 3])
        self.assertRegex(problems[0]["message"], r"^it runs print\(open\('f'\)\) when it is loaded: .*; move it into a function$")


if __name__ == "__main__":
    unittest.main()
