"""From values to messages; see values.py."""
import binascii
import collections
import enum
import math
import sys

SCALARS = frozenset((int, str, bool, type(None), float))
TYPES = {t.__name__: t for t in (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict, object, type(None))}
FACTORIES = {t.__name__: t for t in (int, float, str, list, set, dict, tuple, bool)}
# What has an identity that must survive.
NUMBERED = (list, dict, set, collections.deque, bytearray)


def is_plain_class(kind):
    """Instances are attributes and nothing else, so that they can be copied by them."""
    return kind.__new__ is object.__new__ and not issubclass(kind, (BaseException, type)) and type(kind).__call__ is type.__call__


def attributes(value):
    found = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__") and hasattr(value, slot):
                found[slot] = getattr(value, slot)
    return [(name, item) for name, item in found.items() if not name.startswith("__")]


INT_PLAIN = 2**63
KEYS, VALUES, ITEMS = type({}.keys()), type({}.values()), type({}.items())


class Encoder:
    """Turns values into messages. `foreign(value)` answers the tagged form of what is not plain data."""

    def __init__(self, foreign, shared, known=()):
        self.foreign = foreign
        self.shared = shared
        self.kept = list(known)
        self.numbers = {id(value): number for number, value in enumerate(self.kept)}
        self.contents = {}
        self.waiting = []
        self.base = len(self.kept)

    def table(self):
        """Contents of everything that was numbered here; call it last."""
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
        if kind is int:
            return value if -INT_PLAIN < value < INT_PLAIN else ["i", "%x" % value]
        if kind is float:
            return value if math.isfinite(value) else ["f", repr(value)]
        if id(value) in self.numbers:
            return self.number(value)
        if kind is list or kind is dict or kind is set:
            return self.number(value)
        encode = _EXACT.get(kind)
        if encode is not None:
            return encode(self, value)
        return self.subclass(value)

    def values(self, values):
        if SCALARS.issuperset(map(type, values)) and _is_plain(values):
            return list(values)
        return [self.value(value) for value in values]

    def pairs(self, mapping):
        return [[self.value(key), self.value(item)] for key, item in mapping.items()]

    def subclass(self, value):
        """A subclass of plain data travels as what it is below; its overrides stay behind."""
        name = self.shared(type(value))
        if isinstance(value, enum.Enum) and name:
            return ["E", name, value.name]
        if isinstance(value, tuple):
            items = self.values(tuple(tuple.__iter__(value)))
            return ["N", name, items] if name and hasattr(type(value), "_make") else ["t", items]
        for base, convert in _BASES:
            if isinstance(value, base):
                return self.value(convert(value))
        if isinstance(value, NUMBERED):
            return self.number(value)
        late = _late(type(value))
        if late is not None:
            return late(self, value)
        if name and is_plain_class(type(value)):
            return self.number(value)
        return self.foreign(value)

    def content(self, value):
        """What is inside a numbered object; nested ones by number only."""
        if isinstance(value, list):
            return ["l", self.values(list(list.__iter__(value)))]
        if isinstance(value, collections.OrderedDict):
            return ["od", self.pairs(value)]
        if isinstance(value, collections.Counter):
            return ["ct", self.pairs(value)]
        if isinstance(value, collections.defaultdict):
            return ["dd", self.factory(value.default_factory), self.pairs(value)]
        if isinstance(value, dict):
            return ["d", self.pairs(value)]
        if isinstance(value, set):
            return ["s", self.values(tuple(set.__iter__(value)))]
        if isinstance(value, collections.deque):
            return ["q", value.maxlen, self.values(tuple(value))]
        if isinstance(value, bytearray):
            return ["ba", _base64(value)]
        return ["o", self.shared(type(value)), [[name, self.value(item)] for name, item in attributes(value)]]

    def factory(self, factory):
        name = getattr(factory, "__name__", None)
        return name if FACTORIES.get(name) is factory else None


def _is_plain(values):
    return all(
        not (type(v) is int and not -INT_PLAIN < v < INT_PLAIN) and not (type(v) is float and not math.isfinite(v))
        for v in values
        if type(v) is int or type(v) is float
    )


def _base64(value):
    return binascii.b2a_base64(bytes(value), newline=False).decode("ascii")


def _frozen(encoder, value):
    return ["fs", encoder.values(tuple(value))]


def _type(encoder, value):
    return ["y", value.__name__] if TYPES.get(value.__name__) is value else encoder.foreign(value)


_EXACT = {
    tuple: lambda e, v: ["t", e.values(v)],
    frozenset: _frozen,
    bytes: lambda e, v: ["b", _base64(v)],
    complex: lambda e, v: ["c", e.value(v.real), e.value(v.imag)],
    range: lambda e, v: ["r", e.value(v.start), e.value(v.stop), e.value(v.step)],
    slice: lambda e, v: ["sl", e.value(v.start), e.value(v.stop), e.value(v.step)],
    type: _type,
    type(Ellipsis): lambda e, v: ["z"],
    KEYS: lambda e, v: ["k", e.values(list(v))],
    VALUES: lambda e, v: ["kv", e.values(list(v))],
    ITEMS: lambda e, v: ["ki", e.values(list(v))],
}
_BASES = (
    (bool, bool), (int, int.__int__), (float, float.__float__), (str, str.__str__), (bytes, bytes), (complex, complex),
    (frozenset, frozenset),
)
# Values of modules that are only loaded when something uses them.
_LATE = {
    ("decimal", "Decimal"): lambda e, v: ["n", str(v)],
    ("fractions", "Fraction"): lambda e, v: ["fr", e.value(v.numerator), e.value(v.denominator)],
    ("datetime", "datetime"): lambda e, v: ["T", "datetime", v.isoformat()],
    ("datetime", "date"): lambda e, v: ["T", "date", v.isoformat()],
    ("datetime", "time"): lambda e, v: ["T", "time", v.isoformat()],
    ("datetime", "timedelta"): lambda e, v: ["td", v.days, v.seconds, v.microseconds],
}


def _late(kind):
    """How to encode a value of a module that may not be loaded, or of a class below one of its classes."""
    for base in kind.__mro__:
        encode = _LATE.get((base.__module__, base.__name__))
        if encode is not None and getattr(sys.modules.get(base.__module__), base.__name__, None) is base:
            return encode
    return None
