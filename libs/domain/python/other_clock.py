"""Moves the clock of this interpreter, for code that reads it in the usual ways. Differences between two readings stay right.

Meant for code that depends on the clock. Code that looks for the change can find it.
"""
import datetime
import time

REAL = {name: getattr(time, name) for name in ("time", "time_ns", "clock_gettime", "localtime", "gmtime", "ctime", "strftime", "asctime")}


class Kind(type):
    """Makes instances of the real classes count as instances of these."""

    def __instancecheck__(cls, moment):
        return isinstance(moment, cls.__mro__[1])

    def __subclasscheck__(cls, other):
        return issubclass(other, cls.__mro__[1])


def move(ahead):
    """Moves the clock by `ahead` seconds."""

    def now():
        return REAL["time"]() + ahead

    def at(name):
        return lambda seconds=None: REAL[name](now() if seconds is None else seconds)

    time.time = now
    time.time_ns = lambda: REAL["time_ns"]() + int(ahead * 10**9)
    time.clock_gettime = lambda clock: REAL["clock_gettime"](clock) + (ahead if clock == time.CLOCK_REALTIME else 0)
    time.localtime, time.gmtime, time.ctime = at("localtime"), at("gmtime"), at("ctime")
    time.strftime = lambda form, moment=None: REAL["strftime"](form, time.localtime() if moment is None else moment)
    time.asctime = lambda moment=None: REAL["asctime"](time.localtime() if moment is None else moment)

    class Date(datetime.date, metaclass=Kind):
        @classmethod
        def today(cls):
            return cls.fromtimestamp(now())

    class Moment(datetime.datetime, metaclass=Kind):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(now(), tz)

        @classmethod
        def today(cls):
            return cls.fromtimestamp(now())

        @classmethod
        def utcnow(cls):
            return cls.utcfromtimestamp(now())

    for name, kind in (("date", Date), ("datetime", Moment)):
        kind.__name__ = kind.__qualname__ = name
        kind.__module__ = "datetime"
        setattr(datetime, name, kind)
