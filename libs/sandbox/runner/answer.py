"""Runs untrusted code in this process: a program, a call of one function, or a shell command."""
import atexit
import linecache
import os
import sys
import threading
import traceback
import types

from runner import plain
from runner.frames import encode_frame
from runner.outcome import value_excess

FILE = "solution.py"
# Prefix of the file names of the runner's own modules, whether they come from a bundle or from a folder.
RUNNER = (lambda: None).__code__.co_filename.rpartition("answer")[0]
SHELL_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/tmp/work", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}


def run_program(payload):
    """Runs the code as `__main__`, like `python3 solution.py` would."""
    module = new_module("__main__")
    code = 0
    try:
        execute(payload["code"], FILE, module.__dict__)
    except BaseException as error:
        code = report_exception(error)
    leave(code)


def run_call(payload, control):
    """Runs the code, calls `entryPoint`, and sends the value or the error over `control`."""
    module = new_module("solution")
    try:
        execute(payload["code"], FILE, module.__dict__)
        function = module.__dict__.get(payload["entryPoint"])
        if function is None:
            raise NameError("the code defines no %s" % payload["entryPoint"])
        value = function(*payload["args"], **payload["kwargs"])
        frame, code = {"value": plain.encode(value)}, 0
    except BaseException as error:
        frame, code = {"error": describe(error)}, report_exception(error) or 1
    body = encode_frame(frame)
    message = value_excess(body, payload)
    if message:
        body, code = encode_frame({"error": {"type": "ValueError", "message": message, "line": None}}), 1
    flush()
    control.sendall(body)
    leave(code)


def run_command(payload):
    os.execve("/bin/sh", ["sh", "-c", payload["command"]], SHELL_ENVIRONMENT)


def new_module(name):
    module = types.ModuleType(name)
    module.__dict__["__builtins__"] = __builtins__
    if name == "__main__":
        module.__file__ = FILE
    sys.modules[name] = module
    return module


def show_in_tracebacks(source, file):
    linecache.cache[file] = (len(source), None, [line + "\n" for line in source.splitlines()], file)


def execute(source, file, namespace):
    show_in_tracebacks(source, file)
    exec(compile(source, file, "exec", dont_inherit=True), namespace)


def report_exception(error):
    """Prints a traceback as the interpreter would, and returns the exit status."""
    if isinstance(error, SystemExit):
        return _exit_status(error.code)
    try:
        flush()
        traceback.print_exception(type(error), error, own_traceback(error.__traceback__))
    except BaseException:
        os.write(2, ("%s\n" % type(error).__name__).encode("utf-8", "replace"))
    return 1


def _exit_status(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def own_traceback(trace):
    """The traceback without its first frames, in which the runner called the code."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(RUNNER):
        trace = trace.tb_next
    return trace


def describe(error, file=FILE):
    """Type, message and line of an exception. The line is the last one in `file`, or the line of a syntax error in it."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    return plain.described(error, lines[-1] if lines else None)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            continue


def leave(code):
    """Ends the process like an interpreter: waits for threads and runs exit hooks, but skips the slow teardown."""
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException as error:
        code = report_exception(error) or code
    flush()
    os._exit(code)
