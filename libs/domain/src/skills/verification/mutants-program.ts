/**
 * Python: `mutants_of(code, module, parts, most)` makes copies of the code that are broken in one place each, spread over the kinds of
 * breaking and over the code. The same code always gives the same copies. Their lines keep their numbers where that is possible.
 *
 * The kinds are those of mutation analysis: DeMillo, Lipton and Sayward, "Hints on Test Data Selection", 1978.
 */
export const MUTANTS_PROGRAM = String.raw`
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}
KINDS = ["operator", "comparison", "constant", "condition", "returns", "edge", "removed"]
# Broken, these change nothing that a test could see, or only the words of an error.
UNSEEN_FIELDS = {"annotation", "returns", "decorator_list", "type_comment", "exc", "cause", "msg"}

def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

def seen(part):
    """Nodes whose breaking tests could notice, in the order of the source."""
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

def is_plain(default):
    """A bound such as 60, which no test could tell from 61, and a text are what the signature says, not code."""
    return isinstance(default.operand if isinstance(default, ast.UnaryOp) else default, ast.Constant)

def text_of(node):
    return ast.unparse(node)

def short(text):
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."

def in_brackets(node):
    return "(" + text_of(node) + ")"

def breakings(node):
    """(kind, node to replace, its new text)"""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        formats = isinstance(node.op, ast.Mod) and isinstance(node.left, (ast.Constant, ast.JoinedStr)) and not is_number(node.left)
        if not formats:
            yield "operator", node, in_brackets(ast.BinOp(left=node.left, op=ARITHMETIC[type(node.op)](), right=node.right))
    if isinstance(node, ast.AugAssign):
        if type(node.op) in ARITHMETIC:
            yield "operator", node, text_of(ast.AugAssign(target=node.target, op=ARITHMETIC[type(node.op)](), value=node.value))
        yield "removed", node, "pass"
    if isinstance(node, ast.Compare):
        yield "comparison", node, in_brackets(ast.Compare(left=node.left, ops=[COMPARED[type(node.ops[0])]()] + node.ops[1:], comparators=node.comparators))
    if isinstance(node, ast.BoolOp):
        yield "condition", node, in_brackets(ast.BoolOp(op=ast.Or() if isinstance(node.op, ast.And) else ast.And(), values=node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "condition", node, in_brackets(node.operand)
    elif isinstance(node, (ast.If, ast.IfExp)) and not isinstance(node.test, (ast.Compare, ast.BoolOp)):
        yield "condition", node.test, "(not " + in_brackets(node.test) + ")"
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield "constant", node, repr(not value)
        elif is_number(node):
            yield "constant", node, "(%r)" % (value + 1,)
        elif isinstance(value, str) and value:
            yield "constant", node, repr(value + "?")
    if isinstance(node, ast.Return) and node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield "returns", node, "return None"
    if isinstance(node, ast.Call) and dotted(node.func) == "range" and node.args and not node.keywords:
        stop = node.args[0 if len(node.args) == 1 else 1]
        if not isinstance(stop, ast.Starred):
            yield "edge", stop, in_brackets(stop) + " - 1"
    if isinstance(node, ast.Slice):
        for edge in (node.upper, node.lower):
            if edge is not None:
                yield "edge", edge, in_brackets(edge) + " + 1"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "removed", node, "pass"
    if isinstance(node, ast.Assign) and all(isinstance(target, (ast.Subscript, ast.Attribute)) for target in node.targets):
        yield "removed", node, "pass"

def is_number(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)

class Source:
    """The text in which positions of the tree, which count bytes, can be replaced."""
    def __init__(self, code):
        self.data = code.encode()
        self.starts = [0]
        for line in self.data.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def between(self, first, last, text):
        start = self.starts[first.lineno - 1] + first.col_offset
        end = self.starts[last.end_lineno - 1] + last.end_col_offset
        if text.startswith("(") and text.endswith(")"):
            text = text[:-1] + "\n" * self.data[start:end].count(b"\n") + ")"
        return (self.data[:start] + text.encode() + self.data[end:]).decode()

def answering_nothing(source, module):
    entry = request["entryPoint"]
    if entry is None:
        return "pass\n"
    named = [node for node in module.body if isinstance(node, DEFINITIONS) and node.name == entry]
    # Bound in one place only, so that no other one answers for it.
    if len(named) == 1 and bound(entry, top_level(module.body)) is named[0] and not getattr(named[0].body[0], "decorator_list", None):
        return source.between(named[0].body[0], named[0].body[-1], "return None")
    return source.data.decode() + "\n" + entry + " = lambda *args, **kwargs: None\n"

def parts_of(module):
    """The entry point and what it calls of this code; the whole of a program."""
    if request["entryPoint"] is None:
        return [module]
    known = {}
    always = {id(node) for node in module.body}
    def know(name, node, replaces):
        known[name] = [node] if replaces and id(node) in always else known.get(name, []) + [node]
    # Behind a condition, only running tells which of several definitions is the one.
    for node in top_level(module.body):
        if isinstance(node, DEFINITIONS + (ast.ClassDef,)):
            know(node.name, node, True)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        know(name.id, node, name is target)
    found, left = [], [request["entryPoint"]]
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

def mutants_of(code, module, most):
    source = Source(code)
    spots = {kind: [] for kind in KINDS}
    for part in parts_of(module):
        for node in seen(part):
            for kind, old, text in breakings(node):
                spots[kind].append((old, text))
    counts, room = dict.fromkeys(KINDS, 0), most - 1
    while room > 0 and any(counts[kind] < len(spots[kind]) for kind in KINDS):
        for kind in KINDS:
            if room > 0 and counts[kind] < len(spots[kind]):
                counts[kind], room = counts[kind] + 1, room - 1
    wanted = [("answers nothing", answering_nothing(source, module))]
    for kind in KINDS:
        for old, text in evenly(spots[kind], counts[kind]):
            what = "line %d: %s became %s" % (old.lineno, short(text_of(old)), short(text))
            wanted.append((what, source.between(old, old, text)))
    mutants, texts = [], {code}
    for what, text in wanted:
        if text in texts or not compiles(text):
            continue
        texts.add(text)
        mutants.append({"what": what, "code": text})
    return mutants

def compiles(text):
    try:
        compile(text, "<mutant>", "exec", dont_inherit=True)
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
`;
