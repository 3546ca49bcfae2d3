"""The interpreter of a session: runs cells one after another in one `__main__`. User code runs in this process.

Over its socket it receives a file descriptor with the code of a cell. It reports the cell's begin, displays and end.
"""
import builtins
import fcntl
import importlib
import os
import struct
import sys
import threading
import warnings
from time import monotonic, sleep

import _ast
import _signal

from runner import answer, display
from runner.frames import encode_frame
from runner.outcome import DISPLAY_BYTES_MAX, has_too_many_values
from runner.scratchpad import Memory
from runner.tools import Calls, read_message, tool_names

# The last ended children are not reaped, so that the code can still read their exit status.
LEFT_BEHIND_MAX = 4
ENVIRONMENT = {"MPLBACKEND": "Agg", "MPLCONFIGDIR": "/tmp/.matplotlib"}
FIONREAD = 0x541B
# Longest wait before a display until process 1 has read the text before it. Bounded, since threads may print without end.
PRINTED_WAIT_S = 1


def run(control):
    """Runs cells until process 1 closes the socket."""
    session = Session(control)
    session.install()
    while True:
        cell = read_message(control)
        # Any other message is the answer to a tool call of an ended cell, and is dropped.
        if "code" in cell:
            session.execute(cell)


class Session:
    def __init__(self, control):
        self.interrupts = Interrupts()
        self.reports = Reports(control, self.interrupts)
        self.module = answer.new_module("__main__")
        del self.module.__file__
        self.pid = os.getpid()
        self.file = ""
        self.shown = []
        self.calls = Calls(control, self.reports._send)
        self.tools = {}
        # None until a cell comes with a scratchpad.
        self.memory = None
        self.kept = None

    def install(self):
        os.environ.update(ENVIRONMENT)
        sys.argv[:] = [""]
        # Callers see the output of a cell while it runs.
        sys.stdout.reconfigure(line_buffering=True)
        builtins.display = self.show
        builtins.input = _no_input
        # Hides the warning of pyplot.show(), since open figures are shown when the cell ends.
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")

    def execute(self, cell):
        number = cell["number"]
        self.file = "<cell %d>" % number
        self.shown = []
        _reap_left_behind()
        self.reports.begin(number)
        self.interrupts.pending = False
        # An earlier cell may have replaced the handler.
        _signal.signal(_signal.SIGINT, self.interrupts.handle)
        # Lets the cell import modules that were written or uploaded just now.
        importlib.invalidate_caches()
        self.calls.begin(number)
        self.kept = None
        exit_code, error = self._guarded(lambda: self._run(cell))
        self.calls.end()
        for act in (self._show_figures, self._keep) if os.getpid() == self.pid else ():
            code, raised = self._guarded(act)
            exit_code, error = exit_code or code, error or raised
        answer.flush()
        if os.getpid() != self.pid:
            # This process is a fork that the cell made. The session continues only in the parent.
            os._exit(exit_code)
        self.reports.ended(exit_code, error, self.kept)

    def show(self, *objects):
        """display(): shows each value in all its forms."""
        for value in objects:
            self.reports.display(display.bundle_of(value))
            if hasattr(type(value), "savefig"):
                self.shown.append(value)

    def _guarded(self, act):
        """Runs `act` so that an interrupt can end it. Returns its exit code, and its error or None."""
        try:
            try:
                self.interrupts.running = True
                act()
            finally:
                self.interrupts.running = False
        except BaseException as raised:
            self.interrupts.running = False
            left = isinstance(raised, SystemExit)
            error = None if left else answer.describe(raised, self.file)
            code = answer.report_exception(raised)
            return (code, None) if left else (code or 1, error)
        return 0, None

    def _run(self, cell):
        source = cell["code"]
        self.reports.began()
        self._provide(cell)
        answer.show_in_tracebacks(source, self.file)
        tree = compile(source, self.file, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
        is_shown = tree.body and isinstance(tree.body[-1], _ast.Expr) and not source.rstrip().endswith(";")
        last = tree.body.pop() if is_shown else None
        exec(compile(tree, self.file, "exec", dont_inherit=True), self.module.__dict__)
        if last is not None:
            value = eval(compile(_ast.Expression(last.value), self.file, "eval", dont_inherit=True), self.module.__dict__)
            if value is not None:
                builtins._ = value
                self.show(value)

    def _provide(self, cell):
        namespace = self.module.__dict__
        for name in [name for name, value in self.tools.items() if namespace.get(name) is value]:
            del namespace[name]
        self.tools = tool_names(self.calls, cell.get("tools"))
        namespace.update(self.tools)
        if "scratchpad" in cell:
            if self.memory is None:
                self.memory = Memory(namespace)
                self.memory._restore(cell["scratchpad"])
            self.memory._provide(self.tools)

    def _keep(self):
        self.kept = self.memory and self.memory._state()

    def _show_figures(self):
        """Shows and closes open figures of matplotlib, if it is imported, except figures that the code has shown itself."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None or not hasattr(pyplot, "get_fignums"):
            return
        try:
            for number in pyplot.get_fignums():
                figure = pyplot.figure(number)
                if not any(figure is other for other in self.shown):
                    self.show(figure)
        finally:
            pyplot.close("all")


def _no_input(_prompt=""):
    raise EOFError("a cell has no stdin, so input() can't read anything: put the value into the code")


def _reap_left_behind():
    """Reaps ended children of earlier cells. Nothing else waits for them, and each still counts as a process."""
    try:
        with open("/proc/self/task/%d/children" % os.getpid(), encoding="ascii") as file:
            children = file.read().split()
        for pid in children[:-LEFT_BEHIND_MAX]:
            os.waitpid(int(pid), os.WNOHANG)
    except Exception:
        # The code may have replaced any function used here. Then the children stay, and the session continues.
        pass


class Interrupts:
    """The handler of SIGINT. An interrupt ends a cell, but not the loop of `run`, and waits while a report is being sent."""

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
    def __init__(self, control, interrupts):
        self.control = control
        self.interrupts = interrupts
        self.lock = threading.Lock()
        self.pid = os.getpid()
        self.main = threading.get_ident()
        self.begin(0)

    def begin(self, cell):
        """`cell`: the number that process 1 gave to the cell."""
        self.cell = cell

    def display(self, bundle):
        if os.getpid() != self.pid:
            # A fork of the interpreter can't report displays, so it prints their text.
            print(bundle["text/plain"])
            return
        self._await_printed()
        frame = self._display(bundle)
        if len(frame) > DISPLAY_BYTES_MAX or has_too_many_values(frame):
            frame = self._display({"text/plain": bundle["text/plain"] + "\n(its other forms are too large to be shown)"})
        self._send(frame)

    def began(self):
        """Reports that an interrupt would end the cell from now on. Process 1 sends no interrupt before this report."""
        self._send(encode_frame({"type": "began", "cell": self.cell}))

    def ended(self, exit_code, error, scratchpad):
        report = {"type": "ended", "cell": self.cell, "exitCode": exit_code, "error": error}
        self._send(encode_frame({**report, "scratchpad": scratchpad} if scratchpad else report))

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
    """How many bytes process 1 has not read yet; 0 if the code has closed the descriptor."""
    try:
        return struct.unpack("=i", fcntl.ioctl(fd, FIONREAD, bytes(4)))[0]
    except OSError:
        return 0
