"""What a `call` returned, as JSON for the caller. Bounded in depth and size; never runs code of the value."""
import binascii
import math

EXACT_INT = 2**53


def exact_text(text):
    """Halves of surrogate pairs as their escapes."""
    return text if str.isascii(text) else str.encode(text, "utf-8", "backslashreplace").decode("utf-8")


def described(error, line):
    """What is told of an exception: its type, its message as far as it has one, and a line or None."""
    try:
        message = exact_text(str(error))
    except Exception:
        message = ""
    return {"type": type(error).__name__[:200], "message": message[:4000], "line": line if type(line) is int else None}


def is_exact_text(text):
    return str.isascii(text) or exact_text(text) == text


def exact_json(value):
    """What a `call` returns for the same: {"$int": digits} beyond 2^53, {"$repr": text} for texts that are no Unicode.

    The value itself where nothing in it has to change. It is JSON, and not nested deeper than JSON may be.
    """
    kind = type(value)
    if kind is int:
        return value if -EXACT_INT <= value <= EXACT_INT else {"$int": str(value)}
    if kind is str:
        return value if is_exact_text(value) else {"$repr": repr(value)}
    if kind is list:
        items = [exact_json(item) for item in value]
        return value if all(map(_same, items, value)) else items
    if kind is dict:
        items = [exact_json(item) for item in value.values()]
        return value if all(map(_same, items, value.values())) else dict(zip(value, items))
    return value


def _same(one, other):
    return one is other


DEPTH_MAX = 100
NODES_MAX = 1_000_000


def encode(value):
    """Raises ValueError when the value is too deep, too large, or holds itself."""
    return _Encoder().value(value, 0)


class _Encoder:
    def __init__(self):
        self.nodes = 0

    def value(self, value, depth):
        self.nodes += 1
        if depth > DEPTH_MAX:
            raise ValueError("the value is nested deeper than %d" % DEPTH_MAX)
        if self.nodes > NODES_MAX:
            raise ValueError("the value has more than %d parts" % NODES_MAX)
        if value is None or value is True or value is False:
            return value
        if isinstance(value, (int, float, complex, str)):
            return self.scalar(value)
        if isinstance(value, (bytes, bytearray)):
            return {"$bytes": binascii.b2a_base64(bytes(value), newline=False).decode("ascii")}
        if isinstance(value, (list, tuple)):
            return [self.value(item, depth + 1) for item in value]
        if isinstance(value, (set, frozenset)):
            return {"$set": [self.value(item, depth + 1) for item in _ordered(value)]}
        if isinstance(value, dict):
            return self.mapping(value, depth)
        return {"$repr": repr(value)[:10_000]}

    def scalar(self, value):
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            number = int.__int__(value)
            return number if -EXACT_INT <= number <= EXACT_INT else {"$int": _digits(number)}
        if isinstance(value, float):
            number = float.__float__(value)
            return number if math.isfinite(number) else {"$float": repr(number)}
        number = complex(value)
        return {"$complex": [self.scalar(number.real), self.scalar(number.imag)]}

    def mapping(self, value, depth):
        pairs = list(dict.items(value))
        if all(type(key) is str and not key.startswith("$") for key, _ in pairs):
            return {key: self.value(item, depth + 1) for key, item in pairs}
        return {"$dict": [[self.value(key, depth + 1), self.value(item, depth + 1)] for key, item in pairs]}


def _ordered(values):
    """Sets have no order; equal sets should look the same."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _digits(number):
    import sys

    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    return str(number)
