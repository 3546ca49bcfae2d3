"""Each attack raises one counter of the kernel as far as it can, holds it, and returns what it reached.

The first line of stdin names the attack.
"""
import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
kept = []


def count(act):
    reached = 0
    try:
        while reached < 100_000:
            kept.append(act())
            reached += 1
    except OSError:
        pass
    return reached


def in_each(act):
    """Runs `act` in as many processes as can be started, and returns the sum. The processes report in files, since some attacks use up the pipes."""
    started = 0
    try:
        while True:
            if os.fork() == 0:
                report(started, act)
            started += 1
    except OSError:
        pass
    return sum(await_report(number) for number in range(started))


def report(number, act):
    file = open("part%d" % number, "w")
    file.write(str(act()))
    file.close()
    os.rename("part%d" % number, "whole%d" % number)
    time.sleep(600)


def await_report(number):
    while not os.path.exists("whole%d" % number):
        time.sleep(0.01)
    with open("whole%d" % number) as file:
        return int(file.read())


def call(x64, arm64, *arguments):
    number = {"x86_64": x64, "aarch64": arm64}[os.uname().machine]
    return lambda: succeeded(libc.syscall(number, *arguments))


def succeeded(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")


def descriptors_in_flight():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    kept.append((ours, theirs))
    return 10 * count(lambda: socket.send_fds(ours, [b"x"], [0] * 10))


def watches():
    files = [file for _ in range(50) for file in os.pipe()]
    return count(lambda: watch(files)) * len(files)


def watch(files):
    poll = select.epoll()
    for file in files:
        poll.register(file)
    return poll


def pending_signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
    return count(lambda: succeeded(libc.sigqueue(os.getpid(), signal.SIGRTMIN, None)))


def make_timer():
    succeeded(libc.timer_create(time.CLOCK_MONOTONIC, None, ctypes.byref(ctypes.c_void_p())))


def lock_page():
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    succeeded(libc.mlock(ctypes.byref(ctypes.c_char.from_buffer(page)), 4096))
    return page


def buffer(size):
    return ctypes.create_string_buffer(size)


ATTACKS = {
    "pipes": lambda: in_each(lambda: count(os.pipe)),
    "descriptors in flight": descriptors_in_flight,
    "watches of epoll": watches,
    "processes": lambda: in_each(lambda: 1),
    "open files": lambda: in_each(lambda: count(lambda: os.open("/dev/null", os.O_RDONLY))),
    "pending signals": pending_signals,
    "timers": lambda: in_each(lambda: count(make_timer)),
    "locked pages": lambda: in_each(lambda: count(lock_page)),
    "terminals": lambda: in_each(lambda: count(os.openpty)),
    "enlarged pipes": lambda: count(lambda: fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)),
    "huge pages": lambda: count(lambda: mmap.mmap(-1, 2 << 20, 0x40022)),
    "shared pages without a file": lambda: count(lambda: mmap.mmap(-1, 4096)),
    "files in memory": lambda: count(lambda: os.memfd_create("x")),
    "memory of TCP": lambda: count(lambda: socket.socket(socket.AF_INET)),
    "memory of TCP over IPv6": lambda: count(lambda: socket.socket(socket.AF_INET6)),
    "asynchronous operations": lambda: count(call(206, 0, 1000, ctypes.byref(ctypes.c_ulong()))),
    "rings of operations": lambda: count(call(425, 425, 8, buffer(256))),
    "instances of inotify": lambda: count(call(294, 26, 0)),
    "groups of fanotify": lambda: count(call(300, 262, 0, 0)),
    "keys": lambda: count(call(248, 217, b"user", b"x", b"y", 1, -2)),
    "keyrings": lambda: count(call(250, 219, 1, 0)),
    "message queues": lambda: count(call(240, 180, b"x", 0o102, 0o600, None)),
    "message queues of System V": lambda: count(call(68, 186, 1, 0o1600)),
    "semaphores of System V": lambda: count(call(64, 190, 1, 1, 0o1600)),
    "shared memory of System V": lambda: count(call(29, 194, 1, 4096, 0o1600)),
    "performance events": lambda: count(call(298, 241, buffer(128), 0, -1, -1, 0)),
    "programs of the kernel": lambda: count(call(321, 280, 0, buffer(128), 128)),
    "handlers of page faults": lambda: count(call(323, 282, 0)),
    "user namespaces": lambda: count(call(272, 97, 0x10000000)),
    "mount namespaces": lambda: count(call(272, 97, 0x00020000)),
    "process namespaces": lambda: count(call(272, 97, 0x20000000)),
    "network namespaces": lambda: count(call(272, 97, 0x40000000)),
    "IPC namespaces": lambda: count(call(272, 97, 0x08000000)),
    "name namespaces": lambda: count(call(272, 97, 0x04000000)),
    "control group namespaces": lambda: count(call(272, 97, 0x02000000)),
    "time namespaces": lambda: count(call(272, 97, 0x00000080)),
}

print(ATTACKS[input()](), flush=True)
time.sleep(600)
