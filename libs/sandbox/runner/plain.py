"""Values of the code as JSON for the caller, bounded in depth and size.

Built-in types are read by their own methods only. An instance of a subclass is read as its built-in base, so overrides have no effect.
"""
import binascii
import math

EXACT_INT = 2**53


def exact_text(text):
    """The text, with single halves of surrogate pairs escaped."""
    return text if str.isascii(text) else str.encode(text, "utf-8", "backslashreplace").decode("utf-8")


def described(error, line):
    """The report of an exception: type, message ("" if it can't be read), and line or None."""
    try:
        message = exact_text(str(error))
    except Exception:
        message = ""
    return {"type": type(error).__name__[:200], "message": message[:4000], "line": line if type(line) is int else None}


DEPTH_MAX = 100
NODES_MAX = 1_000_000


def encode(value):
    """The return value of a `call` as JSON. Raises ValueError when it is too deep, too large, or contains itself."""
    return _Encoder().value(value, 0)


class _Encoder:
    def __init__(self):
        self.parts_left = NODES_MAX

    def value(self, value, depth):
        self.parts_left -= 1
        if depth > DEPTH_MAX:
            raise ValueError("the value is nested deeper than %d" % DEPTH_MAX)
        if self.parts_left < 0:
            raise ValueError("the value has too many parts")
        if value is None or value is True or value is False:
            return value
        if isinstance(value, (int, float, complex, str)):
            return self.scalar(value)
        for base in (list, tuple):
            if isinstance(value, base):
                return [self.value(item, depth + 1) for item in base.__iter__(value)]
        if isinstance(value, dict):
            return self.mapping(value, depth)
        return self.other(value, depth)

    def scalar(self, value):
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            number = int.__int__(value)
            return number if -EXACT_INT <= number <= EXACT_INT else {"$int": _digits(number)}
        if isinstance(value, float):
            number = float.__float__(value)
            return number if math.isfinite(number) else {"$float": repr(number)}
        return {"$complex": [self.scalar(complex.real.__get__(value)), self.scalar(complex.imag.__get__(value))]}

    def mapping(self, value, depth):
        pairs = list(dict.items(value))
        if all(type(key) is str and not key.startswith("$") for key, _ in pairs):
            return {key: self.value(item, depth + 1) for key, item in pairs}
        return {"$dict": [[self.value(key, depth + 1), self.value(item, depth + 1)] for key, item in pairs]}

    def other(self, value, depth):
        for base in (bytes, bytearray):
            if isinstance(value, base):
                content = base.__getitem__(value, slice(None))
                return {"$bytes": binascii.b2a_base64(content, newline=False).decode("ascii")}
        for base in (set, frozenset):
            if isinstance(value, base):
                return {"$set": [self.value(item, depth + 1) for item in _ordered(list(base.__iter__(value)))]}
        return {"$repr": repr(value)[:10_000]}


def _ordered(values):
    """Orders the items, so that equal sets look the same."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _digits(number):
    import sys

    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    return str(number)
