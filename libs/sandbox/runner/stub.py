"""Stand-ins in the checker for functions and objects of the answer's process.

A stand-in equals only itself, since the checker never asks the answer whether two values are equal. Every comparison with an expected
value happens in the checker, on plain data. So an answer gains nothing by overriding `__eq__`.
"""
# The only double-underscore attributes that a stand-in requests from the answer.
FORWARDED_DUNDERS = frozenset(("__name__", "__doc__", "__qualname__", "__annotations__"))


class Stub:
    """Stands for a function, a class or a top-level name of the answer."""

    __slots__ = ("_etude_line", "_etude_target", "__weakref__")

    def __init__(self, line, target):
        object.__setattr__(self, "_etude_line", line)
        object.__setattr__(self, "_etude_target", target)

    def __getattr__(self, name):
        if name.startswith("__") and name not in FORWARDED_DUNDERS:
            raise AttributeError(name)
        return _ask(self, "getattr", name)

    def __instancecheck__(self, value):
        return isinstance(value, Stub) and _ask_for(self, bool, "isinstance", value)


class FunctionStub(Stub):
    """Stands for a function that a call returned. The tests can call it, but not read its attributes."""

    __slots__ = ()

    def __getattr__(self, name):
        if name not in FORWARDED_DUNDERS:
            raise AttributeError(name)
        return _ask(self, "getattr", name)


class IteratorStub(Stub):
    __slots__ = ()

    def __iter__(self):
        return self


class LiveStub(Stub):
    """Stands for an object of the answer, if the tests name a class of the answer. Reading it twice gives the same result, until a call."""

    __slots__ = ()

    def __len__(self):
        return _ask_for(self, int, "len")

    def __iter__(self):
        return _line(self).elements(target_of(self))

    def __contains__(self, wanted):
        return any(item is wanted or item == wanted for item in iter(self))

    def __deepcopy__(self, _memo):
        return _ask(self, "deepcopy")


def _asking(op):
    return lambda self, /, *args, **kwargs: _ask(self, op, *args, **kwargs)


def _asking_for(op, kind):
    return lambda self, *args: _ask_for(self, kind, op, *args)


for _kind, _ops in ((Stub, ("call", "setattr", "delattr", "copy")), (IteratorStub, ("next",)), (LiveStub, ("getitem", "setitem", "delitem", "next"))):
    for _op in _ops:
        setattr(_kind, "__%s__" % _op, _asking(_op))
for _op, _kind in (("bool", bool), ("str", str), ("repr", str), ("format", str)):
    setattr(LiveStub, "__%s__" % _op, _asking_for(_op, _kind))


def _ask(stub, op, /, *args, **kwargs):
    return _line(stub).ask(op, target_of(stub), args, kwargs)


def _line(stub):
    return object.__getattribute__(stub, "_etude_line")


def _ask_for(stub, kind, op, *args):
    value = _ask(stub, op, *args)
    if type(value) is not kind:
        raise TypeError("the answer's object returned %s instead of %s" % (type(value).__name__, kind.__name__))
    return value


def target_of(stub):
    """The reference by which the answer finds the object: `{"name": ...}` or `{"on": handle}`."""
    return object.__getattribute__(stub, "_etude_target")
