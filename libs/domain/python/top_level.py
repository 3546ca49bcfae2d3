"""The top level of a skill may hold imports, definitions and constants. This rule is for readers; the sandbox is the protection."""
import ast

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LITERALS = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.BinOp)

# Every call of these modules only makes a value.
PURE_MODULES = frozenset("abc cmath collections dataclasses enum fractions itertools math re string struct typing".split())
PURE_CALLS = frozenset(
    """abs bool bytearray bytes chr complex dict divmod enumerate float frozenset int len list max min object ord pow property range
    repr reversed round set slice sorted staticmethod classmethod str sum tuple type zip
    dict.fromkeys str.maketrans bytes.fromhex float.fromhex int.from_bytes
    contextlib.asynccontextmanager contextlib.contextmanager contextvars.ContextVar datetime.date datetime.datetime datetime.time datetime.timedelta datetime.timezone decimal.Context
    decimal.Decimal functools.cache functools.cached_property functools.lru_cache functools.partial functools.partialmethod
    functools.singledispatch functools.singledispatchmethod functools.total_ordering functools.wraps logging.getLogger numpy.array operator.attrgetter operator.itemgetter pathlib.Path pathlib.PurePath pathlib.PurePosixPath
    textwrap.dedent threading.Lock threading.RLock types.MappingProxyType types.SimpleNamespace zoneinfo.ZoneInfo""".split()
)
# These make types. A name that is bound to such a type may be called, too.
TYPE_MAKERS = frozenset(("collections.namedtuple", "typing.NamedTuple", "typing.NewType"))
PURE_METHODS = frozenset(
    name for kind in (str, bytes, list, tuple, dict, set, frozenset, int, float) for name in dir(kind) if not name.startswith("_")
)
# Decorators that properties and generic functions of the same module offer.
OWN_DECORATORS = frozenset(("setter", "getter", "deleter", "register"))


def dotted(node):
    """The text of a name such as "os.path.join"; None for any other expression."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id] + parts[::-1]) if isinstance(node, ast.Name) else None


def is_main_guard(test):
    """Whether a condition is `__name__ == "__main__"`."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = [test.left, test.comparators[0]]
    return any(dotted(a) == "__name__" and isinstance(b, ast.Constant) and b.value == "__main__" for a, b in (sides, sides[::-1]))


