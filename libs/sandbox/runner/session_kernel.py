"""Process 1's side of a session's interpreter: starts it, hands it cells, reads its reports, and freezes it between cells."""
import json
import os

import _signal

from runner import processes
from runner.frames import FrameReader
from runner.kernel import send_fds
from runner.outcome import DEPTH_MAX, DISPLAYS_MAX, DISPLAY_BYTES_MAX, bounded_error, document, has_too_many_values
from runner.zygote import sealed

# An honest interpreter keeps to its bounds; more reports are forged. One display more says how many were left out.
REPORTED_DISPLAYS_MAX = DISPLAYS_MAX + 1
REPORTED_BYTES_MAX = DISPLAY_BYTES_MAX + 64 * 1024
CPU_UNLIMITED_MS = 10**12


class SessionKernel:
    """One interpreter that keeps its names from cell to cell. `cell` is its SpareCell, None while there is none.

    Between cells it is stopped by SIGSTOP: no code runs that nobody watches, and what its threads would print, they
    print while the next cell runs. `processes_apart` is what its limit on processes must not count.
    """

    def __init__(self, processes_apart):
        self.processes_apart = processes_apart
        self.cell = None
        # Whether the cell has ended, so that further reports are ignored.
        self.over = True

    def ensure_started(self, pool, limits):
        """True when an interpreter was started, which has no names yet. Raises what `pool.take()` raises, and OSError."""
        if self.cell is not None and not processes.has_ended(self.cell.pid):
            return False
        self.lost()
        self.reader = FrameReader(REPORTED_BYTES_MAX)
        # Number of the current or last cell. Reports carry it, so that late ones are not taken for the next cell's.
        self.number = 0
        self.cell = pool.take()
        try:
            # Its processor time counts from each cell anew, which only the looks of the run can do.
            self.cell.start({"role": "session", "limits": dict(limits, cpuMs=CPU_UNLIMITED_MS), "processesApart": self.processes_apart})
        except OSError:
            self.lost()
            raise
        return True

    def start_cell(self, code):
        """Hands the code over; it runs from here on. Raises OSError when the interpreter is gone."""
        self.number += 1
        self.bytes = 0
        self.displays = 0
        self.began = False
        self.interrupt_asked = False
        self.over = False
        source = sealed(json.dumps({"number": self.number, "code": code}).encode("ascii"))
        try:
            processes.send_signal(self.cell.pid, _signal.SIGCONT)
            send_fds(self.cell.control, b"c", [source])
        finally:
            os.close(source)

    def feed(self, data):
        """Parses bytes from `cell.control` into a list of reports:

        {"type": "display", "data": {...}}; {"type": "ended", "exitCode": n, "error": {...} or None} once, and it is stopped.

        Raises ValueError, RecursionError for what is malformed: it can't be trusted to end, so stop the run and call `lost()`.
        """
        reports = []
        for body in self.reader.feed(data):
            if not self.over:
                reports += self._reports_of(_document(body), len(body))
        return reports

    def interrupt(self):
        """Ctrl-C: for the interpreter and the processes that it started. Before its cell has begun, as soon as it has."""
        self.interrupt_asked = True
        if self.began and self.cell is not None:
            try:
                os.killpg(self.cell.pid, _signal.SIGINT)
            except ProcessLookupError:
                pass

    def cpu_ms(self):
        """CPU time of the interpreter and of the processes that it waited for, since it was started."""
        if self.cell is None:
            return 0.0
        try:
            return processes.cpu_ms_of(processes.stat_fields(self.cell.pid))
        except (FileNotFoundError, ProcessLookupError):
            return 0.0

    def lost(self):
        """Ends the interpreter; the next `ensure_started` starts another."""
        if self.cell is not None:
            self.surrender().close()

    def surrender(self):
        """Ends the interpreter and returns its cell, whose output may still have to be read."""
        cell, self.cell = self.cell, None
        self.over = True
        processes.kill(cell.pid)
        return cell

    def _reports_of(self, frame, size):
        kind = frame.get("type")
        if frame.get("cell") != self.number:
            return []
        if kind == "display":
            self.bytes += size
            self.displays += 1
            data = frame.get("data")
            if type(data) is not dict or type(data.get("text/plain")) is not str:
                raise ValueError("a malformed display")
            if self.displays > REPORTED_DISPLAYS_MAX or self.bytes > REPORTED_BYTES_MAX:
                raise ValueError("more displays than an interpreter shows")
            return [{"type": "display", "data": data}]
        if kind == "began" and not self.began:
            self.began = True
            if self.interrupt_asked:
                self.interrupt()
            return []
        if kind != "ended":
            raise ValueError("an unknown report")
        self.over = True
        processes.send_signal(self.cell.pid, _signal.SIGSTOP)
        code = frame.get("exitCode")
        return [{"type": "ended", "exitCode": code & 0xFF if type(code) is int else 1, "error": bounded_error(frame.get("error"))}]


def _document(body):
    """Raises ValueError for all that would not be JSON to everybody who reads it after us."""
    if has_too_many_values(body):
        raise ValueError("a report of too many values")
    # The frame adds levels around the displayed value.
    return document(body, DEPTH_MAX + 4)
