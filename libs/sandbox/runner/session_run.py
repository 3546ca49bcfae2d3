"""A run in a session's interpreter, which outlives the run if possible.

Between cells the interpreter is stopped by SIGSTOP, since its code would run without limits. Its threads continue while
the next cell runs.
"""
import json
import os
import time
from contextlib import suppress

import _signal

from runner import processes
from runner.frames import FrameReader
from runner.kernel import send_fds
from runner.outcome import (
    ALL_ARGUMENTS_BYTES_MAX, ANSWER_BYTES_MAX, ARGUMENTS_BYTES_MAX, ARGUMENTS_DEPTH_MAX, CALLS_MAX, DEPTH_MAX, DISPLAYS_MAX,
    DISPLAY_BYTES_MAX, bounded_error, document, has_too_many_values, is_shallow,
)
from runner.run import Run
from runner.workspace import closing
from runner.zygote import sealed

# If a cell has not ended this long after its interrupt, it is killed with its interpreter. On busy cores a cell needs a while to end.
INTERRUPT_S = 0.5
# The longest report that an honest interpreter sends.
REPORT_BYTES_MAX = DISPLAY_BYTES_MAX + 64 * 1024
CPU_UNLIMITED_MS = 10**12
# Longest wait for the answer to a tool call. It doesn't count as wall time of the cell.
ANSWER_WAIT_S = 15 * 60
NO_STATE = {"values": [], "observations": [], "failedApproaches": []}


