"""Keeps processes of the same user from reading each other."""
# The package around it costs each start 5 ms.
import _ctypes

PR_SET_DUMPABLE = 4
_prctl = _ctypes.dlsym(_ctypes.dlopen(None, 2), "prctl")


def set_readable(readable):
    """Whether others of this user may open /proc/PID/fd and /proc/PID/mem or attach. Inherited by forks, reset by exec.

    Raises OSError: a supervisor that can't hide must not take work.
    """
    if _ctypes.call_function(_prctl, (PR_SET_DUMPABLE, 1 if readable else 0, 0, 0, 0)) != 0:
        raise OSError("PR_SET_DUMPABLE was refused")
