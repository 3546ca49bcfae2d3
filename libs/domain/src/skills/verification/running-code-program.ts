/**
 * Python: `Running(own, function, depth).check()` holds the body of one function, which runs while the code is loaded, to the rule: it
 * may compute and keep, name nothing that acts outside, and call nothing that it was given. `OWN_CODE_PROGRAM` tells which bodies run.
 */
export const RUNNING_CODE_PROGRAM = String.raw`
class Running:
    """One function of the code while the code is loaded: it may compute and keep, and reach nothing outside."""
    def __init__(self, own, function, depth, made):
        self.own, self.rule, self.function, self.depth, self.key = own, own.rule, function, depth, (id(function), made)
        self.body = body_of(function)
        nodes = list(outside_functions(self.body))
        self.made = {node.name: node for node in nodes if isinstance(node, DEFINITIONS)}
        self.locals = local_names(function)
        self.around = own.scopes.around.get(id(function), frozenset()) - self.locals
        self.object = own.scopes.own_object.get(id(function))
        # What a function that was made for that decorates is of the code's own.
        self.given = self.around | (set() if made else {argument.arg for argument in parameters_of(function)} - {self.object})
        self.bound = {}
        for name, value in list(stored_by_name(nodes)) + self.defaults():
            self.bound.setdefault(name, []).append(value)

    def defaults(self):
        arguments = self.function.args
        last = (arguments.posonlyargs + arguments.args)[-len(arguments.defaults) :] if arguments.defaults else []
        named = [(argument, value) for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults) if value is not None]
        return [(argument.arg, value) for argument, value in list(zip(last, arguments.defaults)) + named]

    def check(self):
        for node in self.body:
            self.visit(node)
        if self.depth > 0:
            for function in self.made.values():
                self.own.run(function, self.depth - 1, True)

    def visit(self, node):
        if isinstance(node, DEFINITIONS):
            for decorator in node.decorator_list:
                if not isinstance(decorator, ast.Call):
                    self.call(decorator, decorator)
                self.visit(decorator)
            for default in self.rule.defaults(node.args):
                self.visit(default)
            return
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.ClassDef):
            return self.rule.statement(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
                if name.split(".")[0] not in PURE_MODULES:
                    self.rule.refuse(node, "it imports " + name)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and self.is_outside(node):
            return
        if self.rule.is_target(node):
            self.change(node.value, node)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.change(node.target, node)
        parts = self.rule.handed_by(node)
        names = {part.id for value in parts for part in ast.walk(value) if isinstance(part, ast.Name)}
        self.rule.handed.site(node, parts, self.holds_foreign, lambda: self.run_by(node), bool(names & (self.locals | self.around)))
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def run_by(self, node):
        if isinstance(node, ast.Call):
            self.call(node.func, node)
            for argument in called_arguments(node)[0]:
                self.call_back(argument, node)
        self.own.touched(node)

    def is_outside(self, node):
        if self.rule.root(node) in self.locals | {None} or dotted(node) in QUIET_CALLS:
            return False
        outside = [what for kind, what in self.own.reach(node) if kind == "outside" and what not in ACTIVE]
        if outside:
            self.rule.refuse(node, "it uses " + outside[0])
        return bool(outside)

    def change(self, owner, at):
        """What was given it may change: that is what decorators and constructors do."""
        if any(self.rule.is_foreign(value, self.locals | self.around) for value in self.values_of(owner)):
            self.rule.refuse(at, "it changes " + (dotted(owner) or said(owner)))
        self.ask(owner)

    def ask(self, owner):
        """Something is changed, or a method of it is called."""
        if self.is_given(owner):
            self.rule.handed.changing.add(self.key)
        elif self.object in {part.id for part in ast.walk(owner) if isinstance(part, ast.Name)}:
            self.rule.handed.changing.add(("with its object", id(self.function)))

    def values_of(self, node):
        """An expression, and what its names stand for here."""
        found, seen = [node], set()
        for value in found:
            names = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)} - seen
            seen |= names
            found += [bound for name in names for bound in self.bound.get(name, [])]
        return found

    def holds_foreign(self, node):
        return any(self.rule.holds_foreign(value, self.locals | self.around) for value in self.values_of(node))

    def is_given(self, node, deep=False, seen=frozenset()):
        """Whether it may be what the function was given; deep: or have that in it."""
        if isinstance(node, ast.Name):
            bound = self.bound.get(node.id, []) if node.id not in seen else []
            return node.id in self.given or any(self.is_given(value, deep, seen | {node.id}) for value in bound)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            return dotted(node.func.value.func) != "super" and self.is_given(node.func.value, deep, seen)
        if isinstance(node, (ast.List, ast.Dict, ast.Set, ast.Tuple)) or isinstance(node, ast.Call) and self.rule.is_new(node):
            return deep and any(self.is_given(child, deep, seen) for child in ast.iter_child_nodes(node))
        if isinstance(node, ast.Attribute) and self.own.keeps_given(node.attr, deep):
            return True
        deep = deep or isinstance(node, (ast.Attribute, ast.Subscript, ast.Call))
        return any(self.is_given(child, deep, seen) for child in ast.iter_child_nodes(node))

    def call_back(self, argument, at):
        if called_arguments(at)[1] or isinstance(argument, ast.Lambda):
            self.call(argument, at)

    def call(self, function, at):
        name = dotted(function)
        if self.rule.whole(function) in CHANGES_FIRST and isinstance(at, ast.Call):
            for part in given(at):
                self.change(part, at)
        if isinstance(function, ast.Lambda):
            self.own.run(function)
        elif isinstance(function, ast.Name) and name in self.made:
            self.own.run(self.made[name])
        elif isinstance(function, ast.Name) and (name in self.locals or name in self.around and not self.own.reach(function)):
            self.rule.refuse(at, "it calls %s()" % name)
        elif isinstance(function, ast.Name):
            if name in ("setattr", "delattr") and isinstance(at, ast.Call) and at.args:
                self.change(at.args[0], at)
            for found in self.own.reach(function):
                if name not in QUIET_CALLS:
                    self.own.start(found, at)
        elif isinstance(function, ast.Attribute):
            self.call_method(function, at)
        elif not isinstance(function, ast.Constant):
            self.rule.refuse(at, "it calls something")

    def call_method(self, function, at):
        if self.rule.is_pure(function):
            return
        if function.attr not in READS:
            self.ask(function.value)
        owned = [m for owners in self.own.classes.values() for owner in owners for m in methods_of(owner) if m.name == function.attr]
        base = dotted(function.value.func) if isinstance(function.value, ast.Call) else dotted(function.value)
        if is_special(function.attr) and base not in ("super", "type", "object") and not owned:
            return self.rule.refuse(at, "it calls " + self.rule.named(function))
        if function.attr in ("__setattr__", "__delattr__") and base in ("type", "object") and isinstance(at, ast.Call) and at.args:
            self.change(at.args[0], at)
        for method in owned:
            self.own.run(method)
            if base != self.object and base != "super":
                self.rule.handed.ran(("with its object", id(method)))
        if not isinstance(function.value, (ast.Constant, ast.JoinedStr)):
            self.own.stored(function.attr, None if owned else at)
        if self.rule.root(function) not in self.locals and function.attr not in QUIET_METHODS:
            if any(kind == "outside" for kind, _ in self.own.reach(function.value)):
                self.rule.refuse(at, "it calls " + self.rule.named(function))
`;
