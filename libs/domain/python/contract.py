"""The contract of a function, read from its definition: parameters, JSON Schemas, signature and docstring. Nothing is run."""
import ast
import re
import textwrap
import unicodedata

SIMPLE = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null"}
LISTS = {"list", "List", "Sequence", "MutableSequence", "Iterable", "Collection", "deque", "Deque", "Iterator", "Generator"}
SETS = {"set", "Set", "frozenset", "FrozenSet", "AbstractSet", "MutableSet"}
DICTS = {"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict", "Counter"}
WRAPPERS = {"Annotated", "Final", "Required", "NotRequired", "ClassVar"}
EXACT_INT = 2**53
EMPTY = {
    "parameters": [],
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    "outputSchema": None,
    "signature": "",
}
# The contract of an entry point that is not a definition, such as an alias. It takes any arguments.
OPEN = {**EMPTY, "inputSchema": {"type": "object"}, "docstring": ""}


def last_name(node):
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def unquoted(node):
    """The parsed form of an annotation that is written as a text."""
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
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
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
    """The JSON Schema of a type, or {} if JSON has no such type. Returned values are described in the form that callers get: see `plainValue`."""
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


def pair(first, second):
    return {"type": "array", "prefixItems": [first, second], "minItems": 2, "maxItems": 2}


def container_schema(name, parts, returned):
    first = parts[0] if parts else None
    if name in LISTS:
        return {} if returned and name in ("Iterator", "Generator") else array(first, returned)
    if name in SETS:
        return array(first, returned, uniqueItems=True)
    if name in ("tuple", "Tuple"):
        if not parts or isinstance(parts[-1], ast.Constant) and parts[-1].value is ...:
            return array(first if len(parts) == 2 else None, returned)
        return {"type": "array", "prefixItems": [schema_of(part, returned) for part in parts], "minItems": len(parts), "maxItems": len(parts)}
    if name in DICTS:
        values = schema_of(parts[1], returned) if len(parts) == 2 else {}
        whole = {"type": "object", **({"additionalProperties": values} if values else {})}
        if not returned or last_name(unquoted(first)) == "str":
            return whole
        # A dictionary with other keys than texts is returned as a list of pairs.
        return any_of([whole, {"type": "array", "items": pair(schema_of(first, True), values)}])
    if returned and name in ("bytes", "bytearray"):
        return {"type": "string", "contentEncoding": "base64"}
    if returned and name == "complex":
        return {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    return {}


def identifier(name):
    """A name in the normal form that Python's parser gives it."""
    return unicodedata.normalize("NFKC", name)


def described(docstring):
    """Descriptions by parameter, from the `Args:` section of a docstring."""
    text = unicodedata.normalize("NFC", docstring)
    section = re.search(r"^([ \t]*)(?:args|arguments|parameters|params):[ \t]*\n((?:\1[ \t]+.*\n?|[ \t]*\n)*)", text, re.I | re.M)
    if not section:
        return {}
    lines = textwrap.dedent(section[2])
    entries = re.findall(r"^\*{0,2}(\w+)[ \t]*(?:\([^)]*\)[ \t]*)?:((?:.*\n?)(?:[ \t]+.*\n?|[ \t]*\n)*)", lines, re.M)
    return {identifier(name): " ".join(words.split()) for name, words in entries}


def parameter_of(argument, default, descriptions):
    parameter = {
        "name": argument.arg,
        "type": type_text(argument.annotation),
        "description": descriptions.get(argument.arg, ""),
        "required": default is None,
    }
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


def contract_of(function, name):
    args, is_lambda = function.args, isinstance(function, ast.Lambda)
    docstring = "" if is_lambda else ast.get_docstring(function) or ""
    returns = None if is_lambda else function.returns
    descriptions = described(docstring)
    positional = args.posonlyargs + args.args
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    rest = [(args.vararg, ast.List(elts=[], ctx=ast.Load()))] if args.vararg else []
    parameters, properties = [], {}
    for argument, default in list(zip(positional, defaults)) + rest + list(zip(args.kwonlyargs, args.kw_defaults)):
        parameter = parameter_of(argument, default, descriptions)
        schema = dict(schema_of(argument.annotation))
        if argument in args.posonlyargs:
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
    signature = "def %s(%s)%s" % (name, ast.unparse(args), "" if returns is None else " -> " + type_text(returns))
    result = schema_of(returns, True) if returns is not None else {}
    return {"parameters": parameters, "inputSchema": schema, "outputSchema": result or None, "signature": signature, "docstring": docstring}
