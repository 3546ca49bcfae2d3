"""The top level of a skill may hold imports, definitions and constants. This rule is for readers; the sandbox is the protection."""
import ast

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
STATEMENTS = DEFINITIONS + (ast.ClassDef, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.Try, ast.Import, ast.ImportFrom, ast.Pass)
STATEMENTS += (getattr(ast, "TypeAlias", ast.Pass),)
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


def targets_of(node):
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def bound_names(node):
    if isinstance(node, DEFINITIONS + (ast.ClassDef,)):
        return [node.name]
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        return [part.id for target in targets_of(node) for part in ast.walk(target) if isinstance(part, ast.Name)]
    return []


def loaded(node):
    """The node and all below it that loading the module evaluates: no body of a function, of a lambda or of the main guard."""
    yield node
    is_main = isinstance(node, ast.If) and is_main_guard(node.test)
    skipped = ("test", "body") if is_main else ("body",) if isinstance(node, DEFINITIONS + (ast.Lambda,)) else ()
    for field, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST) and field not in skipped:
                yield from loaded(part)


def problems_of(module):
    """`{line, message}` for each line that does something when the module is loaded."""
    nodes = list(loaded(module))
    # The meaning of each name: "re.compile" for an import, "type" for the module's own types, "" for its other definitions.
    names = {name: "" for node in top_level(module.body) for name in bound_names(node)}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            names[node.name] = "type"
        if isinstance(node, ast.Import):
            names.update({a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names})
        if isinstance(node, ast.ImportFrom):
            names.update({a.asname or a.name: (node.module or "") + "." + a.name for a in node.names})

    def full_name(callee):
        first, _, rest = (dotted(callee) or "").partition(".")
        return names.get(first, first) + ("." + rest if rest else "")

    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and full_name(node.value.func) in TYPE_MAKERS:
            names.update(dict.fromkeys(bound_names(node), "type"))

    def is_pure(callee):
        first = (dotted(callee) or "").partition(".")[0]
        if isinstance(callee, ast.Attribute) and callee.attr in PURE_METHODS and names.get(first, "") in ("", "type"):
            return True
        module, *path = full_name(callee).split(".")
        return full_name(callee) in PURE_CALLS or module in PURE_MODULES and not any(part.startswith("_") for part in path)

    refused = []
    for node in nodes:
        is_acting = isinstance(node, ast.stmt) and not (isinstance(node, STATEMENTS) or is_text(node))
        is_changing = isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
        callees = [node.func] if isinstance(node, ast.Call) else []
        callees += [one for one in getattr(node, "decorator_list", []) if not isinstance(one, ast.Call)]
        refused += [node] if is_acting or is_changing else [one for one in callees if not is_pure(one)]
    texts = {node.lineno: ast.unparse(node).split("\n")[0][:60] for node in reversed(refused)}
    return [{"line": line, "message": "it runs %s %s" % (text, RULE)} for line, text in sorted(texts.items())]
