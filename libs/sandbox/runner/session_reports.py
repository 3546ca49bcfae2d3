"""Reports of a session's interpreter to process 1: the begin of each cell, its displays and its end. No interrupt cuts a report."""
import fcntl
import os
import struct
import threading
from time import monotonic, sleep

from runner import answer
from runner.frames import encode_frame
from runner.outcome import DISPLAYS_MAX, DISPLAY_BYTES_MAX, has_too_many_values

FIONREAD = 0x541B
# Longest wait for process 1 to read the text printed before a display, so that both keep their order. It reads at once unless
# it waits for a core. The wait is bounded, since threads may print without end.
PRINTED_WAIT_S = 1


class Interrupts:
    """SIGINT handling: an interrupt ends a cell, but not the loop around it, and never in the middle of a report."""

    def __init__(self):
        self.running = False
        self.held = False
        self.pending = False

    def handle(self, *_signal_and_frame):
        if self.held:
            self.pending = True
        elif self.running:
            raise KeyboardInterrupt

    def release(self):
        self.held = False
        if self.pending:
            self.pending = False
            self.handle()


class Reports:
    """Sends reports to process 1, which enforces the same bounds."""

    def __init__(self, control, interrupts):
        self.control = control
        self.interrupts = interrupts
        self.lock = threading.Lock()
        self.pid = os.getpid()
        self.main = threading.get_ident()
        self.begin(0)

    def begin(self, cell):
        """`cell` is process 1's number for it."""
        self.cell = cell
        self.bytes = 0
        self.displays = 0
        self.dropped = 0

    def display(self, bundle):
        if os.getpid() != self.pid:
            # A fork of the interpreter has no way to report; its text is better than nothing.
            print(bundle["text/plain"])
            return
        self._await_printed()
        frame = self._display(bundle)
        if self.bytes + len(frame) > DISPLAY_BYTES_MAX or has_too_many_values(frame):
            frame = self._display({"text/plain": bundle["text/plain"] + "\n(its other forms are too large to be shown)"})
        if self.displays == DISPLAYS_MAX or self.bytes + len(frame) > DISPLAY_BYTES_MAX:
            self.dropped += 1
            return
        self.displays += 1
        self.bytes += len(frame)
        self._send(frame)

    def began(self):
        """From here on an interrupt ends the cell, and none before: process 1 waits for this with its own."""
        self._send(encode_frame({"type": "began", "cell": self.cell}))

    def ended(self, exit_code, error):
        if self.dropped:
            text = "%d more outputs were dropped: a cell may show %d, of 8 MiB together" % (self.dropped, DISPLAYS_MAX)
            self._send(self._display({"text/plain": text}))
        self._send(encode_frame({"type": "ended", "cell": self.cell, "exitCode": exit_code, "error": error}))

    def _display(self, bundle):
        return encode_frame({"type": "display", "cell": self.cell, "data": bundle})

    def _await_printed(self):
        """Waits until process 1 has read the printed text, so that text and displays keep their order."""
        answer.flush()
        until = monotonic() + PRINTED_WAIT_S
        while (_unread(1) or _unread(2)) and monotonic() < until:
            sleep(0.00005)

    def _send(self, frame):
        main = threading.get_ident() == self.main
        self.interrupts.held = self.interrupts.held or main
        try:
            with self.lock:
                self.control.sendall(frame)
        finally:
            if main:
                self.interrupts.release()


def _unread(fd):
    """Bytes that process 1 has not read yet; 0 where the code closed it."""
    try:
        return struct.unpack("=i", fcntl.ioctl(fd, FIONREAD, bytes(4)))[0]
    except OSError:
        return 0
