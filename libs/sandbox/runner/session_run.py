"""A run in a session's interpreter, which outlives the run if possible."""
import time

from runner import processes
from runner.run import Run

# From the interrupt to the end of the interpreter: what shares its cores with many others needs a while to end by itself.
INTERRUPT_S = 0.5


class SessionRun(Run):
    """A run that ends with the interpreter's report, or with the interpreter. Only an interrupt stops it and keeps the interpreter."""

    def __init__(self, execution, *rest):
        super().__init__(execution, *rest)
        self.session = self.pool.session
        self.interrupted = None
        self.interrupted_at = None
        self.ended = None
        self.state_lost = False

    def _start_cells(self):
        if self.session.ensure_started(self.pool, self.limits):
            self.state_lost = self.pool.session_began
            self.pool.session_began = True
        self.cpu_before_ms = self.session.cpu_ms()
        self.session.start_cell(self.request["code"])
        return self.session.cell, None

    def _streams(self):
        # Displays first: a display comes only after the text before it was read (`session_reports.Reports.display`).
        return {self.answer.control.fileno(): self.report, **super()._streams()}

    def _take_report(self, data):
        try:
            for report in self.session.feed(data):
                if report["type"] == "ended":
                    self.ended = report
                    self.decided = True
                else:
                    self.output.tell()
                    self.execution.add("display", run=self.index, data=report["data"])
        except (ValueError, RecursionError):
            self.lied = self.decided = True

    def _stop(self, reason):
        """Interrupts first, so that the names survive. Stops the run if that doesn't help within INTERRUPT_S."""
        now = time.monotonic()
        if self.interrupted is None:
            self.interrupted = reason
            self.interrupted_at = now
            self.session.interrupt()
        if now >= self.interrupted_at + INTERRUPT_S:
            self.stopped = self.interrupted
        else:
            self.turn(self.interrupted_at + INTERRUPT_S)

    def _note_how_cells_ended(self):
        if self.ended:
            self.memory_peak_kib = max(self.memory_peak_kib, processes.measure(self.pool.apart()).memory_kib)
            return
        super()._note_how_cells_ended()
        self.cells.append(self.session.surrender())
        self.state_lost = True
        self.pool.session_began = False

    def _conclude(self, result, ended, stderr):
        if self.ended:
            ended = processes.Ended(self.ended["exitCode"])
            result["exitCode"] = ended.exit_code
            if self.ended["error"]:
                result["error"] = self.ended["error"]
        if self.state_lost:
            result["stateLost"] = True
        stopped = self.stopped or (self.ended and self.interrupted)
        result["exit"] = stopped or self._reason(ended, stderr, result.get("error"))
