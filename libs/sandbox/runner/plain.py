"""What a `call` returned, as JSON for the caller. Bounded in depth and size; never runs code of the value."""
import binascii
import math

from runner.exact import EXACT_INT

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
