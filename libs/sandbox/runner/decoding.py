"""From messages to values, whoever wrote them; see values.py."""
import binascii
import collections
import enum
import functools
import types

from runner.encoding import FACTORIES, NUMBERED, SCALARS, TYPES, attributes, is_plain_class


class MalformedValue(Exception):
    """The other side sent something that no honest side sends."""


class Decoder:
    """Builds values from messages. `resolve(tag, body)` answers for tags that are not plain data, or raises.
    With `own_code_wins` no attribute from the other side stands before a method of a class of this side."""

    def __init__(self, resolve, class_of, known=(), own_code_wins=False):
        self.own_code_wins = own_code_wins
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
        _check(type(body) is list and is_plain_class(type(target)) and not isinstance(target, NUMBERED))
        wanted = {}
        for pair in body:
            _check(type(pair) is list and len(pair) == 2 and type(pair[0]) is str and not pair[0].startswith("__"))
            if not self.hides_code(type(target), pair[0]):
                wanted[pair[0]] = self.value(pair[1])
        for name, _old in attributes(target):
            if name not in wanted and not self.hides_code(type(target), name):
                object.__delattr__(target, name)
        for name, item in wanted.items():
            object.__setattr__(target, name, item)

    def hides_code(self, kind, name):
        """Whether an attribute would stand before a method or property of its class."""
        return self.own_code_wins and any(type(base.__dict__.get(name)) in _CODE for base in kind.__mro__)

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


_CODE = frozenset((types.FunctionType, staticmethod, classmethod, property, functools.cached_property))
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
