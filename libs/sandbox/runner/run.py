"""One run: starts its cells, watches its limits, and makes its result."""
import os
import select
import time
from functools import partial

from runner import processes
from runner.connection import READ
from runner.execution import Output
from runner.frames import FrameReader
from runner.kernel import socket_pair
from runner.outcome import conclude, document, exit_reason, value_excess
from runner.workspace import space

LOOK_S = 0.025
# Output over its limit is dropped, since a correct program may print much. A run whose output exceeds both of the next two values is stopped.
OUTPUT_TIMES_MAX = 64
OUTPUT_DRAINED_BYTES = 16 * 1024 * 1024
# How far all processes together may exceed the memory limit. So a single process reaches its own limit first and gets a MemoryError.
MEMORY_SLACK_KIB = 32 * 1024
FILES_MAX = 50_000
REPORT_BYTES_MAX = 32 * 1024 * 1024
VALUE_DEPTH_MAX = 250


class Run:
    """One run of an execution, from its start to its result. `pool` has the cells. `turn(until)` serves the loop meanwhile."""

    def __init__(self, execution, index, pool, loop, turn):
        self.execution = execution
        self.index = index
        self.request = execution.request.runs[index]
        self.limits = execution.request.limits
        self.pool = pool
        self.loop = loop
        self.turn = turn
        self.cells = []
        self.reaped = {}
        self.ended_early = {}
        self.stopped = None
        self.decided = False
        self.processes_full = False
        self.disk_full = False
        self.memory_peak_kib = 0
        self.report = FrameReader(REPORT_BYTES_MAX)
        self.frame = None
        self.lied = False
        self.output = Output(self.limits["outputKiB"] * 1024, partial(execution.add, "output", run=index))

    def execute(self):
        """Returns a RunResult as a dict. Raises ZygoteLost, OSError if no cell could be started."""
        self.started = time.monotonic()
        self.deadline = self.started + self.limits["wallMs"] / 1000
        self.kills_before = processes.memory_kills()
        self.cpu_before_ms = self.pool.session_cpu_ms()
        self.answer, self.judge = self._start_cells()
        try:
            self._watch()
            self.wall_ms = (time.monotonic() - self.started) * 1000
            self._note_how_cells_ended()
            self._stop_everything()
            self._drain(self._streams())
            return self._result()
        finally:
            for cell in self.cells:
                cell.close()

    def _start_cells(self):
        request = self.request
        base = {"limits": self.limits}
        if request["kind"] != "checked":
            cell = self._cell()
            given = {name: value for name, value in request.items() if name not in ("kind", "stdin")}
            # Outside a session a cell keeps nothing, so it runs as a program.
            role = "program" if request["kind"] == "cell" else request["kind"]
            cell.start({**base, "role": role, **given}, request["stdin"].encode("utf-8", "replace"))
            return cell, None
        answer, judge = self._cell(), self._cell()
        ours, theirs = socket_pair()
        base.update(setup=request["setup"], entryPoint=request["entryPoint"])
        try:
            files = {os.path.normpath(file["path"]): file["contentBase64"] for file in self.execution.request.files}
            judge.start({**base, "role": "checker", "tests": request["tests"], "files": files}, peer=theirs)
            answer.start({**base, "role": "answer", "code": request["code"]}, peer=ours)
        finally:
            ours.close()
            theirs.close()
        return answer, judge

    def _cell(self):
        cell = self.pool.take()
        self.cells.append(cell)
        return cell

    def _watch(self):
        """Waits until the checker (or the answer, if there is no checker) has ended, or a limit is exceeded."""
        pidfd = os.pidfd_open((self.judge or self.answer).pid)
        streams = self._streams()
        self.loop.watch(pidfd, READ, partial(self._decide, streams))
        for fd, sink in streams.items():
            self.loop.watch(fd, READ, partial(self._ready, fd, sink))
        look = self.started + LOOK_S
        try:
            while not (self.decided or self.stopped or (self.judge and self.frame)):
                now = time.monotonic()
                if self.execution.cancelled:
                    self._stop("cancelled")
                elif now >= self.deadline:
                    self._stop("wall")
                elif now >= look:
                    self._look()
                    look = time.monotonic() + LOOK_S
                else:
                    self.turn(min(self.deadline, look, self.output.serve()))
        finally:
            for fd in (pidfd, *streams):
                self.loop.forget(fd)
            os.close(pidfd)

    def _stop(self, reason):
        self.stopped = reason

    def _decide(self, streams):
        self.decided = True
        self._drain({fd: sink for fd, sink in streams.items() if sink is self.report})

    def _ready(self, fd, sink):
        if not self._read(fd, sink):
            self.loop.forget(fd)

    def _streams(self):
        """File descriptors to read from, with their sinks. The output of a checker is not read."""
        streams = {self.answer.stdout: self.output.streams["stdout"], self.answer.stderr: self.output.streams["stderr"]}
        if self.judge:
            streams[self.judge.control.fileno()] = self.report
        elif self.request["kind"] == "call":
            streams[self.answer.control.fileno()] = self.report
        return streams

    def _read(self, fd, sink):
        """Reads once. Returns False at the end of the stream."""
        try:
            data = os.read(fd, 262144)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not data:
            return False
        if sink is self.report:
            try:
                self._take_report(data)
            except (ValueError, RecursionError):
                self.lied = True
            return not self.lied
        sink.feed(data)
        if sink.total > max(self.limits["outputKiB"] * 1024 * OUTPUT_TIMES_MAX, OUTPUT_DRAINED_BYTES):
            self.stopped = self.stopped or "output"
        return True

    def _take_report(self, data):
        """Raises ValueError, RecursionError for a report that no honest cell sends."""
        for frame in self.report.feed(data):
            if self.frame is not None or value_excess(frame, self.request):
                raise ValueError("the cell sent a second report, or a report that is too large")
            self.frame = document(frame, VALUE_DEPTH_MAX)

    def _look(self):
        processes.reap(self.reaped)
        load = processes.measure(self.pool.apart() - self.reaped.keys())
        self.memory_peak_kib = max(self.memory_peak_kib, load.memory_kib)
        self.processes_full = self.processes_full or load.processes >= self.limits["processes"]
        room = space()
        self.disk_full = self.disk_full or room.full
        if load.cpu_ms + self._ended_cpu_ms() > self.limits["cpuMs"]:
            self.stopped = "cpu"
        elif load.memory_kib > self.limits["memoryMiB"] * 1024 + MEMORY_SLACK_KIB:
            self.stopped = "oom"
        elif room.used_mib > self.limits["diskMiB"] or room.files > FILES_MAX:
            self.stopped = "disk"

    def _ended_cpu_ms(self):
        """CPU time of ended processes, less the time that a session's interpreter used before this run."""
        return sum(ended.cpu_ms for ended in self.reaped.values()) - self.cpu_before_ms

    def _note_how_cells_ended(self):
        """Call it before the runner kills anything, so that the runner's SIGKILL isn't taken for the end of the code."""
        processes.reap(self.reaped)
        deadline = time.monotonic() + 0.5
        while self._answer_is_ending() and self.answer.pid not in self.reaped and time.monotonic() < deadline:
            time.sleep(0.0005)
            processes.reap(self.reaped)
        self.ended_early = dict(self.reaped)

    def _answer_is_ending(self):
        """Whether the answer has exited or closed its socket to the checker, so that the kernel will soon report its end."""
        if self.stopped:
            return False
        error = (self.frame or {}).get("error") if self.judge else None
        return not self.judge or (type(error) is dict and error.get("type") == "AnswerLost")

    def _stop_everything(self):
        for cell in self.cells:
            if cell.pid not in self.reaped:
                processes.kill(cell.pid)
        processes.end_all_but(self.pool.kept() - self.reaped.keys())
        processes.reap(self.reaped)
        self.pool.forget(self.reaped)

    def _drain(self, streams):
        """Reads the rest of the pipes, after their writers have stopped."""
        for fd, sink in streams.items():
            while self._read(fd, sink) and select.select([fd], [], [], 0)[0]:
                continue

    def _result(self):
        cpu_ms = max(0.0, self._ended_cpu_ms() + self.pool.session_cpu_ms())
        ended = self.ended_early.get(self.answer.pid)
        stdout, stderr = self.output.streams["stdout"], self.output.streams["stderr"]
        printed = stderr.ending()
        result = {
            "exitCode": ended.exit_code if ended else None,
            "signal": ended.signal if ended else None,
            "stdout": stdout.rest(),
            "stderr": stderr.rest(),
            "stdoutCutBytes": stdout.cut,
            "stderrCutBytes": stderr.cut,
            "cpuMs": round(cpu_ms, 3),
            "wallMs": round(self.wall_ms, 3),
            "memoryPeakKiB": max([self.memory_peak_kib] + [e.peak_kib for e in self.reaped.values()]),
        }
        if not self.stopped and cpu_ms > self.limits["cpuMs"]:
            self.stopped = "cpu"
        self._conclude(result, ended, printed)
        if result["exit"] in ("signal", "nonzero") and processes.memory_kills() > self.kills_before:
            result["exit"] = "oom"
        return result

    def _conclude(self, result, ended, stderr):
        report = {} if self.lied or self.frame is None else self.frame
        conclude(result, self.request["kind"], report, self.stopped, partial(self._reason, ended, stderr))

    def _reason(self, ended, stderr, error):
        return exit_reason(ended, error, stderr, self.disk_full, self.processes_full)
