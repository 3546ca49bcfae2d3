"""Reads `{code, entryPoint, name, isProgram, mutantsMax}` from standard input and prints `{problems}`, or `{kind, entryPoint, contract,
uses, note, mutants}`. The code is parsed with Python's own parser and never run."""
import ast
import json
import sys

from contract import EMPTY, OPEN, contract_of, identifier
from mutants import mutants_of
from top_level import DEFINITIONS, bound_names, is_text, problems_of, top_level


class Refused(Exception):
    """The code can't be a skill. Its arguments are the problems."""


def problem(line, message):
    return {"line": line, "message": message}


def parsed(code):
    try:
        module = ast.parse(code)
        compile(code, "<skill>", "exec", dont_inherit=True)
        return module
    except (SyntaxError, ValueError) as error:
        message = "%s: %s" % (type(error).__name__, error.args[0] if error.args else error)
        raise Refused(problem(getattr(error, "lineno", None), "it does not parse: " + message))
    except (RecursionError, MemoryError):
        raise Refused(problem(None, "it does not parse: it is nested too deep"))


def used_skills(module):
    """Names of the skills that the code calls."""
    aliases, names = set(), []

    def refuse(node):
        raise Refused(problem(node.lineno, 'its import does not name the skills; write "from skills import NAME"'))

    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "skills":
            if node.module != "skills" or any(alias.name == "*" for alias in node.names):
                refuse(node)
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            if any(alias.name.startswith("skills.") for alias in node.names):
                refuse(node)
            aliases |= {alias.asname or "skills" for alias in node.names if alias.name == "skills"}
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            names.append(node.attr)
    return sorted(set(names))


def entry_point(nodes, request):
    """Name of the function to call, or None."""
    if request["isProgram"]:
        return None
    if request["entryPoint"]:
        return identifier(request["entryPoint"])
    names = list(dict.fromkeys(node.name for node in nodes if isinstance(node, DEFINITIONS)))
    if len(names) == 1:
        return names[0]
    if request["name"] in names:
        return request["name"]
    public = [name for name in names if not name.startswith("_")]
    if len(public) == 1:
        return public[0]
    if names:
        several = "it has several functions (%s) and no entry point" % ", ".join(names[:10])
        raise Refused(problem(None, several + "; name the entry point, or name one function like the skill"))
    return None


def answer(kind, entry, module, contract=None, note=""):
    empty = {**EMPTY, "docstring": ast.get_docstring(module) or ""}
    return {"kind": kind, "entryPoint": entry, "contract": contract or empty, "note": note}


def without_function(module, nodes, request):
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    harmless = (ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.If)
    if classes and not request["isProgram"] and all(isinstance(node, harmless) or is_text(node) for node in module.body):
        note = "it defines the class %s and no function, so it is a snippet: shown, never called" % classes[-1]
        return answer("snippet", None, module, note=note)
    return answer("program", None, module)


def with_function(module, nodes, entry):
    problems = problems_of(module)
    binding = [node for node in nodes if entry in bound_names(node)]
    node = binding[-1] if binding else None
    if isinstance(node, ast.AsyncFunctionDef):
        message = "%s is async, and a skill is called without an event loop; make it a plain function" % entry
        problems.append(problem(node.lineno, message))
    if node is None:
        names = [one.name for one in nodes if isinstance(one, DEFINITIONS)]
        has = "it has " + ", ".join(names[:10]) if names else "it has none"
        problems.append(problem(None, 'it has no function "%s" at its top level; %s' % (entry, has)))
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        node = node.value if isinstance(node.value, ast.Lambda) else None
    contract = OPEN
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        contract = contract_of(node, entry)
    if problems:
        raise Refused(*problems)
    if isinstance(node, ast.ClassDef):
        return answer("snippet", entry, module, note="%s is a class, so it is a snippet: shown, never called" % entry)
    return answer("function", entry, module, contract)


def inspected(request):
    code = request["code"].replace("\r\n", "\n").replace("\r", "\n")
    module = parsed(code)
    nodes = list(top_level(module.body))
    uses = used_skills(module)
    entry = entry_point(nodes, request)
    found = without_function(module, nodes, request) if entry is None else with_function(module, nodes, entry)
    mutants_max = 0 if found["kind"] == "snippet" else request["mutantsMax"]
    return {**found, "uses": uses, "mutants": mutants_of(code, module, entry, mutants_max) if mutants_max > 0 else []}


def inspect(request):
    try:
        return inspected(request)
    except Refused as refused:
        return {"problems": list(refused.args)}
    except RecursionError:
        return {"problems": [problem(None, "it is nested too deep to be read")]}


if __name__ == "__main__":
    print(json.dumps(inspect(json.load(sys.stdin))))
