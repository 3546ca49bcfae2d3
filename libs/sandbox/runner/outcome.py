"""Exit reasons and results of runs."""
import errno
import json
import math
import re

import _signal

DISPLAY_BYTES_MAX = 8 * 1024 * 1024
DISPLAYS_MAX = 1000
# A value of one character in JSON takes about a hundred bytes of memory in the process that reads it.
VALUES_MAX = 400_000
RETURNED_VALUES_MAX = 2_000_000
WHAT_TO_DO = "return less, or print a part of it"
DEPTH_MAX = 200
DIGITS_MAX = 300
# Limits of tools: calls by one cell, size of the arguments of one call, and of all calls of a cell, as JSON.
CALLS_MAX = 200
ARGUMENTS_BYTES_MAX = 256 * 1024
ALL_ARGUMENTS_BYTES_MAX = 8 * 1024 * 1024
# On the wire, one level of nesting takes three levels of messages.
ARGUMENTS_DEPTH_MAX = 30
# Size of the answer to a tool call, as JSON.
ANSWER_BYTES_MAX = 1024 * 1024


def value_excess(body, run):
    """The reason why the report of a call exceeds the limits of its run, or None."""
    parts_max = run.get("valueParts", RETURNED_VALUES_MAX)
    if has_too_many_values(body, parts_max):
        return "the value has more than %d commas and brackets; %s" % (parts_max, WHAT_TO_DO)
    if "valueKiB" in run and len(body) > run["valueKiB"] * 1024:
        return "the value takes more than %d KiB as JSON; %s" % (run["valueKiB"], WHAT_TO_DO)
    return None


def has_too_many_values(body, most=VALUES_MAX):
    """Whether an encoded frame may have more than `most` values. Counts commas and brackets, also inside texts."""
    return body.count(b",") + body.count(b"[") + body.count(b"{") > most


def document(body, depth_max):
    """Parses the object in `body`. Raises ValueError, RecursionError."""
    found = json.loads(body, parse_constant=_refuse, parse_float=_finite, parse_int=_bounded)
    if type(found) is not dict or not is_shallow(found, depth_max):
        raise ValueError("a malformed report")
    return found


def bounded_error(report):
    """A cell's report of an exception, checked and bounded. None if the report is not an object."""
    if type(report) is not dict:
        return None
    line = report.get("line")
    return {
        "type": str(report.get("type"))[:200],
        "message": str(report.get("message"))[:4000],
        "line": line if type(line) is int and 0 <= line < 2**31 else None,
    }


def is_shallow(found, depth_max):
    level = [found]
    for _depth in range(depth_max):
        level = [inner for outer in level for inner in (outer.values() if type(outer) is dict else outer) if type(inner) in (dict, list)]
        if not level:
            return True
    return False


def _finite(text):
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _bounded(text):
    return int(text) if len(text) <= DIGITS_MAX else _refuse(text)


def _refuse(text):
    raise ValueError("not a portable JSON number: %s" % text[:20])


CHECKER_LOST = {"type": "CheckerLost", "message": "the checker was stopped while the answer ran", "line": None}
NO_VALUE = {"type": "NoValue", "message": "the code ended before the call gave a value", "line": None}


def exit_reason(ended, error, stderr, disk_full, processes_full):
    """The exit reason of code that the runner did not stop. `ended`: its Ended or None. `error`: the error that its cell reported or None."""
    tail = stderr[-400:]
    kind = (error or {}).get("type")
    if ended and ended.signal is not None:
        if ended.signal == _signal.SIGXCPU:
            return "cpu"
        if ended.signal == _signal.SIGXFSZ:
            return "disk"
        return "signal"
    if ended and ended.exit_code == 0 and not error:
        return "ok"
    text = "%s: %s" % (kind, error["message"]) if error else tail
    if kind == "MemoryError" or re.search(r"^MemoryError\b.*\s*\Z", text, re.MULTILINE):
        return "oom"
    if disk_full or re.search(r"\[Errno (28|27)\]|No space left on device|File too large", text):
        return "disk"
    if processes_full or re.search(r"BlockingIOError: \[Errno 11\]|can't start new thread|Cannot fork", text):
        return "pids"
    return "nonzero"


def conclude(result, kind, report, stopped, reason_of):
    """Completes the result of a run outside of sessions. `report`: the report of its cell or checker, {} if none came. `stopped`: the exit
    reason if the runner stopped the run, else None. `reason_of(error)`: the exit reason of any other run."""
    error = bounded_error(report.get("error"))
    passed = kind == "checked" and report.get("passed") is True
    if kind == "checked" and not passed and not stopped:
        error = error or CHECKER_LOST
    reason = stopped or ("ok" if passed else reason_of(error))
    if reason == "ok" and kind == "call":
        if "value" in report:
            result["value"] = report["value"]
        else:
            reason, error = "nonzero", NO_VALUE
    if kind == "checked":
        # A run passes only by the checker's report, and never by the way in which the answer ended.
        reason = "nonzero" if reason == "ok" and not passed else reason
        result["passed"] = reason == "ok"
        if passed and not stopped:
            result.update(exitCode=0, signal=None)
        elif reason == "nonzero":
            result["exitCode"] = result["exitCode"] or 1
    if error:
        result["error"] = error
    result["exit"] = reason


NUMBERS = ("stdoutCutBytes", "stderrCutBytes", "cpuMs", "wallMs", "memoryPeakKiB")
NOTHING_RAN = {"exitCode": None, "signal": None, "stdout": "", "stderr": "", **dict.fromkeys(NUMBERS, 0)}


def refused_files(run, error):
    """The result of a run whose files could not be written."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    error = {"type": "FileRefused", "message": str(error)[:4000], "line": None}
    result = {**NOTHING_RAN, "exit": "disk" if full else "nonzero", "error": error}
    return {**result, "passed": False} if run["kind"] == "checked" else result
