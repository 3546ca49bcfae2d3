"""The top level of a skill may hold imports, definitions and assignments. This rule is for readers; the sandbox is the protection."""
import ast

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
STATEMENTS = DEFINITIONS + (ast.ClassDef, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.Try, ast.Import, ast.ImportFrom, ast.Pass)
STATEMENTS += (getattr(ast, "TypeAlias", ast.Pass),)
RULE = "when it is loaded: the top level holds imports, definitions and assignments; move it into a function"


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


def targets_of(node):
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def problems_of(module):
    """`{line, message}` for each statement that does more than define or assign something."""
    acting = [node for node in top_level(module.body) if not (isinstance(node, STATEMENTS) or is_text(node))]
    return [{"line": node.lineno, "message": "it runs %s %s" % (ast.unparse(node).split("\n")[0][:60], RULE)} for node in acting]
