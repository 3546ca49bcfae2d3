"""Stand-ins in the checker for what lives in the answer's process.

Nothing here ever asks the answer whether two things are equal: a stand-in equals only itself, and every comparison
with an expected value happens in the checker on plain data. So an answer gains nothing by overriding `__eq__`.
"""
# Double-underscore attributes that a stand-in requests from the answer.
FORWARDED_DUNDERS = frozenset(("__name__", "__doc__", "__qualname__", "__annotations__"))


class Stub:
    """Stands for one object of the answer."""

    __slots__ = ("_etude_line", "_etude_target", "__weakref__")

    def __init__(self, line, target):
        object.__setattr__(self, "_etude_line", line)
        object.__setattr__(self, "_etude_target", target)

    def __getattr__(self, name):
        if name.startswith("__") and name not in FORWARDED_DUNDERS:
            raise AttributeError(name)
        return _ask(self, "getattr", name)

    def __len__(self):
        length = _ask_for(self, int, "len")
        _line(self).note_length(target_of(self), length)
        return length

    def __iter__(self):
        source = _ask(self, "iter")
        if type(source) is not Stub:
            return iter(source)
        # If the answer ended a loop of the tests early, the tests would assert too little. So a known length is enforced.
        return _elements(source, _line(self), len(self) if _line(self).length_known(target_of(self)) else 0)

    def __contains__(self, wanted):
        return any(item is wanted or item == wanted for item in iter(self))

    def __deepcopy__(self, _memo):
        return _ask(self, "deepcopy")

    def __instancecheck__(self, value):
        return type(value) is Stub and _ask_for(self, bool, "isinstance", value)

    def __subclasscheck__(self, value):
        return type(value) is Stub and _ask_for(self, bool, "issubclass", value)


def _asking(op):
    return lambda self, /, *args, **kwargs: _ask(self, op, *args, **kwargs)


def _asking_for(op, kind):
    return lambda self, *args: _ask_for(self, kind, op, *args)


for _op in ("call", "setattr", "delattr", "getitem", "setitem", "delitem", "next", "copy"):
    setattr(Stub, "__%s__" % _op, _asking(_op))
for _op, _kind in (("bool", bool), ("str", str), ("repr", str), ("format", str)):
    setattr(Stub, "__%s__" % _op, _asking_for(_op, _kind))


def _ask(stub, op, /, *args, **kwargs):
    return _line(stub).ask(op, target_of(stub), args, kwargs)


def _line(stub):
    return object.__getattribute__(stub, "_etude_line")


def _ask_for(stub, kind, op, *args):
    value = _ask(stub, op, *args)
    if type(value) is not kind:
        raise TypeError("the answer's object returned %s instead of %s" % (type(value).__name__, kind.__name__))
    return value


def _elements(source, line, length):
    changes = line.changes
    count = 0
    while True:
        try:
            item = next(source)
        except StopIteration:
            break
        count += 1
        yield item
    # The loop made one request per element and one for the end. Any further request may have removed elements.
    if count < length and line.changes == changes + count + 1:
        line.peer.fail("an object had fewer elements than its length")


def target_of(stub):
    """The reference by which the answer finds the object: `{"name": ...}` or `{"on": handle}`."""
    return object.__getattribute__(stub, "_etude_target")
