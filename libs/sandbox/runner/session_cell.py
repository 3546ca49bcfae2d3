"""The interpreter of a session: runs cells one after another in one `__main__`. User code is in this process.

Over its socket it gets a descriptor with the code of a cell, and sends displays and, last, how the cell ended.
"""
import __future__
import builtins
import gc
import json
import os
import resource
import sys
import warnings

import _ast
import _signal

from runner import answer, display
from runner.kernel import receive_fds
from runner.plain import described
from runner.session_reports import Interrupts, Reports

TOP_LEVEL_AWAIT = 0x2000
ONLY_AST = 0x400
COROUTINE = 0x80
ANNOTATIONS = __future__.annotations.compiler_flag
# How a few of the children that a cell left ended may still be asked for, by whoever started them.
LEFT_BEHIND_MAX = 4
ENVIRONMENT = {"MPLBACKEND": "Agg", "MPLCONFIGDIR": "/tmp/.matplotlib"}


def run(control):
    """Until process 1 closes the socket."""
    session = Session(control)
    session.install()
    while True:
        message, fds = receive_fds(control, 1)
        if not message or not fds:
            os._exit(0)
        with open(fds[0], "rb") as file:
            cell = json.loads(file.read())
        _limit_cpu(cell["cpuS"])
        session.execute(cell["number"], cell["code"])


def _limit_cpu(seconds):
    """The hard limit stays, or it could not be raised for the next cell."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


class Session:
    def __init__(self, control):
        self.interrupts = Interrupts()
        self.reports = Reports(control, self.interrupts)
        self.module = answer.new_module("__main__")
        del self.module.__file__
        self.pid = os.getpid()
        self.count = 0
        self.futures = 0
        self.loop = None
        # Of the cell that runs.
        self.shown = []

    def install(self):
        os.environ.update(ENVIRONMENT)
        sys.argv[:] = [""]
        # A cell is watched while it runs.
        sys.stdout.reconfigure(line_buffering=True)
        builtins.display = self.show
        builtins.input = _no_input
        # pyplot.show() has nothing to do here: figures are shown when the cell ends.
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")

    def execute(self, number, source):
        self.count += 1
        _reap_left_behind()
        self.reports.begin(number)
        self.interrupts.pending = False
        self.shown = []
        # Whatever the cell before did with it.
        _signal.signal(_signal.SIGINT, self.interrupts.handle)
        _forget_folders()
        exit_code, error = self._guarded(lambda: self._run(source, "<cell %d>" % self.count))
        if os.getpid() == self.pid:
            figures_code, figures_error = self._guarded(self._show_figures)
            exit_code, error = exit_code or figures_code, error or figures_error
        answer.flush()
        if os.getpid() != self.pid:
            # A fork that came back from the cell: the session goes on in its parent alone.
            os._exit(exit_code)
        self.reports.ended(exit_code, error)

    def show(self, *objects):
        """display(): shows each value as text and in the richer ways that it knows."""
        for value in objects:
            self.reports.display(display.bundle_of(value))
            if hasattr(type(value), "savefig"):
                self.shown.append(value)

    def _guarded(self, act):
        """Exit code and error of what may be interrupted."""
        try:
            try:
                self.interrupts.running = True
                act()
            finally:
                self.interrupts.running = False
        except BaseException as raised:
            self.interrupts.running = False
            return self._report(raised)
        return 0, None

    def _report(self, error):
        try:
            _clean_tracebacks(error)
        except Exception:
            # Exceptions of the code's own making may be anything; then it is printed as it is.
            pass
        if isinstance(error, SystemExit):
            return answer.report_exception(error), None
        described = _described(error, "<cell %d>" % self.count)
        return answer.report_exception(error) or 1, described

    def _run(self, source, file):
        self.reports.began()
        answer.show_in_tracebacks(source, file)
        tree = self._compiled(source, file, "exec", ONLY_AST)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], _ast.Expr) and not source.rstrip().endswith(";") else None
        codes = [self._compiled(tree, file, "exec")]
        self.futures |= codes[0].co_flags & ANNOTATIONS
        if last is not None:
            codes.append(self._compiled(_ast.Expression(last.value), file, "eval"))
        value = self._evaluate(codes)
        if last is not None and value is not None:
            builtins._ = value
            self.show(value)

    def _compiled(self, source, file, mode, flags=0):
        return compile(source, file, mode, flags | TOP_LEVEL_AWAIT | self.futures, dont_inherit=True)

    def _evaluate(self, codes):
        """The value of the last one."""
        if any(code.co_flags & COROUTINE for code in codes):
            return self._awaited(self._evaluate_in_loop(codes))
        return [eval(code, self.module.__dict__) for code in codes][-1]

    async def _evaluate_in_loop(self, codes):
        value = None
        for code in codes:
            value = eval(code, self.module.__dict__)
            if code.co_flags & COROUTINE:
                value = await value
        return value

    def _awaited(self, coroutine):
        """In one loop for all cells. Tasks that a cell left go on while a later one awaits something."""
        import asyncio

        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        except KeyboardInterrupt:
            if not task.done():
                # Its own clean-up comes first, as far as it gets before process 1 ends all of it.
                task.cancel()
                self.loop.run_until_complete(asyncio.wait([task]))
            raise KeyboardInterrupt from None

    def _show_figures(self):
        """Those of matplotlib, where the code has imported it and not shown them itself. None is there for the next cell."""
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
    raise EOFError("a cell has no stdin, so input() can't be answered: put the value into the code")


def _forget_folders():
    """Modules that were written or uploaded just now are found."""
    for finder in list(sys.path_importer_cache.values()):
        if hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()


def _clean_tracebacks(error):
    """Leaves only frames of the code in it and in what it came from."""
    trace = error.__traceback__
    first = trace
    while first is not None and not first.tb_frame.f_code.co_filename.startswith("<cell "):
        first = first.tb_next
    error.__traceback__ = first if first is not None else trace
    seen = []
    waiting = [error]
    while waiting and len(seen) < 1000:
        one = waiting.pop()
        if isinstance(one, BaseException) and not any(one is other for other in seen):
            seen.append(one)
            one.__traceback__ = _without_runner(one.__traceback__)
            waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def _without_runner(trace):
    kept = []
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0] != "runner":
            kept.append(trace)
        trace = trace.tb_next
    for one, following in zip(kept, [*kept[1:], None]):
        one.tb_next = following
    return kept[0] if kept else None


def _described(error, file):
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == file else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return described(error, line)


def _reap_left_behind():
    """Children that an earlier cell left were ended with it. Nobody waits for them, and each still counts as a process."""
    try:
        if len(_children()) <= LEFT_BEHIND_MAX:
            return
        popen = getattr(sys.modules.get("subprocess"), "Popen", None)
        for one in gc.get_objects() if popen else ():
            # Their objects learn how they ended before that is taken.
            if type(one) is popen and one.returncode is None:
                one.poll()
        for pid in _children()[:-LEFT_BEHIND_MAX]:
            os.waitpid(pid, os.WNOHANG)
    except Exception:
        # The code may have put anything in place of what this calls. Then they count on, and the session goes on.
        pass


def _children():
    """Of every thread, each thread's oldest first."""
    found = []
    for thread in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/children" % thread, encoding="ascii") as file:
            found += [int(pid) for pid in file.read().split()]
    return found
