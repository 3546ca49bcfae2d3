"""Values between an answer and its checker: tagged JSON that only ever builds plain data.

A message is `[root, table]`. Scalars stand for themselves. What has an identity (lists, dicts, sets, instances) is an
entry of the table and is named `["x", number]`, so that sharing, cycles and any depth survive. Numbers below
`len(known)` name objects of the receiver itself. Everything else is `[tag, ...]`.
"""
import collections

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
