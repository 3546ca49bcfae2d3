"""Keeps processes of the same user from reading each other."""
import ctypes

PR_SET_DUMPABLE = 4
_prctl = ctypes.CDLL(None, use_errno=True).prctl


def set_readable(readable):
    """Whether others of this user may open /proc/PID/fd and /proc/PID/mem or attach. Inherited by forks, reset by exec.

    Raises OSError: a supervisor that can't hide must not take work.
    """
    if _prctl(PR_SET_DUMPABLE, 1 if readable else 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_DUMPABLE was refused")
