import { CONTRACT_PROGRAM } from './contract-program.js';
import { HANDED_ON_PROGRAM } from './handed-on-program.js';
import { IMPORT_RULE_PROGRAM } from './import-rule-program.js';
import { MUTANTS_PROGRAM } from './mutants-program.js';
import { OWN_CODE_PROGRAM } from './own-code-program.js';
import { RUNNING_CODE_PROGRAM } from './running-code-program.js';

const READING = String.raw`
import ast, builtins, json, re, sys, unicodedata

request = json.load(sys.stdin)
code = request["code"].replace("\r\n", "\n").replace("\r", "\n")
problems = []

def answer(**fields):
    print(json.dumps(fields))
    sys.exit(0)

def parsed():
    try:
        module = ast.parse(code)
        compile(code, "<skill>", "exec", dont_inherit=True)
        return module
    except (SyntaxError, ValueError) as error:
        message = "%s: %s" % (type(error).__name__, error.args[0] if error.args else error)
        answer(problems=[{"line": getattr(error, "lineno", None), "message": "it does not parse: " + message}])
    except (RecursionError, MemoryError):
        answer(problems=[{"line": None, "message": "it does not parse: it is nested too deep"}])
`;

const ANSWERING = String.raw`
def top_level(body):
    """Statements that bind names when the code is loaded, also behind conditions; what only a script does is left out."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from top_level(node.orelse if is_main_guard(node.test) else node.body + node.orelse)
        elif isinstance(node, ast.Try):
            yield from top_level(node.body + [s for handler in node.handlers for s in handler.body] + node.orelse + node.finalbody)

def bound(name, nodes):
    """The last statement that binds the name."""
    def binds(node):
        if isinstance(node, DEFINITIONS + (ast.ClassDef,)):
            return node.name == name
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return any(isinstance(target, ast.Name) and target.id == name for target in targets)
        return False
    found = [node for node in nodes if binds(node)]
    return found[-1] if found else None

def entry_point(nodes):
    """Name of the function to call; None: there is none."""
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
        problems.append({"line": None, "message": "it has several functions (%s) and none is named as the one to call; give the entry point, or give one of them the skill's name" % ", ".join(names[:10])})
    return None

def look():
    module = parsed()
    nodes = list(top_level(module.body))
    uses = used_skills(module, problems)
    entry = request["entryPoint"] = entry_point(nodes)
    if problems:
        answer(problems=problems)
    if entry is None:
        classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
        if classes and not request["isProgram"] and all(isinstance(node, (ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.If)) or is_text(node) for node in module.body):
            return found("snippet", None, None, uses, "it defines the class %s and no function, so it is a snippet: shown, never called" % classes[-1], module)
        return found("program", None, None, uses, "", module)
    at_import(module, problems)
    node = bound(entry, nodes)
    if isinstance(node, ast.AsyncFunctionDef):
        problems.append({"line": node.lineno, "message": "%s is async, and a skill is called without an event loop; make it a plain function" % entry})
    if node is None:
        names = [n.name for n in nodes if isinstance(n, DEFINITIONS)]
        has = "it has " + ", ".join(names[:10]) if names else "it has none"
        problems.append({"line": None, "message": "it has no function \"%s\" at its top level; %s" % (entry, has)})
    if problems:
        answer(problems=problems)
    if isinstance(node, ast.ClassDef):
        return found("snippet", entry, None, uses, "%s is a class, so it is a snippet: shown, never called" % entry, module)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        node = node.value if isinstance(node.value, ast.Lambda) else None
    contract = contract_of(node) if node is not None else {"parameters": [], "inputSchema": {"type": "object"}, "outputSchema": None, "signature": "", "docstring": ""}
    if problems:
        answer(problems=problems)
    return found("function", entry, contract, uses, "", module)

def found(kind, entry, contract, uses, note, module):
    text = ast.get_docstring(module) or ""
    empty = {"parameters": [], "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False}, "outputSchema": None, "signature": "", "docstring": text}
    mutants = mutants_of(code, module, request["mutantsMax"]) if request["mutantsMax"] > 0 and kind != "snippet" else []
    answer(kind=kind, entryPoint=entry, contract=contract or empty, uses=uses, note=note, mutants=mutants)

try:
    look()
except RecursionError:
    answer(problems=[{"line": None, "message": "it is nested too deep to be read"}])
`;

/**
 * A trusted program that reads `{code, entryPoint, name, isProgram, mutantsMax}` and prints `{problems}`, or `{kind, entryPoint,
 * contract, uses, note, mutants}`. It parses the code with Python's own parser and never runs it.
 */
export const INSPECT_PROGRAM = `${READING}${IMPORT_RULE_PROGRAM}${OWN_CODE_PROGRAM}${RUNNING_CODE_PROGRAM}${HANDED_ON_PROGRAM}${CONTRACT_PROGRAM}${MUTANTS_PROGRAM}${ANSWERING}`;
