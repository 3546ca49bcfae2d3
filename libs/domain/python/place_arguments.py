"""Calls a function with arguments by place of which some were left out: only Python knows what a default is."""


def placing(function):
    """A function whose first argument has a list for each place: of the value that was given, or of none.

    Not `inspect.signature`, which evaluates annotations, which need not name anything.
    """
    inner = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    names = inner.__code__.co_varnames[: inner.__code__.co_argcount]
    defaults = dict(zip(names[::-1], (inner.__defaults__ or ())[::-1]))

    def placed(places, follow, /, **named):
        left_out = [at for at, given in enumerate(places) if not given]
        if any(at >= len(names) or names[at] not in defaults for at in left_out):
            raise TypeError("an argument that was left out has no default; give it")
        values = [given[0] if given else defaults[names[at]] for at, given in enumerate(places)]
        return function(*values, *follow, **named)

    return placed
