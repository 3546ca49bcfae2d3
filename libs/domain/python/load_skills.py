"""Loads each skill in its own module, where `import skills` finds the versions that it was verified with.

Two skills may have been verified with different versions of a third. `import` takes `__import__` from the builtins of a module, also inside
functions, so each module gets its own builtins.
"""
import builtins
import linecache
import sys
import types


def skills_of(sees, entries):
    module = types.ModuleType("skills", "Skills, each with those that it was verified with.")
    module.__dict__.update({name: entries[key] for name, key in sees.items()})
    module.__all__ = sorted(sees)
    return module


def builtins_with(skills):
    def import_module(name, globals=None, locals=None, fromlist=(), level=0):
        if name == "skills" and level == 0:
            return skills
        return builtins.__import__(name, globals, locals, fromlist, level)

    return dict(vars(builtins), __import__=import_module)


def show_lines(file, code):
    """Makes tracebacks show the lines of code that is not in a file."""
    linecache.cache[file] = (len(code), None, [line + "\n" for line in code.split("\n")], file)


def load(needed, sees, file=None, code=None):
    """Loads skills, each behind those that it needs, and defines the module `skills` for the code that follows.

    `needed`: `{module, code, entryPoint, sees}` of each skill. `sees` maps names in the code to modules. `file` and `code`: the code that
    follows, where tracebacks are to show its lines.
    """
    entries = {}
    for skill in needed:
        module = types.ModuleType(skill["module"])
        module.__builtins__ = builtins_with(skills_of(skill["sees"], entries))
        module.__file__ = skill["module"] + ".py"
        sys.modules[module.__name__] = module
        show_lines(module.__file__, skill["code"])
        exec(compile(skill["code"], module.__file__, "exec", dont_inherit=True), module.__dict__)
        if skill["entryPoint"] not in module.__dict__:
            raise ImportError("the skill %s defines no %s" % (skill["module"], skill["entryPoint"]))
        entries[skill["module"]] = module.__dict__[skill["entryPoint"]]
    sys.modules["skills"] = skills_of(sees, entries)
    if code is not None:
        show_lines(file, code)
