"""The cell that runs the tests. It never runs a line of the answer, and alone can report the verdict."""
import builtins
import os
import sys
import traceback
import types

from runner.answer import show_in_tracebacks
from runner.cases import note_failures
from runner.exact import exact_text
from runner.frames import encode_frame
from runner.given import GivenModules
from runner.peer import Peer, PeerGone
from runner.remote import AnswerLine
from runner.workspace import WORK

SETUP_FILE = "setup.py"
TESTS_FILE = "tests.py"


def run(payload, sock, control):
    """Reports `{"passed": bool, "error": ...}` over `control` and ends the process."""
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    # The answer writes there, also files by the name of a module that the tests have yet to import.
    sys.path.remove(WORK)
    sys.meta_path.insert(-1, GivenModules(payload["modules"]))
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    line = AnswerLine(Peer(sock), module.__dict__)
    error = _judge(payload, line, module.__dict__)
    if error is None and line.broken:
        error = _gone(line)
    remote = error is not None and error.pop("remote", False)
    if remote:
        line.goodbye()
    control.sendall(encode_frame({"passed": error is None, "error": error}))
    os._exit(0)


def _judge(payload, line, namespace):
    """None when all tests ran to their end and none failed."""
    failed = []
    try:
        setup = _compile(payload["setup"], SETUP_FILE)
        tests = _compile(payload["tests"], TESTS_FILE)
        if not _try_setup(setup, namespace):
            offered = line.load()
            _borrow(line, namespace, offered, (setup,))
            exec(setup, namespace)
        else:
            offered = line.load()
        line.remember_setup_classes()
        namespace[payload["entryPoint"]] = namespace["candidate"] = line.named(payload["entryPoint"])
        used = _borrow(line, namespace, offered, (setup, tests))
        if "unittest" in used:
            failed = note_failures()
        exec(tests, namespace)
    except PeerGone:
        return _gone(line)
    except SystemExit as left:
        # Test runners such as unittest.main() end this way; the answer's own exit never gets here.
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


def _borrow(line, namespace, offered, codes):
    """Names that the trusted code uses and nothing trusted defines come from the answer. Answers all that it uses."""
    used = set()
    for code in codes:
        _collect_names(code, used)
    for name in sorted(used & offered):
        if name not in namespace and not hasattr(builtins, name):
            namespace[name] = line.borrow(name)
    return used


def _collect_names(code, names):
    names.update(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _collect_names(constant, names)


def _compile(source, file):
    show_in_tracebacks(source, file)
    return compile(source, file, "exec", dont_inherit=True)


def _gone(line):
    if line.last_raised is not None and line.last_raised[0] is None:
        return dict(line.last_raised[1], remote=False)
    return {"type": "AnswerLost", "message": "the answer ended before its tests did: %s" % line.broken, "line": None}


def _failure(error, line):
    """An exception that the answer raised keeps the answer's line; any other has the line of the tests."""
    if line.last_raised is not None and line.last_raised[0] is error:
        return dict(line.last_raised[1], remote=True)
    number = error.lineno if isinstance(error, SyntaxError) else None
    for frame, lineno in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in (TESTS_FILE, SETUP_FILE):
            number = lineno
    try:
        message = exact_text(str(error))
    except Exception:
        message = ""
    return {"type": type(error).__name__, "message": message[:4000], "line": number}