class SessionRun(Run):
    """A run that ends with the interpreter's report or with the interpreter. To stop it and keep the interpreter, the cell is interrupted."""

    def __init__(self, execution, *rest):
        super().__init__(execution, *rest)
        self.interrupted = None
        self.interrupted_at = None
        self.began = False
        # The Ended of the cell, and its error, once they are reported. Once the run is `over`, reports are ignored.
        self.ended = None
        self.error = None
        self.over = False
        self.shown = 0
        self.shown_bytes = 0
        self.dropped = 0
        self.state_lost = False
        self.scratchpad = None
        # Number of the last tool call, and the time since when it waits for its answer. None: no call waits.
        self.calls = 0
        self.waiting_since = None
        self.arguments_bytes = 0
        self.execution.take_answer = self._take_answer

    def _start_cells(self):
        pool = self.pool
        if pool.session is None or processes.has_ended(pool.session.pid):
            pool.lose_session()
            pool.session = pool.take()
            pool.session.reports = FrameReader(REPORT_BYTES_MAX)
            # CPU time is limited per cell. The run measures it, since the kernel's limit would count all cells together.
            limits = dict(self.limits, cpuMs=CPU_UNLIMITED_MS)
            pool.session.start({"role": "session", "limits": limits})
            self.state_lost, pool.session_began = pool.session_began, True
        self.cpu_before_ms = pool.session_cpu_ms()
        pool.session_cells += 1
        with closing(sealed(json.dumps({"number": pool.session_cells, **self._cell_request()}).encode("ascii"))) as source:
            processes.send_signal(pool.session.pid, _signal.SIGCONT)
            send_fds(pool.session.control, b"c", [source])
        return pool.session, None

    def _cell_request(self):
        request = {name: self.request[name] for name in ("code", "tools", "scratchpad") if name in self.request}
        if "scratchpad" in request:
            request["scratchpad"] = self.pool.scratchpad or request["scratchpad"] or NO_STATE
        return request

    def _streams(self):
        # Displays first: a display is sent only after the text before it was read (`session_cell.Reports.display`).
        return {self.answer.control.fileno(): self.report, **super()._streams()}

    def _take_report(self, data):
        """Raises ValueError, RecursionError for a malformed report. Then the run ends, since the interpreter may never report its end."""
        try:
            for body in self.answer.reports.feed(data):
                if not self.over:
                    if has_too_many_values(body):
                        raise ValueError("a report of too many values")
                    # The frame adds levels of nesting around the displayed value.
                    self._take(document(body, DEPTH_MAX + 4), len(body))
        except (ValueError, RecursionError):
            self.decided = True
            raise

    def _take(self, report, size):
        kind = report.get("type")
        if report.get("cell") != self.pool.session_cells:
            return
        if kind == "display":
            data = report.get("data")
            if type(data) is not dict or type(data.get("text/plain")) is not str:
                raise ValueError("a malformed display")
            if self.shown == DISPLAYS_MAX or self.shown_bytes + size > DISPLAY_BYTES_MAX:
                self.dropped += 1
                return
            self.shown += 1
            self.shown_bytes += size
            self.output.tell()
            self.execution.add("display", run=self.index, data=data)
        elif kind == "tool_call":
            self._take_call(report, size)
        elif kind == "began" and not self.began:
            self.began = True
            if self.interrupted:
                self._interrupt()
        elif kind == "ended":
            if self.dropped:
                text = "%d more outputs were dropped: a cell may show %d, of 8 MiB together" % (self.dropped, DISPLAYS_MAX)
                self.execution.add("display", run=self.index, data={"text/plain": text})
            self.over = self.decided = True
            processes.send_signal(self.answer.pid, _signal.SIGSTOP)
            code = report.get("exitCode")
            self.ended = processes.Ended(code & 0xFF if type(code) is int else 1)
            self.error = bounded_error(report.get("error"))
            if "scratchpad" in report and "scratchpad" in self.request:
                self.scratchpad = self.pool.scratchpad = report["scratchpad"]
        else:
            raise ValueError("an unknown report")

    def _take_call(self, report, size):
        number, tool, arguments = report.get("number"), report.get("tool"), report.get("arguments")
        # Numbers may have gaps, since a call that is interrupted before it is sent already has its number.
        is_numbered = type(number) is int and self.calls < number <= CALLS_MAX
        self.arguments_bytes += size
        # The frame has some bytes in addition to the arguments.
        is_small = size <= ARGUMENTS_BYTES_MAX + 4096 and self.arguments_bytes <= ALL_ARGUMENTS_BYTES_MAX
        is_known = any(known["name"] == tool for known in self.request["tools"])
        if not (is_numbered and is_small and is_known and type(arguments) is dict and is_shallow(arguments, ARGUMENTS_DEPTH_MAX)):
            raise ValueError("a call that no interpreter makes")
        if self.interrupted:
            # An interrupted cell gets no more time by calling tools.
            return
        self._stop_waiting()
        self.calls = number
        self.waiting_since = time.monotonic()
        self.left = self.deadline - self.waiting_since
        self.deadline = self.waiting_since + ANSWER_WAIT_S
        self.output.tell()
        self.execution.add("tool_call", run=self.index, number=number, tool=tool, arguments=arguments)

    def _take_answer(self, number, frame):
        """Hands the answer to the call that waits. An answer with another number, such as a repeated answer, has no effect."""
        if self.waiting_since is None or number != self.calls or self.over or self.interrupted:
            return
        self._stop_waiting()
        answer = {"error": str(frame["error"])} if "error" in frame else {"result": frame.get("result")}
        body = json.dumps({"cell": self.pool.session_cells, "answers": number, **answer})
        if len(body) > ANSWER_BYTES_MAX:
            error = "the answer has %d bytes as JSON, over the limit of %d" % (len(body), ANSWER_BYTES_MAX)
            body = json.dumps({"cell": self.pool.session_cells, "answers": number, "error": error})
        # Fails if the interpreter has ended or does not read.
        with closing(sealed(body.encode("ascii"))) as source, suppress(OSError):
            send_fds(self.answer.control, b"a", [source])

    def _stop_waiting(self):
        if self.waiting_since is not None:
            self.waiting_since = None
            self.deadline = time.monotonic() + self.left

    def _stop(self, reason):
        """Interrupts the cell, so that its names survive. Stops the run if the cell then has not ended within INTERRUPT_S."""
        now = time.monotonic()
        if self.interrupted is None:
            self.interrupted = reason
            self.interrupted_at = now
            if self.began:
                self._interrupt()
        if now >= self.interrupted_at + INTERRUPT_S:
            self.stopped = self.interrupted
        else:
            self.turn(self.interrupted_at + INTERRUPT_S)

    def _interrupt(self):
        with suppress(ProcessLookupError):
            os.killpg(self.answer.pid, _signal.SIGINT)

    def _note_how_cells_ended(self):
        if self.ended:
            self.memory_peak_kib = max(self.memory_peak_kib, processes.measure(self.pool.apart()).memory_kib)
            return
        super()._note_how_cells_ended()
        self.over = self.state_lost = True
        # `execute` still reads the interpreter's output, and then closes its pipes.
        self.cells.append(self.answer)
        processes.kill(self.answer.pid)
        self.pool.session = None
        self.pool.session_began = False

    def _conclude(self, result, ended, stderr):
        if self.ended:
            ended = self.ended
            result["exitCode"] = ended.exit_code
            if self.error:
                result["error"] = self.error
        if self.state_lost:
            result["stateLost"] = True
        elif self.scratchpad:
            result["scratchpad"] = self.scratchpad
        stopped = self.stopped or (self.ended and self.interrupted)
        result["exit"] = stopped or self._reason(ended, stderr, result.get("error"))
