/**
 * Python: `HandedOn`, what runs because of which expression, and which of it changes or asks what it was given. A function may do that
 * with what is of the code's own; nothing that others use as well may be handed to it while the code is loaded.
 */
export const HANDED_ON_PROGRAM = String.raw`
# Methods that texts have change nothing, and of modules nothing that acts is called so but replace.
READS = set(dir(str)) - {"replace"}
# These change their first argument.
CHANGES_FIRST = set(
    """functools.update_wrapper functools.total_ordering dataclasses.dataclass abc.update_abstractmethods enum.global_enum typing.final
    typing.override typing.no_type_check typing.runtime_checkable""".split()
)

def parameters_of(function):
    arguments = function.args
    return arguments.posonlyargs + arguments.args + arguments.kwonlyargs + [a for a in (arguments.vararg, arguments.kwarg) if a]

def body_of(function):
    return function.body if isinstance(function.body, list) else [function.body]

def local_names(function):
    names = {argument.arg for argument in parameters_of(function)}
    for node in outside_functions(body_of(function)):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.Global):
            names -= set(node.names)
    return names

def stored_in(node):
    """Targets of a statement or a part of one, what they are given, and whether it is that or something in it."""
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        return (node.targets if isinstance(node, ast.Assign) else [node.target]), node.value, False
    if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        return [node.target], node.iter, True
    return ([node.optional_vars] if node.optional_vars else [], node.context_expr, False) if isinstance(node, ast.withitem) else ([], None, False)

def stored_by_name(nodes):
    """Names that are bound, each with what it stands for; of what is taken apart it is something in that."""
    for node in nodes:
        targets, value, is_part = stored_in(node)
        for target in targets if value is not None else []:
            for name in stored_names(target):
                if isinstance(node, ast.AugAssign):
                    yield name, ast.List([value], ast.Load())
                else:
                    yield name, ast.Subscript(value, ast.Constant(0), ast.Load()) if is_part or not isinstance(target, ast.Name) else value

def kept_in_attributes(nodes):
    """Values that are stored as attributes, by the attribute's name; None is one that is only known when it runs."""
    for node in nodes:
        targets, value, _ = stored_in(node)
        for target in targets if value is not None else []:
            for part in ast.walk(target):
                if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load):
                    yield part.attr, value
        if isinstance(node, ast.Call) and len(node.args) > 1 and (dotted(node.func) or "").split(".")[-1] in ("setattr", "__setattr__"):
            yield node.args[-2].value if isinstance(node.args[-2], ast.Constant) else None, node.args[-1]

class Scopes:
    """Which names are a function's own or of those around it, and what is kept in attributes where."""
    def __init__(self, module):
        self.around, self.own_object, self.kept, self.of_value, self.fields = {}, {}, {}, {}, set()
        self.keep(outside_functions(module.body), frozenset())
        for node in ast.walk(module):
            if isinstance(node, DEFINITIONS + (ast.Lambda,)):
                names = frozenset(local_names(node)) | self.around.get(id(node), frozenset())
                nodes = list(outside_functions(body_of(node)))
                self.around.update({id(inner): names for inner in nodes if isinstance(inner, DEFINITIONS + (ast.Lambda,))})
                self.keep(nodes, names)
            elif isinstance(node, ast.ClassDef):
                for method in methods_of(node):
                    if method.args.posonlyargs + method.args.args and "staticmethod" not in map(dotted, method.decorator_list):
                        self.own_object[id(method)] = (method.args.posonlyargs + method.args.args)[0].arg
                # A dataclass is given them.
                self.fields |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)}
                for name, value in stored_by_name(outside_functions(node.body)):
                    self.kept.setdefault(name, []).append(value)

    def keep(self, nodes, names):
        for name, value in kept_in_attributes(nodes):
            self.kept.setdefault(name, []).append(value)
            self.of_value[id(value)] = names

class HandedOn:
    def __init__(self, rule):
        self.rule, self.by, self.runs, self.changing, self.sites = rule, [None], {}, set(), []

    def ran(self, what):
        self.runs.setdefault(what, []).append(self.by[-1])

    def under(self, what, do):
        self.by.append(what)
        do()
        self.by.pop()

    def site(self, node, parts, holds_foreign, do, hands_on=False):
        """What is done is done because of this expression, and gets its parts; it hands on where what the function has is among those."""
        if hands_on:
            self.ran(("site", id(node)))
        self.under(("site", id(node)), do)
        self.sites.append((node, parts, holds_foreign))

    def check(self):
        left, changing = list(self.changing), set()
        while left:
            what = left.pop()
            if what not in changing:
                changing.add(what)
                left.extend(self.runs.get(what, []))
        for node, parts, holds_foreign in self.sites:
            if ("site", id(node)) in changing:
                for part in parts:
                    if holds_foreign(part):
                        self.rule.refuse(node, "it hands %s to code that changes it or calls its methods" % said(part))
`;
