"""Children that an earlier cell of a session left, and that were ended with it: nobody waits for them, and each still counts as a process."""
import gc
import os
import sys

# How a few of them ended may still be asked for, by whoever started them.
KEPT_MAX = 4


def reap_left_behind():
    """To be called before a cell. Objects of `subprocess` learn how their own children ended, however many there are."""
    try:
        _reap(_children())
    except Exception:
        # The code may have put anything in place of what this calls. Then they count on, and the session goes on.
        pass


def _reap(left):
    if len(left) <= KEPT_MAX:
        return
    try:
        _tell_popens(getattr(sys.modules.get("subprocess"), "Popen", None))
    except Exception:
        # As above; then nobody learns how they ended.
        pass
    for pid in left[:-KEPT_MAX]:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass


def _tell_popens(popen):
    for one in gc.get_objects() if popen else ():
        if type(one) is popen and one.returncode is None:
            one.poll()


def _children():
    """Of every thread, each thread's oldest first."""
    found = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/children" % thread, encoding="ascii") as file:
                found += [int(pid) for pid in file.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found
