/**
 * Python: `at_import(module, problems)` adds a problem for each thing that the code does when it is loaded. What may stand at the top
 * level, and in a class: imports, definitions, constants, and whatever is behind `if __name__ == "__main__"`. A constant may be built
 * by calls of the names below, of its own classes, and of methods of literals and of its own constants; nothing else is called. What of
 * the code's own runs by that, `OWN_CODE_PROGRAM` holds to the same.
 */
export const IMPORT_RULE_PROGRAM = String.raw`
PURE_MODULES = set("abc cmath collections dataclasses decimal enum fractions functools itertools math operator re string struct types typing".split())
NOT_PURE = set(
    """operator.call operator.methodcaller operator.setitem operator.delitem operator.iadd operator.iand operator.iconcat operator.ifloordiv
    operator.ilshift operator.imatmul operator.imod operator.imul operator.ior operator.ipow operator.irshift operator.isub operator.itruediv
    operator.ixor types.FunctionType types.LambdaType types.MethodType types.CodeType types.new_class typing.get_type_hints
    typing.ForwardRef typing.evaluate_forward_ref decimal.setcontext decimal.getcontext decimal.localcontext decimal.DefaultContext
    decimal.BasicContext decimal.ExtendedContext""".split()
)
# What these make is new.
MAKERS = set("dict list set bytearray defaultdict OrderedDict Counter deque ChainMap SimpleNamespace".split())
# These do something by being imported.
ACTS_AT_IMPORT = set("this antigravity __hello__ __phello__".split())
PURE_CALLS = set(
    """bool bytes bytearray chr complex dict enumerate filter float frozenset int len list map max min object ord property range
    reversed round set slice sorted str sum super tuple type zip abs divmod pow hash repr staticmethod classmethod
    dict.fromkeys str.maketrans bytes.fromhex float.fromhex int.from_bytes itertools.chain.from_iterable
    datetime.date datetime.datetime datetime.time datetime.timedelta datetime.timezone datetime.date.fromisoformat
    datetime.datetime.fromisoformat zoneinfo.ZoneInfo pathlib.Path pathlib.PurePath pathlib.PurePosixPath logging.getLogger
    threading.Lock threading.RLock contextvars.ContextVar textwrap.dedent numpy.array contextlib.contextmanager""".split()
)
# An expression of these is something new, whatever is in it.
NEW_VALUES = (ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.JoinedStr)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id] + parts[::-1]) if isinstance(node, ast.Name) else None

def imported_names(nodes):
    """What a name at the top level stands for, such as "re.compile"."""
    names = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update({a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0] for a in node.names})
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({a.asname or a.name: node.module + "." + a.name for a in node.names})
    return names

def given(call):
    return call.args + [keyword.value for keyword in call.keywords]

def said(node):
    """The name of a thing, or of what it is in."""
    parts = [name for name in map(dotted, ast.walk(node)) if name and not hasattr(builtins, name.partition(".")[0])]
    return parts[0] if parts else "what is not its own"

def stored_names(target):
    return [part.id for part in ast.walk(target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]

def is_main_guard(test):
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = [test.left, test.comparators[0]]
    return any(dotted(a) == "__name__" and isinstance(b, ast.Constant) and b.value == "__main__" for a, b in (sides, sides[::-1]))

class AtImport:
    def __init__(self, module, problems):
        self.problems = problems
        self.imported = imported_names(module.body)
        self.imports_anywhere = imported_names(outside_functions(module.body))
        self.classes = {node.name for node in ast.walk(module) if isinstance(node, ast.ClassDef)}
        self.functions = {node.name for node in ast.walk(module) if isinstance(node, DEFINITIONS)}
        self.constants = set()
        self.lazy = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" and any(a.name == "annotations" for a in node.names) for node in module.body)
        self.handed = HandedOn(self)
        self.own = OwnCode(module, self)

    def refuse(self, node, what):
        problem = {
            "line": getattr(node, "lineno", None),
            "message": what + " when it is loaded; the top level may hold imports, definitions and constants, so put it into a function or behind if __name__ == \"__main__\"",
        }
        # What is on one line is told once: a call may be seen as one, and as what its argument leads to.
        if all(told["line"] != problem["line"] for told in self.problems):
            self.problems.append(problem)

    def statements(self, body):
        for node in body:
            self.statement(node)

    def statement(self, node):
        if isinstance(node, DEFINITIONS):
            self.decorators(node)
            for default in self.defaults(node.args):
                self.value(default)
            every = node.args.posonlyargs + node.args.args + node.args.kwonlyargs + [a for a in (node.args.vararg, node.args.kwarg) if a]
            for annotation in [argument.annotation for argument in every] + [node.returns]:
                self.annotation(annotation)
        elif isinstance(node, ast.ClassDef):
            self.decorators(node)
            for base in node.bases + [keyword.value for keyword in node.keywords]:
                self.value(base)
            self.statements(node.body)
            self.handed.site(node, node.bases + [keyword.value for keyword in node.keywords], self.holds_foreign, lambda: self.own.defined(node))
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None:
                self.value(node.value)
            if isinstance(node, ast.AnnAssign):
                self.annotation(node.annotation)
            for target in targets:
                self.value(target)
                self.stored_at(target, node)
                if isinstance(target, ast.Attribute) and is_special(target.attr) and self.own.reach(node.value):
                    self.refuse(node, "it sets the method " + self.named(target))
            if isinstance(node, ast.AugAssign) and self.is_foreign(node.target):
                self.refuse(node, "it changes " + said(node.target))
            self.constants |= {name for target in targets for name in stored_names(target)}
        elif isinstance(node, ast.If):
            if is_main_guard(node.test):
                return self.statements(node.orelse)
            self.own.touched(node)
            self.value(node.test)
            self.statements(node.body + node.orelse)
        elif isinstance(node, ast.Try):
            for handler in node.handlers:
                if handler.type is not None:
                    self.value(handler.type)
            self.statements(node.body + [s for handler in node.handlers for s in handler.body] + node.orelse + node.finalbody)
        elif isinstance(node, ast.Assert):
            self.own.touched(node)
            self.value(node.test)
        elif isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Call):
                self.refuse(node, "it calls " + self.named(node.value.func))
            else:
                self.value(node.value)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self.imports(node)
        elif not isinstance(node, (ast.Pass, ast.Global)):
            words = {"For": "runs a loop", "While": "runs a loop", "With": "opens a with block", "Raise": "raises an exception", "Delete": "deletes a name"}
            self.refuse(node, "it " + words.get(type(node).__name__, "runs a statement (%s)" % type(node).__name__))

    def imports(self, node):
        for name in [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]:
            if name.split(".")[0] in ACTS_AT_IMPORT:
                self.refuse(node, "it imports %s, which acts" % name)

    def decorators(self, node):
        for decorator in node.decorator_list:
            callee = decorator.func if isinstance(decorator, ast.Call) else decorator
            if not (self.is_pure(callee) or self.root(callee) in self.functions | self.classes | self.constants):
                self.refuse(decorator, "it calls the decorator " + self.named(callee))
            self.handed.site(decorator, self.handed_by(decorator), self.holds_foreign, lambda: self.own.decorated(decorator))
            if isinstance(decorator, ast.Call):
                for argument in decorator.args + [keyword.value for keyword in decorator.keywords]:
                    self.value(argument)

    def value(self, node):
        """An expression that is evaluated; bodies of lambdas are not."""
        if isinstance(node, ast.Lambda):
            for default in self.defaults(node.args):
                self.value(default)
            return
        if isinstance(node, ast.Call):
            if not self.may_call(node.func):
                return self.refuse(node, "it calls " + self.named(node.func))
            if self.whole(node.func) in CHANGES_FIRST and any(self.holds_foreign(part) for part in given(node)):
                self.refuse(node, "it changes " + said(node.args[0] if node.args else node))
        if self.is_target(node) and self.is_foreign(node.value):
            self.refuse(node, "it changes " + (dotted(node) or said(node.value)))
        self.handed.site(node, self.handed_by(node), self.holds_foreign, lambda: self.run_by(node))
        for child in ast.iter_child_nodes(node):
            self.value(child)

    def run_by(self, node):
        if isinstance(node, ast.Call):
            self.own.called(node)
        self.own.touched(node)

    def handed_by(self, node):
        """What the code that an expression runs may get."""
        if isinstance(node, ast.Call):
            return given(node) + ([] if self.is_pure(node.func) else [node.func])
        return list(ast.iter_child_nodes(node))

    def stored_at(self, target, node):
        """An object may do something with what is stored in it."""
        if isinstance(target, (ast.Attribute, ast.Subscript)) and node.value is not None:
            setters = {"__setattr__", "__setitem__"} | {getattr(target, "attr", "")}
            chosen = lambda name, made: name in setters and (made or is_special(name))
            setting = lambda: [self.own.touch(target.value, chosen)] + [self.own.run(method) for method in self.own.methods.get("__set__", [])]
            self.handed.site(node, [node.value], self.holds_foreign, setting)

    def is_target(self, node):
        return isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)

    def is_foreign(self, node, local=frozenset(), seen=None):
        """Whether it may be something that others use as well: what is imported, or what is only a name for that."""
        seen = set() if seen is None else seen
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return self.keeps_foreign(node, seen) or self.holds_foreign(node.value, local, seen)
        if isinstance(node, ast.Call):
            return not self.is_new(node) and any(self.holds_foreign(part, local, seen) for part in given(node))
        if isinstance(node, NEW_VALUES):
            return False
        return self.holds_foreign(node, local, seen, False)

    def is_new(self, call):
        """Whether a call makes something."""
        return dotted(call.func) in self.classes or (dotted(call.func) or "").split(".")[-1] in MAKERS

    def keeps_foreign(self, node, seen):
        """Whether something that others use as well is kept in an attribute of that name."""
        if not isinstance(node, ast.Attribute) or ("." + node.attr, True) in seen:
            return False
        seen.add(("." + node.attr, True))
        return any(self.is_foreign(v, self.own.scopes.of_value.get(id(v), frozenset()), seen) for v in self.own.scopes.kept.get(node.attr, []))

    def holds_foreign(self, node, local=frozenset(), seen=None, deep=True):
        """The same of anything in it; not deep: of what its names stand for, and not of what is in that."""
        seen = set() if seen is None else seen
        left = [node]
        while left:
            node = left.pop()
            if isinstance(node, ast.Name) and node.id not in local and not hasattr(builtins, node.id) and (node.id, deep) not in seen:
                seen.add((node.id, deep))
                bound = self.own.rebound.get(node.id, [])
                if any(self.holds_foreign(v, local, seen) if deep else self.is_foreign(v, local, seen) for v in bound):
                    return True
                if node.id in self.imports_anywhere or not bound and node.id not in self.classes | self.functions | self.constants:
                    return True
            # That of what is called by its name is not in the result, and what pure modules have is not changed by storing in it.
            if isinstance(node, ast.Attribute) and self.is_pure(node):
                continue
            if self.keeps_foreign(node, seen):
                return True
            if isinstance(node, ast.Lambda):
                left.extend(self.defaults(node.args))
            else:
                left.extend(given(node) if isinstance(node, ast.Call) and dotted(node.func) else ast.iter_child_nodes(node))
        return False

    def annotation(self, node):
        if node is not None and not self.lazy:
            self.value(node)

    def defaults(self, arguments):
        return arguments.defaults + [default for default in arguments.kw_defaults if default is not None]

    def may_call(self, function):
        if self.is_pure(function) or dotted(function) in self.classes:
            return True
        if isinstance(function, ast.Name):
            return function.id in self.constants
        if not isinstance(function, ast.Attribute) or function.attr.startswith("__"):
            return False
        if function.attr.startswith("_") and function.attr not in self.functions:
            return False
        owner = function.value
        if isinstance(owner, (ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.Tuple)):
            return True
        if isinstance(owner, ast.Call):
            return self.may_call(owner.func)
        return dotted(owner) in self.constants

    def is_pure(self, function):
        name = dotted(function)
        if name is None:
            return False
        first, _, rest = name.partition(".")
        if first in self.functions or first in self.constants:
            return False
        whole = self.imported.get(first, first) + ("." + rest if rest else "")
        if any(part.startswith("_") for part in whole.split(".")):
            return False
        return whole in PURE_CALLS or (first in self.imported and whole.split(".")[0] in PURE_MODULES and whole not in NOT_PURE)

    def whole(self, node):
        """The full name of what is imported; None for anything else."""
        name = dotted(node)
        if name is None:
            return None
        first, _, rest = name.partition(".")
        return self.imported[first] + ("." + rest if rest else "") if first in self.imported and first not in self.constants else None

    def root(self, node):
        name = dotted(node)
        return name.partition(".")[0] if name else None

    def named(self, function):
        name = dotted(function)
        return name + "()" if name else "something"

def at_import(module, problems):
    rule = AtImport(module, problems)
    rule.statements(module.body)
    rule.handed.check()
`;
