"""Cells that were forked ahead of time and wait for a payload."""
import json
import os

import _signal

from runner.descriptors import send_fds, socket_pair


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
        source = _in_memory(json.dumps(payload).encode("ascii"))
        text = os.open("/dev/null", os.O_RDONLY) if stdin is None else _in_memory(stdin)
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


def _in_memory(data):
    fd = os.memfd_create("etude")
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
