/**
 * Python: `OwnCode`, what of the code runs when it is loaded although the top level does not call it by its name: decorators, metaclasses,
 * `__init_subclass__`, `__class_getitem__`, `__set_name__`, constructors, operators and properties of own classes, and what is handed to
 * `map()` and the like. Names are followed as far as the text says; where it does not, more is held to the rule rather than less.
 */
export const OWN_CODE_PROGRAM = String.raw`
# Of these nothing that went in can be called again.
PLAIN_RESULTS = set("str int float bool complex bytes len repr hash ord chr round abs divmod pow range any all isinstance issubclass callable".split())
# Constructors of what reads, writes or waits once it is asked to; and methods of theirs that do not.
ACTIVE = set("pathlib.Path logging.getLogger threading.Lock threading.RLock contextvars.ContextVar".split())
QUIET_METHODS = set("joinpath with_suffix with_name with_stem as_posix relative_to is_absolute is_relative_to".split())
# Called in code that runs at load, beside PURE_CALLS.
QUIET_CALLS = set("any all bin hex oct ascii format id iter next callable isinstance issubclass getattr hasattr setattr delattr vars".split())
# These call their first argument, those their key.
CALLS_FIRST = set("map filter reduce starmap takewhile dropwhile filterfalse defaultdict".split())
CALLS_KEY = set("sorted max min sort groupby".split())
SILENT = set("__call__ __enter__ __exit__ __aenter__ __aexit__ __init_subclass__ __prepare__ __post_init__".split())  # no operator calls these
CONSTRUCTED = ("__new__", "__init__", "__post_init__", "__set_name__", "__get__", "__set__", "__delete__", "__del__")

def is_special(name):
    return name.startswith("__") and name.endswith("__")

def outside_functions(nodes):
    """Nodes that are evaluated when the code is loaded, with the functions that stand among them, but not what is in those."""
    left = list(nodes)[::-1]
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, DEFINITIONS + (ast.Lambda,)):
            left.extend(list(ast.iter_child_nodes(node))[::-1])

def methods_of(owner):
    return [node for node in outside_functions(owner.body) if isinstance(node, DEFINITIONS)]

def called_arguments(call):
    """Arguments that are called back, and whether they are nothing but functions."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    named = [keyword.value for keyword in call.keywords]
    if name in CALLS_KEY:
        return [k.value for k in call.keywords if k.arg == "key"] + (call.args[1:] if name == "groupby" else []), True
    if name in CALLS_FIRST:
        return call.args[:1] + named, True
    if name == "accumulate":
        return call.args[1:] + named, True
    return (call.args[:2] + named if name in ("sub", "subn") else []), False

class OwnCode:
    def __init__(self, module, rule):
        self.scopes = Scopes(module)
        self.rule, self.handed, self.done, self.known = rule, rule.handed, set(), {}
        self.rebound, self.bindings, self.classes, self.functions, self.methods = {}, {}, {}, {}, {}
        inside = {id(method) for node in ast.walk(module) if isinstance(node, ast.ClassDef) for method in node.body}
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                self.classes.setdefault(node.name, []).append(node)
                for method in methods_of(node):
                    self.methods.setdefault(method.name, []).append(method)
            elif isinstance(node, DEFINITIONS) and id(node) not in inside:
                self.functions.setdefault(node.name, []).append(node)
        for name, value in stored_by_name(outside_functions(module.body)):
            self.rebound.setdefault(name, []).append(value)
        for node in outside_functions(module.body):
            if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for part in ast.walk(target):
                        if isinstance(part, ast.Name):
                            self.bindings.setdefault(part.id, []).append(node.value)

    def keeps_given(self, name, deep):
        """Whether an attribute of that name may be what a function was given; deep: or have that in it."""
        values = self.scopes.kept.get(name, []) + self.scopes.kept.get(None, [])
        return name in self.scopes.fields or name not in self.methods and not values or any(self.is_given(value, deep) for value in values)

    def is_given(self, value, deep):
        if not deep and (isinstance(value, (ast.List, ast.Dict, ast.Set, ast.Tuple)) or isinstance(value, ast.Call) and self.rule.is_new(value)):
            return False
        names = self.scopes.of_value.get(id(value), frozenset())
        return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(value))

    def reach(self, node):
        """What can be called through the value of an expression: (function | lambda | class | instance, node) or (outside, name)."""
        found, left, seen = {}, list(self.direct(node, False)), set()
        while left:
            kind, what, called = left.pop()
            if kind == "name":
                if (what, called) not in seen:
                    seen.add((what, called))
                    left += self.direct_of_name(what, called)
            else:
                kind = "instance" if kind == "class" and called else kind
                found[kind, what if kind == "outside" else id(what)] = (kind, what)
        return list(found.values())

    def direct(self, node, called):
        """The same without what is behind names: (name, NAME, whether it was called) stands for it."""
        key = (id(node), called)
        if key not in self.known:
            self.known[key] = tuple(dict.fromkeys(self.direct_of(node, called)))
        return self.known[key]

    def direct_of(self, node, called):
        if isinstance(node, ast.Name):
            return [("name", node.id, called)]
        if isinstance(node, ast.Lambda):
            return [("lambda", node, called)]
        parts = [(child, called) for child in ast.iter_child_nodes(node)]
        found = []
        if isinstance(node, ast.Attribute):
            whole = self.rule.whole(node)
            if whole is not None:
                return [] if self.rule.is_pure(node) else [("outside", whole, called)]
            found += [("function", method, called) for method in self.methods.get(node.attr, [])]
        elif isinstance(node, ast.Call):
            name = self.rule.whole(node.func) or dotted(node.func)
            if name in PLAIN_RESULTS and name not in self.bindings:
                return []
            found = [("outside", name, called)] if name in ACTIVE else []
            parts = [(node.func, True)] + [(part, called) for part in node.args + [keyword.value for keyword in node.keywords]]
        for part, through_call in parts:
            found.extend(self.direct(part, through_call))
        return found

    def direct_of_name(self, name, called):
        found = [("class", node, called) for node in self.classes.get(name, [])]
        found += [("function", node, called) for node in self.functions.get(name, [])]
        for value in self.bindings.get(name, []):
            found += self.direct(value, called)
        if found or name in self.bindings:
            return found
        whole = self.rule.whole(ast.Name(id=name))
        if whole is not None:
            return [] if whole.split(".")[0] in PURE_MODULES or whole in PURE_CALLS else [("outside", whole, called)]
        builtin = getattr(builtins, name, None)
        if builtin is None:
            return [("function", method, called) for method in self.methods.get(name, [])]
        harmless = name in PURE_CALLS or isinstance(builtin, type) and issubclass(builtin, BaseException)
        return [("outside", name, called)] if callable(builtin) and not harmless else []

    def family(self, owner):
        """A class and the classes of the code that it is made from."""
        found = [owner]
        for one in found:
            bases = [what for base in one.bases for kind, what in self.reach(base) if kind == "class"]
            found += [what for what in bases if all(what is not other for other in found)]
        return found

    def metaclasses(self, owner):
        return [found for one in self.family(owner) for k in one.keywords if k.arg == "metaclass" for found in self.reach(k.value)]

    def run_members(self, owner, chosen, depth=0, made=False):
        for one in self.family(owner):
            for node in outside_functions(one.body):
                if isinstance(node, DEFINITIONS) and chosen(node.name, bool(node.decorator_list)):
                    self.run(node, depth, made)
                elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    if any(isinstance(t, ast.Name) and chosen(t.id, isinstance(node.value, ast.Call)) for t in targets):
                        for found in self.reach(node.value):
                            self.start(found, node, depth)

    def named(self, owner, *names, depth=0):
        self.run_members(owner, lambda name, _: name in names, depth)
        for name in names:
            self.stored(name)

    def stored(self, name, at=None):
        """What may be called as an attribute because it was stored there; with a call, also what that was given."""
        self.handed.ran(("stored", name))
        # Once: what is called may lead here again.
        if ("stored", name) not in self.done:
            self.done.add(("stored", name))
            for value in self.scopes.kept.get(name, []) + self.scopes.kept.get(None, []):
                self.handed.under(("stored", name), lambda: [self.start(found, value) for found in self.reach(value)])
        for value in self.scopes.kept.get(name, []) if at is not None else []:
            if isinstance(value, ast.Name) and not self.reach(value) and value.id not in self.bindings:
                self.rule.refuse(at, "it calls what is stored as " + name)

    def operate(self, owner):
        self.run_members(owner, lambda name, _: is_special(name) and name not in SILENT)

    def start(self, found, at, depth=0):
        """Something is called."""
        kind, what = found
        if kind == "function":
            self.handed.ran(("with its object", id(what)))
            self.run(what, depth)
        elif kind == "lambda":
            self.run(what)
        elif kind == "class":
            self.construct(what, at)
        elif kind == "instance":
            self.named(what, "__call__")
        else:
            self.rule.refuse(at, "it calls %s()" % what)

    def construct(self, owner, at):
        self.named(owner, *CONSTRUCTED)
        self.operate(owner)
        for kind, what in self.metaclasses(owner):
            if kind == "class":
                self.named(what, "__call__")
        for one in self.family(owner):
            for node in outside_functions(one.body):
                for keyword in node.keywords if isinstance(node, ast.Call) else []:
                    for found in self.reach(keyword.value) if keyword.arg == "default_factory" else []:
                        self.start(found, at)

    def defined(self, owner):
        """A class statement ran. An enumeration makes its members then, and asks its own methods how."""
        if any(self.is_enum(base, set()) for one in self.family(owner) for base in one.bases + [k.value for k in one.keywords]):
            self.run_members(owner, lambda name, _: name.startswith("_") and name.endswith("_"))
        for kind, what in self.metaclasses(owner):
            if kind == "class":
                self.named(what, "__prepare__", "__new__", "__init__")
            else:
                self.start((kind, what), owner)
        for base in owner.bases:
            for kind, what in self.reach(base):
                if kind == "class":
                    self.named(what, "__init_subclass__")
                elif kind == "instance":
                    self.named(what, "__mro_entries__")

    def decorated(self, decorator):
        made = isinstance(decorator, ast.Call)
        callee = decorator.func if made else decorator
        if self.rule.is_pure(callee):
            return
        if isinstance(callee, ast.Attribute):
            for kind, what in self.reach(callee.value):
                if kind in ("instance", "class"):
                    self.named(what, callee.attr, depth=int(made))
                elif kind == "outside":
                    self.rule.refuse(decorator, "it calls " + self.rule.named(callee))
            return
        for kind, what in self.reach(callee):
            self.start((kind, what), decorator, int(made))
            if made and kind == "class":
                self.run_members(what, lambda name, _: name == "__call__", 0, True)

    def called(self, call):
        function, at = call.func, call
        if isinstance(function, ast.Attribute) and not self.rule.is_pure(function):
            for kind, what in self.reach(function.value):
                if kind in ("instance", "class"):
                    for method in self.methods.get(function.attr, []) if kind == "class" else []:
                        self.handed.ran(("with its object", id(method)))
                    self.named(what, function.attr)
                    self.stored(function.attr, at)
                elif kind == "outside" and function.attr not in QUIET_METHODS:
                    self.rule.refuse(at, "it calls " + self.rule.named(function))
        elif isinstance(function, ast.Name):
            for found in self.reach(function):
                self.start(found, at)
        for argument in called_arguments(call)[0]:
            for found in self.reach(argument):
                self.start(found, at)
        for argument in call.args + [keyword.value for keyword in call.keywords]:
            self.touch(argument, lambda *_: True)

    def is_enum(self, node, seen):
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - seen
        seen |= names
        whole = [self.rule.imported.get(name, "") for name in names]
        return any(one.split(".")[0] == "enum" for one in whole) or any(self.is_enum(v, seen) for name in names for v in self.bindings.get(name, []))

    def touch(self, node, chosen=lambda name, _: is_special(name) and name not in SILENT):
        """An operator, or a function that is not of the code, gets the value; a function may ask it for anything."""
        for kind, what in self.reach(node) if self.classes else []:
            if kind == "instance":
                self.run_members(what, chosen)
            elif kind == "class":
                self.named(what, "__class_getitem__", "__init_subclass__")
                for kind, meta in self.metaclasses(what):
                    if kind == "class":
                        self.operate(meta)

    def touched(self, node):
        for field in ("left", "right", "operand", "comparators", "values", "test", "iter", "ifs"):
            value = getattr(node, field, None)
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    self.touch(part)
        if isinstance(node, (ast.Subscript, ast.FormattedValue, ast.Starred)):
            self.touch(node.value)
        if isinstance(node, ast.Attribute):
            for kind, what in self.reach(node.value):
                for owner in [what] if kind == "instance" else [m for k, m in self.metaclasses(what) if k == "class"] if kind == "class" else []:
                    self.named(owner, "__getattr__", "__getattribute__")
                    self.run_members(owner, lambda name, made: name == node.attr and made)

    def run(self, function, depth=0, made=False):
        """The body of a function of the code runs; with a depth also those of the functions that it makes, which get what they decorate."""
        self.handed.ran((id(function), made))
        if (id(function), depth, made) not in self.done:
            self.done.add((id(function), depth, made))
            self.handed.under((id(function), made), lambda: Running(self, function, depth, made).check())
`;
