"""The top level of a skill may hold imports, definitions and constants. This rule is for readers; the sandbox is the protection."""
import ast

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
STATEMENTS = DEFINITIONS + (ast.ClassDef, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.Try, ast.Import, ast.ImportFrom, ast.Pass)
RULE = "when it is loaded: the top level holds imports, definitions and constants; move it into a function"

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
# Methods of values, and the decorators of properties and of generic functions.
PURE_METHODS = frozenset(
    name for kind in (str, bytes, list, tuple, dict, set, frozenset, int, float) for name in dir(kind) if not name.startswith("_")
) | {"setter", "getter", "deleter", "register"}


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


def is_deferred(node, field):
    """Whether loading the module skips this field: the body of a function, of a lambda or of the main guard."""
    if isinstance(node, ast.If) and is_main_guard(node.test):
        return field != "orelse"
    return field == "body" and isinstance(node, DEFINITIONS + (ast.Lambda,))


def loaded(module):
    """All nodes that are evaluated when the module is loaded, each before its parts."""
    found, left = [], [module]
    while left:
        node = left.pop()
        found.append(node)
        for field, value in ast.iter_fields(node):
            parts = value if isinstance(value, list) else [value]
            left += [part for part in parts if isinstance(part, ast.AST) and not is_deferred(node, field)]
    return found


def problems_of(module):
    """`{line, message}` for each line that does something when the module is loaded."""
    nodes, statements = loaded(module), list(top_level(module.body))
    imported = imported_names(nodes)
    assigned = [node for node in statements if isinstance(node, (ast.Assign, ast.AnnAssign))]
    own = {target.id for node in assigned for target in targets_of(node) if isinstance(target, ast.Name)}
    own |= {node.name for node in statements if isinstance(node, DEFINITIONS)}
    messages = {}

    def full_name(node):
        """The name with its module, however it was imported; "" for what this module defines itself."""
        first, _, rest = (dotted(node) or "").partition(".")
        if first in own and first not in imported:
            return ""
        return imported.get(first, first) + ("." + rest if rest else "")

    makers = [node for node in assigned if isinstance(node.value, ast.Call) and full_name(node.value.func) in TYPE_MAKERS]
    types = {target.id for node in makers for target in targets_of(node) if isinstance(target, ast.Name)}
    types |= {node.name for node in statements if isinstance(node, ast.ClassDef)}

    def is_pure(callee):
        if isinstance(callee, ast.Name) and callee.id in types:
            return True
        name = full_name(callee)
        module, *path = name.split(".")
        is_imported = (dotted(callee) or "").partition(".")[0] in imported
        is_public = not any(part.startswith("_") for part in path)
        if name in PURE_CALLS or is_imported and is_public and module in PURE_MODULES:
            return True
        return isinstance(callee, ast.Attribute) and callee.attr in PURE_METHODS and not is_imported

    def refuse(node, what):
        messages.setdefault(node.lineno, "%s %s" % (what, RULE))

    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) or isinstance(node, ast.Call) and not is_pure(node.func):
            call = node.value if isinstance(node, ast.Expr) else node
            refuse(node, "it calls " + (dotted(call.func) or "something") + "()")
        elif isinstance(node, ast.stmt) and not (isinstance(node, STATEMENTS) or is_text(node) or type(node).__name__ == "TypeAlias"):
            refuse(node, "it runs a statement (%s)" % type(node).__name__)
        for decorator in getattr(node, "decorator_list", []):
            if not is_pure(decorator.func if isinstance(decorator, ast.Call) else decorator):
                refuse(decorator, "it calls the decorator " + (dotted(decorator) or "of an expression"))
        for target in targets_of(node) if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else []:
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            if not all(isinstance(part, ast.Name) for part in parts):
                refuse(node, "it changes " + ast.unparse(target)[:60])
    return [{"line": line, "message": message} for line, message in sorted(messages.items())]
