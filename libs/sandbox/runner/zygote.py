"""The zygote: a warm interpreter that forks cells and never sees a payload.

It gets descriptors only: what a cell is to run reaches the cell over a socket of its own. So nothing that one cell
was given can be found in the memory of another.
"""
import gc
import os
import signal
import socket
import struct
import sys

PID = struct.Struct("=i")

# What answers import most, so that a fork has it already.
PRELOADED = (
    "abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions",
    "functools", "hashlib", "heapq", "io", "itertools", "json", "linecache", "math", "operator", "random", "re",
    "string", "struct", "threading", "time", "traceback", "typing",
)


def preload():
    for name in PRELOADED:
        __import__(name)
    from runner import cell  # noqa: F401

    gc.collect()
    gc.freeze()


def serve(connection):
    """Forks one cell per message until the supervisor is gone."""
    from runner.cell import main as cell_main

    while True:
        message, fds, _flags, _address = socket.recv_fds(connection, 1, 3)
        if not message:
            os._exit(0)
        middle = os.fork()
        if middle == 0:
            _fork_cell(connection, fds, cell_main)
        for fd in fds:
            os.close(fd)
        os.waitpid(middle, 0)


def _fork_cell(connection, fds, cell_main):
    """Forks once more and leaves, so that the cell belongs to process 1, which alone learns how it ends."""
    status = 0
    try:
        pid = os.fork()
        if pid == 0:
            connection.close()
            cell_main(*fds)
        connection.send(PID.pack(pid))
    except BaseException:
        status = 70
    os._exit(status)


class ZygoteLost(Exception):
    """It was killed; a new one must be started before the next cell."""


class Zygote:
    """The supervisor's side: starts a zygote, asks it for cells."""

    def __init__(self, command):
        self.command = command
        self.pid = None
        self.connection = None

    def fork_from_here(self):
        """Only while this process has seen no payload."""
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            mine.close()
            _leave_supervisor(theirs)
        theirs.close()
        self._keep(mine)

    def start_fresh(self, hash_seed):
        """Starts a new interpreter, for a hash seed of its own or in place of one that was killed."""
        self.stop()
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.set_inheritable(theirs.fileno(), True)
        environment = {"PYTHONHASHSEED": str(hash_seed), "ETUDE_ZYGOTE": str(theirs.fileno())}
        null = os.open("/dev/null", os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
        self.pid = os.posix_spawn(self.command[0], self.command, environment, file_actions=actions)
        os.close(null)
        theirs.close()
        self._keep(mine)

    def _keep(self, connection):
        connection.settimeout(10)
        self.connection = connection

    def stop(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def fork_cell(self, fds):
        """Answers the new cell's pid. Raises ZygoteLost."""
        if self.connection is None:
            raise ZygoteLost()
        try:
            socket.send_fds(self.connection, [b"f"], fds)
            answer = self.connection.recv(PID.size)
        except OSError as error:
            self.stop()
            raise ZygoteLost() from error
        if len(answer) != PID.size:
            self.stop()
            raise ZygoteLost()
        return PID.unpack(answer)[0]


def _leave_supervisor(connection):
    """In the fork: forgets the supervisor's descriptors, then serves."""
    try:
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        keep = connection.fileno()
        os.closerange(3, keep)
        os.closerange(keep + 1, 4096)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        serve(connection)
    finally:
        os._exit(70)


def main_fresh():
    """A zygote that was started by exec."""
    from runner.hiding import set_readable

    set_readable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fd = int(os.environ.pop("ETUDE_ZYGOTE"))
    sys.dont_write_bytecode = True
    preload()
    serve(socket.socket(fileno=fd))
