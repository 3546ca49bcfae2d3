"""Cells that were forked ahead of time and wait for a payload."""
import fcntl
import json
import os

import _signal

from runner.descriptors import send_fds, socket_pair

F_ADD_SEALS, SEALS = 1033, 0xF


class SpareCell:
    """One waiting cell and the supervisor's ends of its pipes."""

    def __init__(self, fork):
        """`fork(fds)` answers the pid of a new cell. Raises what it raises, and OSError."""
        self.control, control = socket_pair()
        self.stdout, stdout = os.pipe()
        self.stderr, stderr = os.pipe()
        try:
            self.pid = fork([control.fileno(), stdout, stderr])
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
        """Hands the payload over; the cell runs from here on. Raises OSError when the cell was killed while it waited."""
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
    """An in-memory file that the code can't make larger: its pages would count against no limit."""
    fd = os.memfd_create("etude", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
