"""The zygote: a warm interpreter that forks cells and never sees a payload.

It receives only file descriptors. Each cell receives its payload over a socket of its own, so that no cell has the payload
of another cell in its memory.
"""
import fcntl
import gc
import json
import os
import struct
import sys

import _signal

from runner.frames import write_all
from runner.kernel import PACKETS, be_killed_first, close_others, receive_fds, send_fds, set_readable, socket_of, socket_pair, wipe_environment

PID = struct.Struct("=i")
NO_CELL = b"-"
# How long a new interpreter may take to start and fork its first cell. No user code runs meanwhile.
START_S = 10

# The modules that answers import most, so that forks have them already. Further modules would slow down each start more than they help.
PRELOADED = (
    "abc", "ast", "bisect", "collections", "contextlib", "copy", "enum", "functools", "heapq", "io", "itertools", "json",
    "linecache", "math", "operator", "random", "re", "string", "struct", "threading", "time", "traceback", "typing",
    # The runner needs it to read /proc.
    "encodings.ascii",
)

def hide():
    """Protects process 1: other processes can't read it, and without handlers it receives no signals from inside the sandbox."""
    set_readable(False)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    sys.dont_write_bytecode = True


def preload():
    for name in PRELOADED:
        __import__(name)
    from runner import cell  # noqa: F401

    gc.collect()
    gc.freeze()


def fork_orphan(prepare, act):
    """Forks twice, so that process 1 becomes the parent of the fork that runs `act`, and learns how it ends. `act` never returns.
    Returns the pid, or None on failure. The middle fork calls `prepare(fd)`, which must leave this file descriptor open."""
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            prepare(writing)
            pid = os.fork()
            if pid == 0:
                os.close(writing)
                act()
            os.write(writing, PID.pack(pid))
            os._exit(0)
        except BaseException as error:
            os.write(2, ("a process could not be started: %r\n" % (error,)).encode("utf-8", "replace"))
        finally:
            os._exit(70)
    os.close(writing)
    # The second fork becomes a child of process 1 when the middle fork has ended.
    os.waitpid(middle, 0)
    answer = os.read(reading, PID.size)
    os.close(reading)
    return PID.unpack(answer)[0] if answer else None


def serve(connection):
    """Forks one cell per message until the supervisor is gone."""
    from runner.cell import main as cell_main

    while True:
        message, fds = receive_fds(connection, 3)
        if not message:
            os._exit(0)
        pid = fork_orphan(lambda _fd: connection.close(), lambda: cell_main(*fds))
        for fd in fds:
            os.close(fd)
        connection.send(PID.pack(pid) if pid else NO_CELL)


class ZygoteLost(Exception):
    """The zygote was killed. A new zygote must be started before the next cell."""


class Zygote:
    """The supervisor's side: starts a zygote and asks it for cells."""

    def __init__(self, command):
        self.command = command
        self.pid = None
        self.connection = None

    def fork_from_here(self):
        """Forks the zygote from this process, which must not have seen a payload."""
        theirs = self._connect()
        self.pid = os.fork()
        if self.pid == 0:
            _leave_supervisor(theirs)
        theirs.close()

    def start_fresh(self, hash_seed):
        """Starts a new interpreter as zygote, for another hash seed or in place of a zygote that was killed."""
        self.stop()
        theirs = self._connect()
        os.set_inheritable(theirs.fileno(), True)
        environment = {"PYTHONHASHSEED": str(hash_seed), "ETUDE_ZYGOTE": str(theirs.fileno())}
        null = os.open("/dev/null", os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
        self.pid = os.posix_spawn(self.command[0], self.command, environment, file_actions=actions)
        os.close(null)
        theirs.close()

    def _connect(self):
        """The zygote's end of a new connection."""
        self.connection, theirs = socket_pair(PACKETS)
        self.connection.settimeout(START_S)
        return theirs

    def stop(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def fork_cell(self, fds):
        """Returns the new cell's pid. Raises ZygoteLost."""
        answer = b""
        if self.connection is not None:
            try:
                # The end of the last run has stopped the zygote.
                os.kill(self.pid, _signal.SIGCONT)
                send_fds(self.connection, b"f", fds)
                answer = self.connection.recv(PID.size)
            except OSError:
                pass
        if len(answer) != PID.size:
            self.stop()
            raise ZygoteLost()
        return PID.unpack(answer)[0]


def _leave_supervisor(sock):
    """In the fork: closes the supervisor's file descriptors and serves. Never returns."""
    try:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        close_others(sock.fileno())
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
        be_killed_first()
        serve(sock)
    finally:
        os._exit(70)


def main_fresh():
    """Runs a zygote that was started by exec."""
    fd = int(os.environ["ETUDE_ZYGOTE"])
    wipe_environment()
    be_killed_first()
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    sys.dont_write_bytecode = True
    preload()
    serve(socket_of(fd))


F_ADD_SEALS, SEALS = 1033, 0xF


class Cell:
    """One cell and the supervisor's ends of its pipes."""

    def __init__(self, zygote):
        """Raises ZygoteLost, OSError."""
        self.control, control = socket_pair()
        self.stdout, stdout = os.pipe()
        self.stderr, stderr = os.pipe()
        try:
            self.pid = zygote.fork_cell([control.fileno(), stdout, stderr])
        except BaseException:
            self.close()
            raise
        finally:
            control.close()
            os.close(stdout)
            os.close(stderr)
        for fd in (self.stdout, self.stderr):
            os.set_blocking(fd, False)
        self.control.setblocking(False)

    def start(self, payload, stdin=None, peer=None):
        """Sends the payload. The cell runs from here on."""
        source = sealed(json.dumps(payload).encode("ascii"))
        text = os.open("/dev/null", os.O_RDONLY) if stdin is None else sealed(stdin)
        fds = [source, text] + ([peer.fileno()] if peer is not None else [])
        try:
            os.kill(self.pid, _signal.SIGCONT)
            send_fds(self.control, b"g", fds)
        finally:
            os.close(source)
            os.close(text)

    def close(self):
        self.control.close()
        os.close(self.stdout)
        os.close(self.stderr)


def sealed(data):
    """A file in memory. It is sealed, since pages that the code could add would count against no limit."""
    fd = os.memfd_create("etude", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    write_all(fd, data)
    fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
