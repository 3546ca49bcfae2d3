import ast
import unittest

import top_level

TAKEN = [
    "import re, functools\nWORD = re.compile('x')\n@functools.lru_cache(maxsize=None)\ndef g(): ...",
    'if __name__ == "__main__":\n    print(1)',
    "import sys\nif sys.version_info >= (3, 9):\n    A = 1\nelse:\n    A = 2",
    "try:\n    import numpy as np\nexcept ImportError:\n    np = None",
    '"""Text."""\nfrom __future__ import annotations\n...\nB: int = 2\nB += 1',
    "class A:\n    size = 1\n    @property\n    def b(self): print(1)\nasync def f(): print(1)",
]
REFUSED = [
    "#\nprint(1)",
    "#\nfor i in (1, 2): pass",
    "#\nwith a: pass",
    "#\nraise ValueError",
    "if True:\n    print(1)",
    "try:\n    print(1)\nfinally:\n    pass",
    'if __name__ == "__main__": pass\nelse: print(1)',
]


def lines(code):
    return [problem["line"] for problem in top_level.problems_of(ast.parse(code))]


class TopLevelTest(unittest.TestCase):
    def test_takes_imports_definitions_and_assignments(self):
        for code in TAKEN:
            with self.subTest(code):
                self.assertEqual(lines(code), [])

    def test_refuses_the_line_that_does_something(self):
        for code in REFUSED:
            with self.subTest(code):
                self.assertEqual(lines(code), [2])


if __name__ == "__main__":
    unittest.main()
