"""Values as messages between an answer and its checker. Plain data is sent by value; `foreign` and `resolve` handle everything else.

A scalar stands for itself. Any other value is a list that begins with a tag. An object with an identity, such as a list or an instance,
is an entry [tag, extra, content] of the message's table. ["x", number] refers to it, so that shared objects, cycles and depth survive.
"""
import collections
import enum
import functools
import importlib
import math
import sys
import types

SCALARS = frozenset((int, str, bool, type(None), float))
INT_PLAIN = 2**63
NAMED = {t.__name__: t for t in (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict, object, type(None))}
NAMED["Ellipsis"] = ...
FACTORIES = {t.__name__: t for t in (int, float, str, list, set, dict, tuple, bool)}
# Subclasses before their base classes.
NUMBERED = {
    "l": list, "od": collections.OrderedDict, "ct": collections.Counter, "dd": collections.defaultdict, "d": dict, "s": set,
    "q": collections.deque, "ba": bytearray,
}
_NUMBERED_TYPES = tuple(NUMBERED.values())
_HASHED = frozenset(("d", "s", "od", "ct", "dd"))
# For each tag: the type, and a function that makes a value from its items.
_OF_ITEMS = {
    "t": (tuple, tuple),
    "fs": (frozenset, frozenset),
    "k": (type({}.keys()), lambda items: dict.fromkeys(items).keys()),
    "kv": (type({}.values()), lambda items: dict(enumerate(items)).values()),
    "ki": (type({}.items()), lambda items: dict(items).items()),
}
_ITEM_TAGS = {kind: tag for tag, (kind, _make) in _OF_ITEMS.items()}
# For each tag: module and class, the method that makes an instance from scalars (None: the class), and a function that gives these scalars.
_OF_SCALARS = {
    "i": ("builtins", "int", None, lambda v: ("%x" % v, 16)),
    "f": ("builtins", "float", None, lambda v: (repr(v),)),
    "c": ("builtins", "complex", None, lambda v: (v.real, v.imag)),
    "b": ("builtins", "bytes", "fromhex", lambda v: (v.hex(),)),
    "r": ("builtins", "range", None, lambda v: (v.start, v.stop, v.step)),
    "sl": ("builtins", "slice", None, lambda v: (v.start, v.stop, v.step)),
    "n": ("decimal", "Decimal", None, lambda v: (str(v),)),
    "fr": ("fractions", "Fraction", None, lambda v: (v.numerator, v.denominator)),
    "dt": ("datetime", "datetime", "fromisoformat", lambda v: (v.isoformat(),)),
    "da": ("datetime", "date", "fromisoformat", lambda v: (v.isoformat(),)),
    "ti": ("datetime", "time", "fromisoformat", lambda v: (v.isoformat(),)),
    "td": ("datetime", "timedelta", None, lambda v: (v.days, v.seconds, v.microseconds)),
}
_SCALAR_TAGS = {(module, name): tag for tag, (module, name, _make, _fields) in _OF_SCALARS.items()}
_BASES = ((int, int.__int__), (float, float.__float__), (str, str.__str__), (frozenset, frozenset))


def is_plain_class(kind):
    """Whether instances of the class consist of attributes only, so that a copy of the attributes is a copy of the instance."""
    return kind.__new__ is object.__new__ and not issubclass(kind, (BaseException, type)) and type(kind).__call__ is type.__call__


def attributes(value):
    found = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__") and hasattr(value, slot):
                found[slot] = getattr(value, slot)
    return [(name, item) for name, item in found.items() if not name.startswith("__")]


