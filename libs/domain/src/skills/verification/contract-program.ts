/**
 * Python: `contract_of(function)` reads parameters, JSON Schemas, signature and docstring from a definition, and
 * `used_skills(module, problems)` the names of the skills that the code calls. Nothing is run.
 */
export const CONTRACT_PROGRAM = String.raw`
SIMPLE = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null"}
LISTS = {"list", "List", "Sequence", "MutableSequence", "Iterable", "Collection", "deque", "Deque", "Iterator", "Generator"}
SETS = {"set", "Set", "frozenset", "FrozenSet", "AbstractSet", "MutableSet"}
DICTS = {"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict", "Counter"}
WRAPPERS = {"Annotated", "Final", "Required", "NotRequired", "ClassVar"}
EXACT_INT = 2**53
# To JavaScript no key like others: who calls a skill could not give it.
UNNAMEABLE = "__proto__"

def last_name(node):
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None

def unquoted(node):
    """An annotation that is written as a text, read."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError):
            return ast.Name(id="Any", ctx=ast.Load())
    return node

def type_text(node):
    return "" if node is None else ast.unparse(unquoted(node))

def any_of(schemas):
    distinct = []
    for schema in schemas:
        if schema == {}:
            return {}
        if schema not in distinct:
            distinct.append(schema)
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}

def is_json(value):
    if isinstance(value, (list, tuple)):
        return all(is_json(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and key != UNNAMEABLE and is_json(item) for key, item in value.items())
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return True
    if isinstance(value, int):
        return -EXACT_INT <= value <= EXACT_INT
    return isinstance(value, float) and value == value and abs(value) != float("inf")

def literal_schema(values):
    try:
        found = [ast.literal_eval(value) for value in values]
    except (ValueError, TypeError):
        return {}
    return {"enum": found} if found and all(is_json(value) for value in found) else {}

def schema_of(node, returned=False):
    """JSON Schema of a type; {} where Python's words say nothing that JSON knows. A result is described as who uses the skill gets it: see plain-value.ts."""
    node = unquoted(node)
    if node is None:
        return {}
    if isinstance(node, ast.Constant) and node.value is None:
        return {"type": "null"}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return any_of([schema_of(node.left, returned), schema_of(node.right, returned)])
    name, parts = last_name(node), []
    if isinstance(node, ast.Subscript):
        name = last_name(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name in SIMPLE:
        return {"type": SIMPLE[name]}
    if name in WRAPPERS and parts:
        return schema_of(parts[0], returned)
    if name == "Optional" and parts:
        return any_of([schema_of(parts[0], returned), {"type": "null"}])
    if name == "Union":
        return any_of([schema_of(part, returned) for part in parts])
    if name == "Literal":
        return literal_schema(parts)
    return container_schema(name, parts, returned)

def array(part, returned, **more):
    items = schema_of(part, returned) if part is not None else {}
    return {"type": "array", **({"items": items} if items else {}), **more}

def container_schema(name, parts, returned):
    if name in ("Iterator", "Generator") and returned:
        return {}
    if name in LISTS:
        return array(parts[0] if parts else None, returned)
    if name in SETS:
        return array(parts[0] if parts else None, returned, uniqueItems=True)
    if name in ("tuple", "Tuple"):
        if not parts or isinstance(parts[-1], ast.Constant) and parts[-1].value is ...:
            return array(parts[0] if len(parts) == 2 else None, returned)
        return {"type": "array", "prefixItems": [schema_of(part, returned) for part in parts], "minItems": len(parts), "maxItems": len(parts)}
    if name in DICTS:
        key = last_name(unquoted(parts[0])) if parts else None
        values = schema_of(parts[1], returned) if len(parts) == 2 else {}
        whole = {"type": "object", **({"additionalProperties": values} if values else {})}
        return any_of([whole, array_of_pairs(parts, values)]) if returned and key != "str" else whole
    if returned and name in ("bytes", "bytearray"):
        return {"type": "string", "contentEncoding": "base64"}
    if returned and name == "complex":
        return {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    return {}

def array_of_pairs(parts, values):
    """A dictionary whose keys are not all texts."""
    keys = schema_of(parts[0], True) if parts else {}
    return {"type": "array", "items": {"type": "array", "prefixItems": [keys, values], "minItems": 2, "maxItems": 2}}

def identifier(name):
    """As Python reads it in code."""
    return unicodedata.normalize("NFKC", name)

def described(docstring):
    """Descriptions of parameters by name, from docstrings in Google's, NumPy's or reST's style."""
    found = {}
    # Letters with their accents, so that they match as letters.
    lines = unicodedata.normalize("NFC", docstring).split("\n")
    def note(name, text):
        name = identifier(name.strip().lstrip("*"))
        if name and name not in found:
            found[name] = " ".join(text.split())
    field = re.compile(r"^\s*:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
    google = re.compile(r"^(\s*)\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
    numpy = re.compile(r"^(\s*)(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
    indent = lambda line: len(line) - len(line.lstrip())
    def below(start, depth):
        """Lines behind this one that are indented deeper."""
        taken = []
        for line in lines[start:]:
            if line.strip() and indent(line) <= depth:
                break
            taken.append(line)
        return " ".join(taken)
    at = 0
    while at < len(lines):
        line = lines[at]
        match = field.match(line)
        if match:
            note(match[1], match[2] + " " + below(at + 1, indent(line)))
        title = line.strip().lower()
        if title in ("args:", "arguments:", "parameters:", "params:", "keyword args:", "keyword arguments:"):
            depth, inner, at = indent(line), None, at + 1
            while at < len(lines) and (not lines[at].strip() or indent(lines[at]) > depth):
                inner = indent(lines[at]) if inner is None and lines[at].strip() else inner
                match = google.match(lines[at])
                if match and indent(lines[at]) == inner:
                    note(match[2], match[3] + " " + below(at + 1, inner))
                at += 1
            continue
        if title in ("parameters", "other parameters") and at + 1 < len(lines) and re.match(r"^\s*-{3,}\s*$", lines[at + 1]):
            depth, at = indent(line), at + 2
            while at < len(lines) and not (at + 1 < len(lines) and re.match(r"^\s*-{3,}\s*$", lines[at + 1])):
                match = numpy.match(lines[at])
                if match and indent(lines[at]) == depth:
                    for name in match[2].split(","):
                        note(name, below(at + 1, depth))
                at += 1
            continue
        at += 1
    return found

def parameter_of(argument, default, descriptions):
    parameter = {"name": argument.arg, "type": type_text(argument.annotation), "description": descriptions.get(argument.arg, ""), "required": default is None}
    if default is not None:
        try:
            value = ast.literal_eval(default)
            fits = is_json(value)
        except (ValueError, TypeError, RecursionError, MemoryError):
            fits = False
        if fits:
            parameter["defaultValue"] = value
        else:
            parameter["description"] = (parameter["description"] + " Default: " + ast.unparse(default)[:200]).strip()
    return parameter

def parameters_text(args):
    """As the style guide of Python writes them: ast.unparse leaves the spaces around "=" out, also behind an annotation."""
    def text(argument, default=None):
        annotation = "" if argument.annotation is None else ": " + ast.unparse(argument.annotation)
        equals = " = " if annotation else "="
        return argument.arg + annotation + ("" if default is None else equals + ast.unparse(default))
    by_place = args.posonlyargs + args.args
    defaults = [None] * (len(by_place) - len(args.defaults)) + args.defaults
    parts = [text(argument, default) for argument, default in zip(by_place, defaults)]
    if args.posonlyargs:
        parts.insert(len(args.posonlyargs), "/")
    if args.vararg is not None:
        parts.append("*" + text(args.vararg))
    elif args.kwonlyargs:
        parts.append("*")
    parts += [text(argument, default) for argument, default in zip(args.kwonlyargs, args.kw_defaults)]
    if args.kwarg is not None:
        parts.append("**" + text(args.kwarg))
    return ", ".join(parts)

def contract_of(function):
    args = function.args
    docstring = (ast.get_docstring(function) if not isinstance(function, ast.Lambda) else None) or ""
    descriptions = described(docstring)
    positional, by_place = args.posonlyargs + args.args, {argument.arg for argument in args.posonlyargs}
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    follow = [(args.vararg, ast.List(elts=[], ctx=ast.Load()))] if args.vararg else []
    pairs = list(zip(positional, defaults)) + follow + list(zip(args.kwonlyargs, args.kw_defaults))
    parameters, properties = [], {}
    for argument, default in pairs:
        if argument.arg == UNNAMEABLE:
            problems.append({"line": argument.lineno, "message": "it has a parameter called \"__proto__\", which JSON objects of JavaScript have no place for; give it another name"})
        parameter = parameter_of(argument, default, descriptions)
        schema = dict(schema_of(argument.annotation))
        if argument.arg in by_place:
            parameter["passed"] = "position"
        if argument is args.vararg:
            parameter["passed"] = "rest"
            parameter["type"] = "list[%s]" % parameter["type"] if parameter["type"] else "list"
            schema = array(argument.annotation, False)
        if parameter["description"]:
            schema["description"] = parameter["description"]
        if "defaultValue" in parameter:
            schema["default"] = parameter["defaultValue"]
        parameters.append(parameter)
        properties[argument.arg] = schema
    schema = {"type": "object", "properties": properties, "required": [p["name"] for p in parameters if p["required"]]}
    others = False if args.kwarg is None else schema_of(args.kwarg.annotation)
    if others != {}:
        schema["additionalProperties"] = others
    returns = None if isinstance(function, ast.Lambda) else function.returns
    result = schema_of(returns, True) if returns is not None else {}
    name = request["entryPoint"] if isinstance(function, ast.Lambda) else function.name
    signature = "def %s(%s)%s" % (name, parameters_text(args), "" if returns is None else " -> " + type_text(returns))
    return {"parameters": parameters, "inputSchema": schema, "outputSchema": result or None, "signature": signature, "docstring": docstring}

def used_skills(module, problems):
    aliases, names = set(), []
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "skills":
            if node.module != "skills" or any(alias.name == "*" for alias in node.names):
                problems.append({"line": node.lineno, "message": "it imports skills in a way that does not say which; write \"from skills import NAME\""})
            else:
                names += [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "skills":
                    aliases.add(alias.asname or "skills")
                elif alias.name.startswith("skills."):
                    problems.append({"line": node.lineno, "message": "it imports skills in a way that does not say which; write \"from skills import NAME\""})
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            names.append(node.attr)
    return sorted(set(names))
`;
