"""JSON and text that every reader takes for what they are: many round whole numbers, and none takes half of a surrogate pair."""

EXACT_INT = 2**53


def exact_text(text):
    """Halves of surrogate pairs as their escapes."""
    return text if str.isascii(text) else str.encode(text, "utf-8", "backslashreplace").decode("utf-8")


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
