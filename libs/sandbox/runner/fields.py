"""Fields of frames that come from outside: present, of their type, in their bounds."""


class Refused(Exception):
    """The frame is not obeyed, and the other side is told so."""

    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code


class Malformed(ValueError):
    """A known frame with a field that is missing or wrong."""


def text(frame, name, chars_max=None):
    value = frame.get(name)
    if type(value) is not str or (chars_max is not None and not 0 < len(value) <= chars_max):
        raise Malformed("%s must be text%s" % (name, " of 1 to %d characters" % chars_max if chars_max else ""))
    return value


def natural(frame, name, most=2**53, least=1):
    value = frame.get(name)
    if type(value) is not int or not least <= value <= most:
        raise Malformed("%s must be a whole number from %d to %d" % (name, least, most))
    return value


def boolean(frame, name):
    value = frame.get(name, False)
    if type(value) is not bool:
        raise Malformed("%s must be true or false" % name)
    return value


def objects(frame, name, least=0):
    value = frame.get(name, [])
    if type(value) is not list or len(value) < least or any(type(item) is not dict for item in value):
        raise Malformed("%s must be a list of at least %d objects" % (name, least))
    return value
