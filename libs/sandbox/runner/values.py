"""Values between an answer and its checker: tagged JSON that only ever builds plain data.

A message is `[root, table]`. Scalars stand for themselves. What has an identity (lists, dicts, sets, instances) is an
entry of the table and is named `["x", number]`, so that sharing, cycles and any depth survive. Numbers below
`len(known)` name objects of the receiver itself. Everything else is `[tag, ...]`.
"""
import binascii
import collections
import enum
import math
import sys

SCALARS = frozenset((int, str, bool, type(None), float))
TYPES = {t.__name__: t for t in (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict, object, type(None))}
INT_PLAIN = 2**63
FACTORIES = {t.__name__: t for t in (int, float, str, list, set, dict, tuple, bool)}
KEYS, VALUES, ITEMS = type({}.keys()), type({}.values()), type({}.items())


class MalformedValue(Exception):
    """The other side sent something that no honest side sends."""


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
        if isinstance(value, _NUMBERED):
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
_NUMBERED = (list, dict, set, collections.deque, bytearray)
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


class Decoder:
    """Builds values from messages. `resolve(tag, body)` answers for tags that are not plain data, or raises."""

    def __init__(self, resolve, class_of, known=()):
        self.resolve = resolve
        self.class_of = class_of
        self.objects = list(known)

    def open(self, table):
        """Builds what the table names: first every object empty, then their contents, hashed ones last."""
        _check(type(table) is list)
        start = len(self.objects)
        for entry in table:
            _check(type(entry) is list and len(entry) >= 2 and type(entry[0]) is str)
            self.objects.append(self.shell(entry))
        rows = list(zip(self.objects[start:], table))
        for late in (False, True):
            for target, entry in rows:
                if (entry[0] in _HASHED) == late:
                    self.fill(target, entry)

    def shell(self, entry):
        tag = entry[0]
        if tag == "o":
            kind = self.class_of(_text(entry[1]))
            _check(kind is not None and is_plain_class(kind))
            return object.__new__(kind)
        if tag == "dd":
            return collections.defaultdict(None if entry[1] is None else FACTORIES.get(_text(entry[1])))
        if tag == "q":
            _check(entry[1] is None or (type(entry[1]) is int and 0 <= entry[1] < 2**31))
            return collections.deque(maxlen=entry[1])
        make = _SHELLS.get(tag)
        _check(make is not None)
        return make()

    def fill(self, target, entry):
        """Replaces the contents of `target` by those of `entry`."""
        tag, body = entry[0], entry[-1]
        if tag == "o":
            self.fill_attributes(target, body)
        elif tag == "l":
            _check(isinstance(target, list))
            target[:] = self.values(body)
        elif tag == "ba":
            _check(isinstance(target, bytearray))
            target[:] = _bytes(body)
        elif tag in ("d", "od", "ct", "dd"):
            _check(isinstance(target, dict))
            items = self.pairs(body)
            target.clear()
            for key, item in items:
                target[key] = item
        elif tag == "s":
            _check(isinstance(target, set))
            items = self.values(body)
            target.clear()
            target.update(items)
        elif tag == "q":
            _check(isinstance(target, collections.deque))
            items = self.values(body)
            target.clear()
            target.extend(items)
        else:
            _check(False)

    def fill_attributes(self, target, body):
        _check(type(body) is list and is_plain_class(type(target)) and not isinstance(target, _NUMBERED))
        wanted = {}
        for pair in body:
            _check(type(pair) is list and len(pair) == 2 and type(pair[0]) is str and not pair[0].startswith("__"))
            wanted[pair[0]] = self.value(pair[1])
        for name, _old in attributes(target):
            if name not in wanted:
                object.__delattr__(target, name)
        for name, item in wanted.items():
            object.__setattr__(target, name, item)

    def values(self, items):
        _check(type(items) is list)
        if SCALARS.issuperset(map(type, items)):
            return list(items)
        return [self.value(item) for item in items]

    def pairs(self, items):
        _check(type(items) is list)
        for pair in items:
            _check(type(pair) is list and len(pair) == 2)
        return [(self.value(key), self.value(item)) for key, item in items]

    def value(self, item):
        if type(item) in SCALARS:
            return item
        _check(type(item) is list and len(item) >= 1 and type(item[0]) is str)
        tag = item[0]
        if tag == "x":
            _check(len(item) == 2 and type(item[1]) is int and 0 <= item[1] < len(self.objects))
            return self.objects[item[1]]
        build = _BUILD.get(tag)
        if build is None:
            return self.resolve(tag, item)
        expected, make = build
        _check(len(item) == expected + 1)
        return make(self, *item[1:])


