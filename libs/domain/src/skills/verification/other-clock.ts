/** Some seven years, an odd number of days, hours and seconds: another weekday, month and hour, too. */
const AHEAD_S = 222_222_222.25;

/** The clock of the interpreter that runs this, for code that asks it the usual ways. What lies between two looks at it stays right. */
const OTHER_CLOCK = String.raw`
import datetime, time

real = {name: getattr(time, name) for name in ("time", "time_ns", "clock_gettime", "localtime", "gmtime", "ctime", "strftime", "asctime")}

def now():
    return real["time"]() + ahead

def at(name):
    """One that takes seconds, or now."""
    return lambda seconds=None: real[name](now() if seconds is None else seconds)

time.time = now
time.time_ns = lambda: real["time_ns"]() + int(ahead * 10**9)
time.clock_gettime = lambda clock: real["clock_gettime"](clock) + (ahead if clock == time.CLOCK_REALTIME else 0)
time.localtime, time.gmtime, time.ctime = at("localtime"), at("gmtime"), at("ctime")
time.strftime = lambda form, moment=None: real["strftime"](form, time.localtime() if moment is None else moment)
time.asctime = lambda moment=None: real["asctime"](time.localtime() if moment is None else moment)

class Kind(type):
    """Moments of the real classes are moments of these."""
    def __instancecheck__(cls, moment):
        return isinstance(moment, cls.__mro__[1])

    def __subclasscheck__(cls, other):
        return issubclass(other, cls.__mro__[1])

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
`.trim();

/**
 * The code under a clock that is years ahead; its lines keep their numbers. Who looks for the trick finds it: it is there for code that
 * leans on the clock, not for code that lies, which tests can't settle.
 */
export function underOtherClock(code: string): string {
  const file = '__import__("sys")._getframe().f_code.co_filename';
  const clock = `exec(compile(r'''${OTHER_CLOCK}''', "<clock>", "exec", dont_inherit=True), {"ahead": ${AHEAD_S}})`;
  return `${clock}\nexec(compile(${JSON.stringify(code)}, ${file}, "exec", dont_inherit=True), globals())\n`;
}
