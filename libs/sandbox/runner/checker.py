"""The cell that runs the tests. It never runs a line of the answer, and only it can report the verdict."""
import ast
import binascii
import builtins
import io
import os
import sys
import traceback
import types

# This module is private, but the public `importlib.machinery` would import further modules.
from _frozen_importlib import ModuleSpec

from runner.answer import show_in_tracebacks
from runner.frames import Peer, PeerGone, encode_frame
from runner.plain import described
from runner.remote import AnswerLine
from runner.stub import Stub
from runner.workspace import WORK

SETUP_FILE = "setup.py"
TESTS_FILE = "tests.py"


def run(payload, sock, control):
    """Reports `{"passed": bool, "error": ...}` over `control` and ends the process."""
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    # The answer could write modules into this folder, which the tests would then import.
    sys.path.remove(WORK)
    sys.meta_path.insert(-1, GivenModules(payload["files"]))
    builtins.open = io.open = GivenFiles(payload["files"]).open
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    line = AnswerLine(Peer(sock), module.__dict__)
    error = _judge(payload, line, module.__dict__)
    if error is None and line.peer.broken:
        error = _gone(line)
    remote = error is not None and error.pop("remote", False)
    if remote:
        line.goodbye()
    control.sendall(encode_frame({"passed": error is None, "error": error}))
    os._exit(0)


def _judge(payload, line, namespace):
    """The error of the first failure; None when all tests ran to their end and none failed."""
    failed = []
    try:
        setup = _compile(payload["setup"], SETUP_FILE)
        tests = _compile(payload["tests"], TESTS_FILE)
        is_set_up = _try_setup(setup, namespace)
        offered, classes = line.load()
        used, defined = _names(payload["setup"] + "\n" + payload["tests"])
        named = {name for name in (used - defined) | {payload["entryPoint"]} if name[:1].isupper()}
        line.lives = not classes.isdisjoint(named)
        if not is_set_up:
            _borrow(line, namespace, offered, _names(payload["setup"])[0])
            exec(setup, namespace)
        line.remember_setup_classes()
        namespace[payload["entryPoint"]] = namespace["candidate"] = Stub(line, {"name": payload["entryPoint"]})
        _borrow(line, namespace, offered, used)
        if "unittest" in used:
            failed = note_failures()
        exec(tests, namespace)
    except PeerGone:
        return _gone(line)
    except SystemExit as left:
        # Test runners such as unittest.main() end by SystemExit. An exit of the answer is never raised here.
        if not failed and left.code not in (None, 0, False):
            return {"type": "SystemExit", "message": str(left.code), "line": None}
    except BaseException as error:
        return _failure(error, line)
    return _failure(failed[0], line) if failed else None


def _try_setup(setup, namespace):
    try:
        exec(setup, namespace)
    except NameError:
        return False
    return True


def _borrow(line, namespace, offered, used):
    """Takes from the answer the names that setup and tests use but don't define."""
    for name in sorted(used & offered):
        if name not in namespace and not hasattr(builtins, name):
            namespace[name] = line.borrow(name)


def _names(source):
    """The names that the code uses, and the names that it defines anywhere."""
    used, defined = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.ImportFrom):
            used.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.alias):
            defined.add((node.asname or node.name).partition(".")[0])
    return used, defined


def _compile(source, file):
    show_in_tracebacks(source, file)
    return compile(source, file, "exec", dont_inherit=True)


def _gone(line):
    if line.last_raised is not None and line.last_raised[0] is None:
        return dict(line.last_raised[1], remote=False)
    return {"type": "AnswerLost", "message": "the answer ended before its tests did: %s" % line.peer.broken, "line": None}


def _failure(error, line):
    """Describes a failure. The line is in the answer if the answer raised the exception, otherwise in the tests."""
    if line.last_raised is not None and line.last_raised[0] is error:
        return dict(line.last_raised[1], remote=True)
    number = error.lineno if isinstance(error, SyntaxError) else None
    for frame, lineno in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in (TESTS_FILE, SETUP_FILE):
            number = lineno
    return described(error, number)


def note_failures():
    """Returns a list to which the exception of every later failed test case is added."""
    from unittest.result import TestResult

    failed = []

    def noting(original):
        def note(self, test, *rest):
            # addSubTest is also called for successes, and addUnexpectedSuccess gets no exception.
            problem = rest[-1] if rest else (None, AssertionError("unexpected success"))
            if problem is not None:
                failed.append(problem[1])
            return original(self, test, *rest)

        return note

    for name in ("addError", "addFailure", "addSubTest", "addUnexpectedSuccess"):
        setattr(TestResult, name, noting(getattr(TestResult, name)))
    return failed


class GivenFiles:
    """Opens the task's files as they were given, since the answer can rewrite the files on disk. Other files open as usual."""

    def __init__(self, files):
        self.files = dict(files)
        self.original = io.open

    def open(self, file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        path = None if isinstance(file, int) else os.path.relpath(os.path.join(WORK, os.fsdecode(file)), WORK)
        if path in self.files and set(mode).isdisjoint("wax+"):
            content = io.BytesIO(binascii.a2b_base64(self.files[path]))
            return content if "b" in mode else io.TextIOWrapper(content, encoding or "utf-8", errors, newline)
        self.files.pop(path, None)
        return self.original(file, mode, buffering, encoding, errors, newline, closefd, opener)


class GivenModules:
    """Finds and loads Python files of the task. A folder is a package, with `__init__.py` or without."""

    def __init__(self, files):
        self.modules = {path: content for path, content in files.items() if path.endswith(".py")}

    def find_spec(self, name, path=None, target=None):
        base = name.replace(".", "/")
        is_package = any(known.startswith(base + "/") for known in self.modules)
        file = base + ("/__init__.py" if is_package else ".py")
        if not is_package and file not in self.modules:
            return None
        spec = ModuleSpec(name, self, origin="%s/%s" % (WORK, file), is_package=is_package)
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        file = module.__spec__.origin
        source = binascii.a2b_base64(self.modules.get(file[len(WORK) + 1 :], ""))
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
