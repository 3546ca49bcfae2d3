"""What the end of a run is called."""
import errno
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


def refused_files(run, error):
    """The result of a run whose files could not be put in their places."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    result = {
        "exit": "disk" if full else "nonzero",
        "exitCode": None,
        "signal": None,
        "stdout": "",
        "stderr": "",
        "stdoutCutBytes": 0,
        "stderrCutBytes": 0,
        "cpuMs": 0,
        "wallMs": 0,
        "memoryPeakKiB": 0,
        "error": {"type": "FileRefused", "message": str(error)[:4000], "line": None},
    }
    return {**result, "passed": False} if run["kind"] == "checked" else result