def _check(ok):
    if not ok:
        raise MalformedValue("a value that no honest answer sends")


def _text(value):
    _check(type(value) is str)
    return value


def _bytes(value):
    return binascii.a2b_base64(_text(value))


def _number(decoder, item):
    number = decoder.value(item)
    _check(type(number) is int or number is None)
    return number


def _float(decoder, item):
    number = decoder.value(item)
    _check(type(number) is float)
    return number


def _special_float(_decoder, text):
    _check(text in ("nan", "inf", "-inf"))
    return float(text)


def _moment(_decoder, kind, text):
    _check(kind in ("datetime", "date", "time"))
    import datetime

    return getattr(datetime, kind).fromisoformat(_text(text))


def _span(_decoder, days, seconds, microseconds):
    import datetime

    _check(type(days) is int and type(seconds) is int and type(microseconds) is int)
    return datetime.timedelta(days, seconds, microseconds)


def _decimal(_decoder, text):
    import decimal

    return decimal.Decimal(_text(text))


def _fraction(decoder, numerator, denominator):
    import fractions

    return fractions.Fraction(_number(decoder, numerator), _number(decoder, denominator))


def _builtin_type(_decoder, name):
    _check(_text(name) in TYPES)
    return TYPES[name]


def _named_tuple(decoder, name, items):
    kind = decoder.class_of(_text(name))
    _check(kind is not None and issubclass(kind, tuple) and hasattr(kind, "_fields"))
    values = decoder.values(items)
    _check(len(values) == len(kind._fields))
    return tuple.__new__(kind, values)


def _member(decoder, name, member):
    kind = decoder.class_of(_text(name))
    _check(kind is not None and issubclass(kind, enum.Enum) and _text(member) in kind.__members__)
    return kind.__members__[member]


_SHELLS = {"l": list, "d": dict, "s": set, "od": collections.OrderedDict, "ct": collections.Counter, "ba": bytearray}
_HASHED = frozenset(("d", "s", "od", "ct", "dd"))
# Tag: number of fields, builder.
_BUILD = {
    "i": (1, lambda d, text: int(_text(text), 16)),
    "f": (1, _special_float),
    "c": (2, lambda d, re, im: complex(_float(d, re), _float(d, im))),
    "b": (1, lambda d, text: _bytes(text)),
    "t": (1, lambda d, items: tuple(d.values(items))),
    "fs": (1, lambda d, items: frozenset(d.values(items))),
    "r": (3, lambda d, a, b, c: range(_number(d, a), _number(d, b), _number(d, c))),
    "sl": (3, lambda d, a, b, c: slice(_number(d, a), _number(d, b), _number(d, c))),
    "y": (1, _builtin_type),
    "z": (0, lambda d: Ellipsis),
    "n": (1, _decimal),
    "fr": (2, _fraction),
    "T": (2, _moment),
    "td": (3, _span),
    "k": (1, lambda d, items: dict.fromkeys(d.values(items)).keys()),
    "kv": (1, lambda d, items: dict(enumerate(d.values(items))).values()),
    "ki": (1, lambda d, items: dict(d.values(items)).items()),
    "N": (2, _named_tuple),
    "E": (2, _member),
}
