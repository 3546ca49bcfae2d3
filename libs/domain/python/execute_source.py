"""Runs source as `__main__` and returns the value of its last expression, as a notebook does."""


def __etude_execute__(source, loaded):
    """`loaded` holds names of functions in the module `skills`. The source can call them by these names."""
    import ast, importlib, linecache, sys, traceback, types

    name = "code.py"
    module = types.ModuleType("__main__")
    module.__file__ = name
    sys.modules["__main__"] = module
    scope = module.__dict__
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)

    def failed(error):
        trace, line = error.__traceback__, None
        while trace is not None and trace.tb_frame.f_code.co_filename != name:
            trace = trace.tb_next
        step = trace
        while step is not None:
            if step.tb_frame.f_code.co_filename == name:
                line = step.tb_lineno
            step = step.tb_next
        if isinstance(error, SyntaxError) and error.filename == name:
            line = error.lineno
        traceback.print_exception(type(error), error, trace)
        message = str(error)[:4000].encode("utf-8", "backslashreplace").decode("utf-8")
        return {"error": {"type": type(error).__name__, "message": message, "line": line}}

    try:
        if loaded:
            functions = importlib.import_module("skills")
            scope.update({one: getattr(functions, one) for one in loaded})
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec", dont_inherit=True), scope)
        if last is None:
            return {}
        value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), scope)
        return {} if value is None else {"value": value}
    except SystemExit as error:
        if error.code in (None, 0):
            return {}
        return failed(error)
    except Exception as error:
        return failed(error)
