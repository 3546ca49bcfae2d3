"""What the end of a run is called."""
import re

import _signal

CHECKER_LOST = {"type": "CheckerLost", "message": "the checker was stopped while the answer ran", "line": None}


def exit_reason(ended, error, stderr, disk_full, processes_full):
    """How the code ended when nobody stopped it. `ended` is a Reaped or None, `error` what a cell said or None."""
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


def bounded_error(report):
    """What a cell says about an exception, bounded and in shape, whatever it sent."""
    if type(report) is not dict:
        return dict(CHECKER_LOST)
    line = report.get("line")
    return {
        "type": str(report.get("type"))[:200],
        "message": str(report.get("message"))[:4000],
        "line": line if type(line) is int and 0 <= line < 2**31 else None,
    }
