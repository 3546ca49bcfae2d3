import type { SandboxRun } from '@etude/contracts/sandbox';
import { z } from 'zod';

/** Reads `{code, entryPoint}` and prints `{error}` or `{copies}`. It parses the code and never runs it. */
const PROGRAM = String.raw`
import ast, copy, json, sys

request = json.load(sys.stdin)
code, entry = request["code"], request["entryPoint"]

def answer(**fields):
    print(json.dumps(fields))
    sys.exit(0)

try:
    tree = ast.parse(code)
    compile(code, "<skill>", "exec", dont_inherit=True)
except (SyntaxError, ValueError) as error:
    line = getattr(error, "lineno", None)
    answer(error=f"{type(error).__name__}: {error.args[0] if error.args else error}" + (f", line {line}" if line else ""))

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

def target_of(module):
    """The part to break: the entry point's last definition, else the whole module."""
    named = [node for node in module.body if isinstance(node, FUNCTIONS) and node.name == entry]
    return named[-1] if named else module

def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

def spots(part, wanted):
    """Nodes in the order of the source, without docstrings and without what only runs outside of the tests."""
    skipped = {id(node.value) for node in ast.walk(part) if is_text(node)}
    found = [node for node in ast.walk(part) if id(node) not in skipped and wanted(node)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))

def replace(module, old, new):
    class Swap(ast.NodeTransformer):
        def visit(self, node):
            return ast.copy_location(new, node) if node is old else super().generic_visit(node)
    return ast.fix_missing_locations(Swap().visit(module))

def is_number(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)

def is_print(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in ("print", "sys.stdout.write", "stdout.write")

OPPOSITE = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.Add}

def answers_nothing(module):
    if entry is None:
        return ast.Module(body=[ast.Pass()], type_ignores=[])
    part = target_of(module)
    if part is module:
        module.body += ast.parse(f"{entry} = lambda *args, **kwargs: None").body
    else:
        part.body = [ast.Return(value=ast.Constant(value=None))]
    return module

def drops_last_print(module):
    found = spots(target_of(module), is_print)
    return replace(module, found[-1], ast.Pass()) if found else None

def negates_comparison(module):
    found = spots(target_of(module), lambda node: isinstance(node, ast.Compare))
    return replace(module, found[0], ast.UnaryOp(op=ast.Not(), operand=copy.deepcopy(found[0]))) if found else None

def changes_constant(module):
    found = spots(target_of(module), is_number)
    return replace(module, found[-1], ast.Constant(value=found[-1].value + 1)) if found else None

def turns_operator(module):
    found = spots(target_of(module), lambda node: isinstance(node, ast.BinOp) and type(node.op) in OPPOSITE)
    if not found:
        return None
    found[0].op = OPPOSITE[type(found[0].op)]()
    return module

whole = ast.unparse(tree)
copies = []
for make in (answers_nothing, drops_last_print, negates_comparison, changes_constant, turns_operator):
    broken = make(copy.deepcopy(tree))
    text = None if broken is None else ast.unparse(ast.fix_missing_locations(broken))
    if text is not None and text != whole:
        copies.append({"what": make.__name__.replace("_", " "), "code": text})
answer(copies=copies)
`;

const Output = z.union([
  z.strictObject({ error: z.string() }),
  z.strictObject({ copies: z.array(z.strictObject({ what: z.string(), code: z.string() })) }),
]);
export type BrokenCopies = z.infer<typeof Output>;

/** A trusted program that parses the code with Python's own parser and breaks it on purpose, in up to five ways. */
export function breakingRun(code: string, entryPoint: string | null): SandboxRun {
  return { kind: 'program', code: PROGRAM, stdin: JSON.stringify({ code, entryPoint }) };
}

/** What `breakingRun` printed; `error` where the code does not parse. null where the output is not its own. */
export function readBrokenCopies(stdout: string): BrokenCopies | null {
  try {
    return Output.parse(JSON.parse(stdout));
  } catch {
    return null;
  }
}
