"""A cell: a fork of the zygote that waits for its payload, sets its own limits, and runs one role."""
import io
import json
import os
import resource
import site
import sys

import _signal

from runner import answer, checker, serving, session_cell
from runner.kernel import close_others, receive_fds, refuse_memory_files, set_readable, socket_of
from runner.workspace import WORK

# Memory of an interpreter before the first line of an answer, added to the answer's limit.
BASE_MEMORY_MIB = 16
# Number of the runner's own processes, which have the answer's user: supervisor, zygote, middle fork of the zygote, and checker.
PROCESSES_APART = 4
STACK_BYTES = 120 * 1024 * 1024
# Folder of the runner's modules, from which answers must not import. A bundle has no such folder.
RUNNER_ROOT = os.path.dirname(os.path.dirname(globals().get("__file__") or ""))


def main(control_fd, stdout_fd, stderr_fd):
    """Runs until the process ends. The payload comes over `control_fd`; some roles report over it."""
    try:
        control = socket_of(control_fd)
        _prepare(stdout_fd, stderr_fd)
        go, fds = receive_fds(control, 3)
        if not go:
            os._exit(0)
        payload = _read_payload(fds[0])
        os.dup2(fds[1], 0)
        kept = [control.detach(), *fds[2:]]
        close_others(*kept)
        os.chdir(WORK)
        _take_limits(payload["limits"])
        _run(payload, kept)
    except BaseException as error:
        os.write(2, ("the sandbox could not start the run: %r\n" % (error,)).encode("utf-8", "replace"))
    finally:
        os._exit(70)


def _prepare(stdout_fd, stderr_fd):
    """Does all work that needs no payload in advance, so that it costs the run no time."""
    os.dup2(stdout_fd, 1)
    os.dup2(stderr_fd, 2)
    os.setsid()
    # From here on, the state is that of an interpreter that has just started.
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    _reset_interpreter()
    # The first compilation is slow, so it happens before a run waits for it.
    exec(compile("def f(a): return [a]\nf(1)", "<warm>", "exec"), {})


def _run(payload, kept):
    control = socket_of(kept[0])
    role = payload["role"]
    if role == "checker":
        _ignore_signals()
        checker.run(payload, socket_of(kept[1]), control)
    set_readable(True)
    if role == "call":
        answer.run_call(payload, control)
    if role == "session":
        session_cell.run(control)
    control.close()
    if role == "program":
        answer.run_program(payload)
    elif role == "command":
        answer.run_command(payload)
    elif role == "answer":
        serving.run_answer(payload, socket_of(kept[1]))
    raise ValueError("unknown role %r" % role)


def _read_payload(fd):
    with open(fd, "rb") as file:
        file.seek(0)
        return json.loads(file.read())


def _take_limits(limits):
    mib = 1024 * 1024
    cpu_s = limits["cpuMs"] // 1000 + 2
    for kind, amount in (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_DATA, (limits["memoryMiB"] + BASE_MEMORY_MIB) * mib),
        (resource.RLIMIT_STACK, STACK_BYTES),
        (resource.RLIMIT_NPROC, limits["processes"] + PROCESSES_APART),
        (resource.RLIMIT_NOFILE, limits["openFiles"]),
        (resource.RLIMIT_FSIZE, limits["fileSizeMiB"] * mib),
        (resource.RLIMIT_CORE, 0),
        # The host counts pending signals per user, so one run could use up the limit for all.
        (resource.RLIMIT_SIGPENDING, 1000),
        (resource.RLIMIT_MEMLOCK, 64 * 1024),
    ):
        _soft, hard = resource.getrlimit(kind)
        value = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
        resource.setrlimit(kind, (value, value))
    refuse_memory_files()


def _ignore_signals():
    """Ignores all signals, since an answer has this process's user and may send any signal. Only SIGXCPU keeps its effect."""
    for number in _signal.valid_signals() - {_signal.SIGKILL, _signal.SIGSTOP, _signal.SIGXCPU}:
        try:
            _signal.signal(number, _signal.SIG_IGN)
        except (OSError, ValueError):
            continue


def _reset_interpreter():
    os.environ.clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "runner"]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "BundleFinder"]
    # This Python was started with -c and -S, so it lacks the working directory on its path, and `exit`. Answers may use both.
    sys.path[:] = [WORK] + [path for path in sys.path if path and path != RUNNER_ROOT]
    sys.argv[:] = ["solution.py"]
    sys.dont_write_bytecode = True
    _reset_stdio()
    site.setquit()
    site.sethelper()


def _reset_stdio():
    sys.stdin = sys.__stdin__ = io.open(0, "r", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = sys.__stdout__ = io.open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = sys.__stderr__ = io.open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