def is_text(node):
    """Whether a statement is a docstring or another constant, such as `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def blocks_of(node):
    """The statements inside an `if` or a `try` that run when the module is loaded."""
    if isinstance(node, ast.If):
        return node.orelse if is_main_guard(node.test) else node.body + node.orelse
    if isinstance(node, ast.Try):
        return node.body + [s for handler in node.handlers for s in handler.body] + node.orelse + node.finalbody
    return []


def top_level(body):
    """All statements that run when the module is loaded, those behind conditions included."""
    for node in body:
        yield node
        yield from top_level(blocks_of(node))


def imported_names(nodes):
    """The full name behind each imported name, such as "re.compile"."""
    names = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update({a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names})
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({a.asname or a.name: node.module + "." + a.name for a in node.names})
    return names


def targets_of(node):
    return node.targets if isinstance(node, ast.Assign) else [node.target]


class TopLevel:
    """Collects what the top level of a module does beside imports, definitions and constants."""

    def __init__(self, module):
        self.problems = []
        statements = list(top_level(module.body))
        self.imported = imported_names(statements)
        self.functions = {node.name for node in statements if isinstance(node, DEFINITIONS)}
        self.constants, self.types = set(), set()
        for node in statements:
            if isinstance(node, ast.ClassDef):
                self.types.add(node.name)
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                names = {target.id for target in targets_of(node) if isinstance(target, ast.Name)}
                self.constants |= names
                if isinstance(node.value, ast.Call) and self.full_name(node.value.func) in TYPE_MAKERS:
                    self.types |= names
        self.statements(module.body)

    def refuse(self, node, what):
        rule = "the top level holds imports, definitions and constants; move it into a function"
        problem = {"line": node.lineno, "message": "%s when it is loaded: %s" % (what, rule)}
        if all(told["line"] != node.lineno for told in self.problems):
            self.problems.append(problem)

    def statements(self, body):
        for node in body:
            if isinstance(node, DEFINITIONS + (ast.ClassDef,)):
                self.definition(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                self.assignment(node)
            elif isinstance(node, (ast.If, ast.Try)):
                tests = [node.test] if isinstance(node, ast.If) else [handler.type for handler in node.handlers if handler.type]
                self.values(tests)
                self.statements(blocks_of(node))
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self.refuse(node, "it calls " + (dotted(node.value.func) or "something") + "()")
            elif not (is_text(node) or isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)) or type(node).__name__ == "TypeAlias"):
                self.refuse(node, "it runs a statement (%s)" % type(node).__name__)

    def definition(self, node):
        for decorator in node.decorator_list:
            callee = decorator
            if isinstance(decorator, ast.Call):
                callee = decorator.func
                self.values(decorator.args + [keyword.value for keyword in decorator.keywords])
            name = self.full_name(callee) or ""
            is_own = isinstance(callee, ast.Attribute) and callee.attr in OWN_DECORATORS and name.split(".")[0] not in self.imported
            if not (is_own or self.is_from(callee, PURE_CALLS)):
                self.refuse(decorator, "it calls the decorator " + (dotted(callee) or "of an expression"))
        if isinstance(node, ast.ClassDef):
            self.values(node.bases + [keyword.value for keyword in node.keywords])
            return self.statements(node.body)
        given = node.args
        every = given.posonlyargs + given.args + given.kwonlyargs + [given.vararg, given.kwarg]
        annotations = [argument.annotation for argument in every if argument] + [node.returns]
        return self.values(given.defaults + given.kw_defaults + annotations)

    def assignment(self, node):
        for target in targets_of(node):
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            if not all(isinstance(part, ast.Name) for part in parts):
                self.refuse(node, "it changes " + ast.unparse(target)[:60])
        self.values([node.value, getattr(node, "annotation", None)])

    def values(self, nodes):
        """Checks expressions that are evaluated when the module is loaded; bodies of lambdas are not."""
        left = [node for node in nodes if node is not None]
        while left:
            node = left.pop()
            if isinstance(node, ast.Call) and not self.may_call(node.func):
                self.refuse(node, "it calls " + (dotted(node.func) or "something") + "()")
            elif isinstance(node, ast.Lambda):
                left += [default for default in node.args.defaults + node.args.kw_defaults if default is not None]
            else:
                left += ast.iter_child_nodes(node)

    def may_call(self, function):
        if self.is_from(function, PURE_CALLS) or isinstance(function, ast.Name) and function.id in self.types:
            return True
        if not isinstance(function, ast.Attribute) or function.attr not in PURE_METHODS:
            return False
        owner = function.value
        if isinstance(owner, ast.Call):
            return self.may_call(owner.func)
        return isinstance(owner, LITERALS) or isinstance(owner, ast.Name) and owner.id in self.constants

    def is_from(self, function, names):
        """Whether an expression is one of these names, or belongs to a module that only makes values."""
        name = self.full_name(function)
        if name is None or any(part.startswith("_") for part in name.split(".")):
            return False
        module = name.split(".")[0]
        return name in names or module in PURE_MODULES and module in {full.split(".")[0] for full in self.imported.values()}

    def full_name(self, node):
        """The name with its module, however it was imported; None for what this module defines itself."""
        first, _, rest = (dotted(node) or "").partition(".")
        if not first or first not in self.imported and first in self.functions | self.constants:
            return None
        return self.imported.get(first, first) + ("." + rest if rest else "")


def problems_of(module):
    """`{line, message}` for each line that does something when the module is loaded."""
    return sorted(TopLevel(module).problems, key=lambda problem: problem["line"])