class Encoder:
    """Turns values into messages. `foreign(value)` returns the tagged form of a value that is not plain data. `shared(class)` returns the
    name of a class whose instances are sent by value, or None for any other class. Values in `known` get the first numbers."""

    def __init__(self, foreign, shared, known=()):
        self.foreign = foreign
        self.shared = shared
        self.kept = list(known)
        self.numbers = {id(value): number for number, value in enumerate(self.kept)}
        self.contents = {}
        self.waiting = []
        self.base = len(self.kept)

    def table(self):
        """The contents of all objects that got a number here. Call it last."""
        while self.waiting:
            number, value = self.waiting.pop()
            self.contents[number] = self.content(value)
        return [self.contents[number] for number in range(self.base, len(self.kept))]

    def number(self, value):
        number = self.numbers.get(id(value))
        if number is None:
            number = len(self.kept)
            self.numbers[id(value)] = number
            self.kept.append(value)
            self.waiting.append((number, value))
        return ["x", number]

    def value(self, value):
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if (kind is int and -INT_PLAIN < value < INT_PLAIN) or (kind is float and math.isfinite(value)):
            return value
        if kind is list or kind is dict or kind is set or id(value) in self.numbers:
            return self.number(value)
        if kind in _ITEM_TAGS:
            return [_ITEM_TAGS[kind], self.values(list(value))]
        if kind is type or value is ...:
            name = "Ellipsis" if value is ... else value.__name__
            return ["y", name] if NAMED.get(name) is value else self.foreign(value)
        return self.subclass(value)

    def values(self, values):
        # A fast path for long lists of numbers and texts, which are frequent.
        if SCALARS.issuperset(map(type, values)) and all(-INT_PLAIN < v < INT_PLAIN for v in values if type(v) is int or type(v) is float):
            return list(values)
        return [self.value(value) for value in values]

    def request(self, args, kwargs, **fields):
        """A request with these arguments and their table."""
        named = [[name, self.value(item)] for name, item in kwargs.items()]
        return {**fields, "args": self.values(args), "kwargs": named, "table": self.table()}

    def pairs(self, mapping):
        return [[self.value(key), self.value(item)] for key, item in dict.items(mapping)]

    def subclass(self, value):
        """Encodes an instance of a subclass of plain data as its base class, without its overrides."""
        name = self.shared(type(value))
        if isinstance(value, enum.Enum) and name:
            return ["E", name, value.name]
        if isinstance(value, tuple):
            items = self.values(tuple(tuple.__iter__(value)))
            return ["N", name, items] if name and hasattr(type(value), "_make") else ["t", items]
        for base, convert in _BASES:
            if isinstance(value, base) and type(value) is not base:
                return self.value(convert(value))
        if isinstance(value, _NUMBERED_TYPES):
            return self.number(value)
        tag = _scalar_tag(type(value))
        if tag is not None:
            return [tag, *self.values(_OF_SCALARS[tag][3](value))]
        if name and is_plain_class(type(value)):
            return self.number(value)
        return self.foreign(value)

    def content(self, value):
        """The contents of a numbered object. Nested objects appear by their numbers only."""
        for tag, kind in NUMBERED.items():
            if isinstance(value, kind):
                break
        else:
            return ["o", self.shared(type(value)), [[name, self.value(item)] for name, item in attributes(value)]]
        if tag == "ba":
            return [tag, None, bytearray.hex(value)]
        if isinstance(value, dict):
            factory = getattr(getattr(value, "default_factory", None), "__name__", None)
            return [tag, factory if FACTORIES.get(factory) is getattr(value, "default_factory", None) else None, self.pairs(value)]
        return [tag, value.maxlen if tag == "q" else None, self.values(tuple(kind.__iter__(value)))]


def _scalar_tag(kind):
    """The tag of the class or of its nearest base class with a tag, or None. Imports no module."""
    for base in kind.__mro__:
        tag = _SCALAR_TAGS.get((base.__module__, base.__name__))
        if tag is not None and getattr(sys.modules.get(base.__module__), base.__name__, None) is base:
            return tag
    return None


class MalformedValue(Exception):
    """The other side sent a value that no honest side sends."""


# Kinds of class attributes that an instance's attribute must not hide.
_CODE = frozenset((types.FunctionType, staticmethod, classmethod, property, functools.cached_property))


