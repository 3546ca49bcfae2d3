"""Processes of the sandbox, as seen from process 1, which inherits all of them."""
import os
import time
from collections import namedtuple
from contextlib import suppress

import _signal

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
# How long a killed process may take to end, since the kernel needs a while to free much memory.
END_S = 5


# How a process ended (or a cell, whose interpreter lives on). `cpu_ms` and `peak_kib` include children that were waited for.
Ended = namedtuple("Ended", "exit_code signal cpu_ms peak_kib", defaults=(None, 0, 0))
Load = namedtuple("Load", "cpu_ms memory_kib processes")


def reap(into):
    """Reaps every child that has ended, and adds it to the dict `into`: pid to Ended."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        into[pid] = Ended(exit_code, signal, (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss)


def stat_fields(pid):
    """Fields of /proc/PID/stat after the command's name. Field 0 is the state, 11 to 14 are the CPU times, 17 is the number of threads."""
    with open("/proc/%s/stat" % pid, encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def _all_fields():
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError):
                yield int(entry), stat_fields(entry)


def cpu_ms_of(fields):
    """User and system time, of the process itself and of the children that it waited for."""
    return sum(int(fields[i]) for i in (11, 12, 13, 14)) * TICK_MS


def measure(apart):
    """Sums over all live processes that are not in `apart`. Threads count as processes, as in the kernel's limit."""
    cpu_ms = memory_kib = count = mapped_kib = 0
    for pid, fields in _all_fields():
        if pid in apart:
            continue
        try:
            with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
                resident = _kib_of(file)
        except (FileNotFoundError, ProcessLookupError):
            continue
        cpu_ms += cpu_ms_of(fields)
        count += max(1, int(fields[17]))
        # Includes page tables, since pages of zeros that are only read count nowhere else.
        memory_kib += sum(resident.get(name, 0) for name in ("RssAnon", "VmSwap", "VmPTE"))
        # Processes may share file pages, so only the process with the most pages counts. The sizes of the writable folders limit file pages.
        mapped_kib = max(mapped_kib, resident.get("RssFile", 0) + resident.get("RssShmem", 0))
    return Load(cpu_ms, memory_kib + mapped_kib, count)


def _kib_of(lines):
    """The kB fields of a status file. Parses strictly, since its first line has a name that the code can choose."""
    fields = (line.split() for line in lines)
    return {field[0][:-1]: int(field[1]) for field in fields if len(field) == 3 and field[2] == "kB" and field[1].isdecimal()}


def has_ended(pid):
    try:
        return stat_fields(pid)[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def send_signal(pid, number):
    """Sends a signal to a process that may have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def kill(pid):
    send_signal(pid, _signal.SIGKILL)


def end_all_but(known):
    """Ends every process that is not in `known`, and leaves those in `known` stopped. Raises OSError if a process can't be ended."""
    deadline = time.monotonic() + END_S
    while True:
        try:
            # One call stops all processes, so that none can escape by forking.
            os.kill(-1, _signal.SIGSTOP)
        except ProcessLookupError:
            return
        others = [pid for pid in _alive() if pid not in known]
        if not others:
            return
        if time.monotonic() > deadline:
            raise OSError("the processes %s can't be ended" % others[:10])
        for pid in others:
            kill(pid)
        time.sleep(0.0005)


def _alive():
    """Pids of all live processes except this one, without zombies."""
    for pid, fields in _all_fields():
        # If only the first thread of a process has ended, the process looks like a zombie, but its other threads live on.
        if pid != 1 and (fields[0] not in "ZX" or int(fields[17]) > 1):
            yield pid


def memory_kills():
    """Number of processes of this control group that the kernel killed because memory was short. 0 if the kernel doesn't count them."""
    try:
        with open("/sys/fs/cgroup/memory.events", encoding="ascii") as file:
            return int(dict(line.split() for line in file).get("oom_kill", 0))
    except (OSError, ValueError):
        return 0
