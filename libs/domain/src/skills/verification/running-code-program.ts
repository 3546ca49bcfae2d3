/**
 * Python: `Running(own, function, depth).check()` holds the body of one function, which runs while the code is loaded, to the rule: it
 * may compute and keep, name nothing that acts outside, and call nothing that it was given. `OWN_CODE_PROGRAM` tells which bodies run.
 */
export const RUNNING_CODE_PROGRAM = String.raw`
class Running:
    """One function of the code while the code is loaded: it may compute and keep, and reach nothing outside."""
    def __init__(self, own, function, depth):
        self.own, self.rule, self.depth, self.made, self.bound = own, own.rule, depth, {}, {}
        self.body = function.body if isinstance(function.body, list) else [function.body]
        arguments = function.args
        every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs + [a for a in (arguments.vararg, arguments.kwarg) if a]
        self.locals = {argument.arg for argument in every}
        for node in outside_functions(self.body):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self.locals.add(node.id)
            elif isinstance(node, ast.Assign):
                for name in [name for target in node.targets for name in stored_names(target)]:
                    self.bound.setdefault(name, []).append(node.value)
            elif isinstance(node, DEFINITIONS):
                self.locals.add(node.name)
                self.made[node.name] = node

    def check(self):
        for node in self.body:
            self.visit(node)
        if self.depth > 0:
            for function in self.made.values():
                self.own.run(function, self.depth - 1)

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
        if isinstance(node, ast.Call):
            self.call(node.func, node)
            for argument in called_arguments(node)[0]:
                self.call_back(argument, node)
        self.own.touched(node)
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def is_outside(self, node):
        if self.rule.root(node) in self.locals | {None} or dotted(node) in QUIET_CALLS:
            return False
        outside = [what for kind, what in self.own.reach(node) if kind == "outside" and what not in ACTIVE]
        if outside:
            self.rule.refuse(node, "it uses " + outside[0])
        return bool(outside)

    def change(self, owner, at):
        """What was given it may change: that is what decorators and constructors do."""
        given = [value for part in ast.walk(owner) if isinstance(part, ast.Name) for value in self.bound.get(part.id, [])]
        if any(self.rule.is_foreign(value, self.locals) for value in [owner] + given):
            self.rule.refuse(at, "it changes " + (dotted(owner) or "what is not its own"))

    def call_back(self, argument, at):
        if called_arguments(at)[1] or isinstance(argument, ast.Lambda):
            self.call(argument, at)

    def call(self, function, at):
        name, root = dotted(function), self.rule.root(function)
        if isinstance(function, ast.Lambda):
            self.own.run(function)
        elif isinstance(function, ast.Name) and name in self.made:
            self.own.run(self.made[name])
        elif isinstance(function, ast.Name) and name in self.locals:
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
        owned = [m for owners in self.own.classes.values() for owner in owners for m in methods_of(owner) if m.name == function.attr]
        base = dotted(function.value.func) if isinstance(function.value, ast.Call) else dotted(function.value)
        if is_special(function.attr) and base not in ("super", "type", "object") and not owned:
            return self.rule.refuse(at, "it calls " + self.rule.named(function))
        for method in owned:
            self.own.run(method)
        if not isinstance(function.value, (ast.Constant, ast.JoinedStr)):
            self.own.stored(function.attr, None if owned else at)
        if self.rule.root(function) not in self.locals and function.attr not in QUIET_METHODS:
            if any(kind == "outside" for kind, _ in self.own.reach(function.value)):
                self.rule.refuse(at, "it calls " + self.rule.named(function))
`;
