"""Process 1's side of a session's interpreter: starts it, hands it cells, reads its reports, and freezes it between cells."""
import json
import math
import os
import select

import _signal

from runner import processes
from runner.frames import FrameReader
from runner.kernel import send_fds
from runner.outcome import DEPTH_MAX, DISPLAYS_MAX, DISPLAY_BYTES_MAX, MEDIA_MAX, bounded_error, document, has_too_many_values
from runner.zygote import sealed

# The interpreter keeps to these bounds by itself. Whoever sends so much more forges frames, and is not read any longer.
DROPPED_MAX = 10_000
LATE_READS_MAX = 1000
FRAME_BYTES_MAX = DISPLAY_BYTES_MAX + 64 * 1024
# The kernel's limit on CPU time has whole seconds and is the second line; the first are the looks of the run.
CPU_SLACK_S = 2
CPU_UNLIMITED_MS = 10**12


class SessionKernel:
    """One interpreter that keeps its names from cell to cell. `cell` is its SpareCell, None while there is none.

    Between cells it is stopped by SIGSTOP: no code runs that nobody watches, and what its threads would print, they
    print while the next cell runs. `processes_apart` is what its limit on processes must not count.
    """

    def __init__(self, processes_apart):
        self.processes_apart = processes_apart
        self.cell = None
        self.pidfd = None
        # Of the cell that runs or ran last; reports bear it, so that what is late is not taken for the next cell's.
        self.number = 0
        self.reader = FrameReader(FRAME_BYTES_MAX)
        self.broken = False
        self._begin()

    def ensure_started(self, pool, limits):
        """True when an interpreter was started, which has no names yet. Raises what `pool.take()` raises, and OSError."""
        if self.cell is not None and not self._has_ended():
            return False
        self.lost()
        self.reader = FrameReader(FRAME_BYTES_MAX)
        self.broken = False
        self.cell = pool.take()
        try:
            self.pidfd = os.pidfd_open(self.cell.pid)
            # Its CPU time is limited anew for each cell, by `start_cell`.
            limits = dict(limits, cpuMs=CPU_UNLIMITED_MS)
            self.cell.start({"role": "session", "limits": limits, "processesApart": self.processes_apart})
        except OSError:
            self.lost()
            raise
        return True

    def start_cell(self, run, limits):
        """Hands `run["code"]` over; it runs from here on. Raises OSError when the interpreter is gone: call `lost()`."""
        self._take_late_reports()
        if self.broken:
            raise OSError("what the interpreter reports is malformed")
        self._begin()
        cell = {"number": self.number, "code": run["code"], "cpuS": self._cpu_limit_s(limits["cpuMs"])}
        source = sealed(json.dumps(cell).encode("ascii"))
        try:
            self._signal(_signal.SIGCONT)
            send_fds(self.cell.control, b"c", [source])
        finally:
            os.close(source)

    def feed(self, data):
        """What the bytes from `cell.control` say, as a list of events:

        {"type": "display", "data": {...}}; {"type": "ended", "exitCode": n, "error": {...} or None} once, and it is frozen;
        {"type": "malformed"} once: it can't be trusted to end, so stop the run and call `lost()`.
        """
        events = []
        try:
            # Once it is over, a thread may have begun a report that it ends while the next cell runs.
            for body in self.reader.feed(data):
                events += [] if self.over else self._events_of(_document(body), len(body))
        except (ValueError, RecursionError):
            self.over = self.broken = True
            events.append({"type": "malformed"})
        return events

    def interrupt(self):
        """Ctrl-C: for the interpreter and the processes that it started. Before its cell has begun, as soon as it has."""
        if not self.began:
            self.interrupt_asked = True
        elif self.cell is not None and not self._has_ended():
            try:
                os.killpg(self.cell.pid, _signal.SIGINT)
            except OSError:
                self._signal(_signal.SIGINT)

    def pause(self):
        """Stops it until the next cell starts. `feed` does so when a cell has ended."""
        self._signal(_signal.SIGSTOP)

    def cpu_ms(self):
        """CPU time of the interpreter and of the processes that it waited for, since it was started."""
        if self.cell is None:
            return 0.0
        try:
            return processes.cpu_ms_of(processes.stat_fields(self.cell.pid))
        except (FileNotFoundError, ProcessLookupError):
            return 0.0

    def lost(self):
        """Ends it, if it has not ended by itself; the next `ensure_started` starts another."""
        self._signal(_signal.SIGKILL)
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
        if self.cell is not None:
            self.cell.close()
            self.cell = None

    def surrender(self):
        """Ends it, and hands over its cell: what it printed may still have to be read from there."""
        cell, self.cell = self.cell, None
        self.lost()
        return cell

    def _begin(self):
        self.number += 1
        self.bytes = 0
        self.displays = 0
        self.dropped = 0
        self.began = False
        self.interrupt_asked = False
        self.over = False

    def _events_of(self, frame, size):
        if type(frame.get("cell")) is not int or not 0 <= frame["cell"] <= self.number:
            raise ValueError("a report of no cell")
        if frame["cell"] < self.number:
            return self._drop()
        if frame.get("type") == "display":
            return self._display(frame.get("data"), size)
        if frame.get("type") == "began":
            return self._cell_began()
        if frame.get("type") != "ended":
            raise ValueError("an unknown report")
        self.over = True
        self.pause()
        dropped = self.dropped + _count(frame.get("dropped"))
        notice = [_said("%d more outputs were dropped: a cell may show %d, of 8 MiB together" % (dropped, DISPLAYS_MAX))] if dropped else []
        return [*notice, {"type": "ended", "exitCode": _count(frame.get("exitCode")) & 0xFF, "error": bounded_error(frame.get("error"))}]

    def _cell_began(self):
        if self.began:
            raise ValueError("a second beginning")
        self.began = True
        if self.interrupt_asked:
            self.interrupt()
        return []

    def _display(self, data, size):
        if type(data) is not dict or len(data) > 2 * MEDIA_MAX or type(data.get("text/plain")) is not str:
            raise ValueError("a malformed display")
        self.bytes += size
        self.displays += 1
        if self.displays > DISPLAYS_MAX or self.bytes > DISPLAY_BYTES_MAX:
            return self._drop()
        return [{"type": "display", "data": data}]

    def _cpu_limit_s(self, cpu_ms):
        """The limit counts from the start of the process, which sets it itself: nobody sets limits of others here."""
        return math.ceil((self.cpu_ms() + cpu_ms) / 1000) + CPU_SLACK_S

    def _drop(self):
        self.dropped += 1
        if self.dropped > DROPPED_MAX:
            raise ValueError("reports without end")
        return []

    def _take_late_reports(self):
        """What threads sent after the end of the last cell. The interpreter is stopped, so there is an end to it."""
        try:
            for _ in range(LATE_READS_MAX):
                data = self.cell.control.recv(65536)
                if not data:
                    return
                self.feed(data)
        except BlockingIOError:
            pass

    def _signal(self, number):
        if self.pidfd is not None:
            try:
                _signal.pidfd_send_signal(self.pidfd, number)
            except ProcessLookupError:
                pass

    def _has_ended(self):
        return self.pidfd is None or bool(select.select([self.pidfd], [], [], 0)[0])


def _document(body):
    """Raises ValueError for all that would not be JSON to everybody who reads it after us."""
    if has_too_many_values(body):
        raise ValueError("a report of too many values")
    # The frame and its data stand around what was displayed.
    return document(body, DEPTH_MAX + 4)


def _count(value):
    return value if type(value) is int and 0 <= value < 2**31 else 0


def _said(text):
    return {"type": "display", "data": {"text/plain": text}}