class Decoder:
    """Builds values from messages with this table. Values in `known` have the first numbers. `resolve(tag, body)` returns a value that is
    not plain data, or raises. `class_of(name)` is the class of that name whose instances are sent by value, or None. With `own_code_wins`
    no attribute from the other side hides a method of a class of this side. A malformed message may raise any Exception."""

    def __init__(self, resolve, class_of, table, known=(), own_code_wins=False):
        self.own_code_wins = own_code_wins
        self.resolve = resolve
        self.class_of = class_of
        # First makes all objects empty, then fills them. Hashed containers come last, since their items must be complete.
        made = [self.shell(tag, extra) for tag, extra, _body in table]
        self.objects = [*known, *made]
        rows = list(zip(made, table))
        for late in (False, True):
            for target, entry in rows:
                if (entry[0] in _HASHED) == late:
                    self.fill(target, entry)

    def arguments(self, request):
        """The arguments of a request: a list, and a dict by name."""
        return self.values(request["args"]), {str(name): self.value(item) for name, item in request["kwargs"]}

    def shell(self, tag, extra):
        if tag == "o":
            kind = self.class_of(extra)
            _check(kind is not None and is_plain_class(kind))
            return object.__new__(kind)
        if tag == "dd":
            return collections.defaultdict(FACTORIES.get(extra))
        return collections.deque(maxlen=extra) if tag == "q" else NUMBERED[tag]()

    def fill(self, target, entry):
        """Replaces the contents of `target` by those of `entry`."""
        tag, _extra, body = entry
        if tag == "o":
            self.fill_attributes(target, body)
            return
        _check(isinstance(target, NUMBERED[tag]))
        if isinstance(target, dict):
            pairs = [(self.value(key), self.value(item)) for key, item in body]
            target.clear()
            # `update` is not used, since it would add the counts of a Counter.
            for key, item in pairs:
                target[key] = item
            return
        items = bytes.fromhex(body) if tag == "ba" else self.values(body)
        target.clear()
        (target.update if isinstance(target, set) else target.extend)(items)

    def fill_attributes(self, target, body):
        _check(is_plain_class(type(target)) and not isinstance(target, _NUMBERED_TYPES))
        wanted = {}
        for name, item in body:
            _check(type(name) is str and not name.startswith("__"))
            if not self.hides_code(type(target), name):
                wanted[name] = self.value(item)
        for name, _old in attributes(target):
            if name not in wanted and not self.hides_code(type(target), name):
                object.__delattr__(target, name)
        for name, item in wanted.items():
            object.__setattr__(target, name, item)

    def hides_code(self, kind, name):
        """Whether an attribute of that name would hide a method or property of the class."""
        return self.own_code_wins and any(type(base.__dict__.get(name)) in _CODE for base in kind.__mro__)

    def values(self, items):
        _check(type(items) is list)
        return list(items) if SCALARS.issuperset(map(type, items)) else [self.value(item) for item in items]

    def value(self, item):
        if type(item) in SCALARS:
            return item
        _check(type(item) is list and len(item) > 1)
        tag, first = item[0], item[1]
        if tag == "x":
            return self.objects[first]
        if tag == "y":
            return NAMED[first]
        if tag in _OF_ITEMS:
            return _OF_ITEMS[tag][1](self.values(first))
        if tag in _OF_SCALARS:
            return _of_scalars(tag, self.values(item[1:]))
        if tag == "N":
            kind, values = self.class_of(first), self.values(item[2])
            _check(issubclass(kind, tuple) and len(values) == len(kind._fields))
            return tuple.__new__(kind, values)
        if tag == "E":
            return self.class_of(first).__members__[item[2]]
        return self.resolve(tag, item)


def _of_scalars(tag, fields):
    _check(SCALARS.issuperset(map(type, fields)))
    module, name, make, _fields = _OF_SCALARS[tag]
    kind = getattr(importlib.import_module(module), name)
    return (getattr(kind, make) if make else kind)(*fields)


def _check(ok):
    if not ok:
        raise MalformedValue("a value that no honest answer sends")
