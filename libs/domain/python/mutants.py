"""Copies of the code that are broken in one place each, for mutation analysis: do the tests notice?

The kinds of mutations follow DeMillo, Lipton and Sayward, "Hints on Test Data Selection", 1978.
"""
import ast

from top_level import DEFINITIONS, bound_names, dotted, is_main_guard, is_text, top_level

ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}
# A change in these fields shows in no test, or only in the message of an error.
UNSEEN_FIELDS = {"annotation", "returns", "decorator_list", "type_comment", "exc", "cause", "msg"}
NOTHING = ast.Return(value=ast.Constant(value=None))


def is_plain(default):
    """Whether a default is a constant. No test could tell 60 from 61 there, and the signature states it."""
    return isinstance(default.operand if isinstance(default, ast.UnaryOp) else default, ast.Constant)


def seen(part):
    """Nodes that tests could notice when broken, in the order of the source."""
    found, left = [], [part]
    while left:
        node = left.pop()
        found.append(node)
        if is_text(node) or isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)):
            continue
        if isinstance(node, ast.If) and is_main_guard(node.test):
            left.extend(node.orelse)
            continue
        for field, value in ast.iter_fields(node):
            if field in UNSEEN_FIELDS:
                continue
            children = [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)]
            left.extend(child for child in children if not (isinstance(node, ast.arguments) and is_plain(child)))
    placed = [node for node in found if hasattr(node, "lineno")]
    return sorted(placed, key=lambda node: (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))


def changed(node, **fields):
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def changes_of(node):
    """(node to replace, the node in its place) for each way to break a node."""
    left, operator = getattr(node, "left", None), getattr(node, "op", None)
    is_text_before = isinstance(left, ast.JoinedStr) or isinstance(left, ast.Constant) and isinstance(left.value, (str, bytes))
    if type(operator) in ARITHMETIC and not (is_text_before and isinstance(operator, ast.Mod)):
        yield node, changed(node, op=ARITHMETIC[type(operator)]())
    if isinstance(node, ast.Compare):
        yield node, changed(node, ops=[COMPARED[type(node.ops[0])]()] + node.ops[1:])
    if isinstance(node, ast.BoolOp):
        yield node, changed(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())
    if isinstance(operator, ast.Not):
        yield node, node.operand
    if isinstance(node, (ast.If, ast.IfExp)) and not isinstance(node.test, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        yield node.test, ast.UnaryOp(op=ast.Not(), operand=node.test)
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield node, changed(node, value=not node.value)
        elif isinstance(node.value, (int, float)):
            yield node, changed(node, value=node.value + 1)
        elif isinstance(node.value, str) and node.value:
            yield node, changed(node, value=node.value + "?")
    if isinstance(node, ast.Call) and dotted(node.func) == "range" and node.args and not node.keywords:
        stop = node.args[0 if len(node.args) == 1 else 1]
        if not isinstance(stop, ast.Starred):
            yield stop, ast.BinOp(left=stop, op=ast.Sub(), right=ast.Constant(value=1))
    for edge in (node.upper, node.lower) if isinstance(node, ast.Slice) else ():
        if edge is not None:
            yield edge, ast.BinOp(left=edge, op=ast.Add(), right=ast.Constant(value=1))
    if isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield node, NOTHING
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    is_storing = isinstance(node, ast.Assign) and all(isinstance(target, (ast.Subscript, ast.Attribute)) for target in node.targets)
    if is_call or is_storing or isinstance(node, ast.AugAssign):
        yield node, ast.Pass()


class Source:
    """The text of the code, in which nodes of its tree can be replaced. Positions of nodes count bytes."""

    def __init__(self, code):
        self.data = code.encode()
        self.starts = [0]
        for line in self.data.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def replaced(self, first, last, text):
        """Replaces the text from the start of `first` to the end of `last`. Line breaks stay, so that lines keep their numbers."""
        start = self.starts[first.lineno - 1] + first.col_offset
        end = self.starts[last.end_lineno - 1] + last.end_col_offset
        if text.startswith("(") and text.endswith(")"):
            text = text[:-1] + "\n" * self.data[start:end].count(b"\n") + ")"
        return (self.data[:start] + text.encode() + self.data[end:]).decode()


def parts_of(module, entry):
    """The statements that bind the entry point and the names that it uses. For a program, the whole module."""
    if entry is None:
        return [module]
    known = {}
    for node in top_level(module.body):
        for name in bound_names(node):
            known.setdefault(name, []).append(node)
    found, left = [], [entry]
    while left:
        for part in known.pop(left.pop(0), []):
            if part not in found:
                found.append(part)
                left += [node.id for node in ast.walk(part) if isinstance(node, ast.Name)]
    return sorted(found, key=lambda node: node.lineno)


def evenly(items, count):
    if count >= len(items):
        return items
    return [items[(2 * at + 1) * len(items) // (2 * count)] for at in range(count)]


def answering_nothing(source, module, entry):
    """The code with an entry point that always returns None; for a program, code that does nothing."""
    if entry is None:
        return "pass\n"
    binding = [node for node in top_level(module.body) if entry in bound_names(node)]
    body = binding[0].body if len(binding) == 1 and isinstance(binding[0], DEFINITIONS) else None
    if body and binding[0] in module.body and not getattr(body[0], "decorator_list", None):
        return source.replaced(body[0], body[-1], ast.unparse(NOTHING))
    return source.data.decode() + "\n" + entry + " = lambda *args, **kwargs: None\n"


def short(text):
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def compiles(text):
    try:
        compile(text, "<mutant>", "exec", dont_inherit=True)
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def mutants_of(code, module, entry, most):
    """`{what, code}` of at most `most` mutants, spread over the code. The same code gives the same mutants."""
    source = Source(code)
    changes = [change for part in parts_of(module, entry) for node in seen(part) for change in changes_of(node)]
    wanted = {answering_nothing(source, module, entry): "answers nothing"}
    for old, new in evenly(changes, most - 1):
        is_whole = isinstance(new, ast.stmt) or isinstance(getattr(new, "value", None), str)
        text = ast.unparse(new) if is_whole else "(%s)" % ast.unparse(new)
        what = "line %d: %s became %s" % (old.lineno, short(ast.unparse(old)), short(text))
        wanted.setdefault(source.replaced(old, old, text), what)
    return [{"what": what, "code": text} for text, what in wanted.items() if text != code and compiles(text)]
