"""A sandbox for tests, over JSON lines: the interpreter of a session and the files of a sandbox, without isolation or limits."""
import json
import os
import select
import shutil
import signal
import sys

sys.path.insert(0, sys.argv[1])

from runner import files, processes, session_cell, workspace  # noqa: E402
from runner.frames import FrameReader  # noqa: E402
from runner.kernel import send_fds, socket_pair  # noqa: E402
from runner.outcome import bounded_error, document  # noqa: E402
from runner.zygote import sealed  # noqa: E402


class Interpreter:
    def __init__(self, folder):
        self.control, control = socket_pair()
        pipes = [os.pipe(), os.pipe()]
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            for fd, (_reading, writing) in enumerate(pipes, 1):
                os.dup2(writing, fd)
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.chdir(folder)
            sys.path.insert(0, folder)
            self.control.close()
            for name in [name for name in sys.modules if name.partition(".")[0] == "runner"]:
                del sys.modules[name]
            session_cell.run(control)
        control.close()
        self.streams = {pipes[0][0]: "stdout", pipes[1][0]: "stderr"}
        for _reading, writing in pipes:
            os.close(writing)
        self.reports = FrameReader()
        self.number = 0

    def send(self, message):
        fd = sealed(json.dumps(message).encode("ascii"))
        send_fds(self.control, b"c", [fd])
        os.close(fd)


class Host:
    def __init__(self, root):
        os.makedirs(root + "/work", exist_ok=True)
        self.root = root
        # This process serves one sandbox, whose folder stands for /tmp.
        files.TMP = workspace.TMP = root
        self.files = files.SessionFiles()
        self.interpreter = None
        self.cell = None
        self.call = 0
        self.printed = {"stdout": b"", "stderr": b""}

    def serve(self):
        buffer = b""
        while True:
            watched = [0, self.interpreter.control, *self.interpreter.streams] if self.interpreter else [0]
            ready = select.select(watched, [], [])[0]
            # Printed text is read first.
            for fd in [fd for fd in ready if self.interpreter and fd in self.interpreter.streams]:
                self.read_output(fd)
            if self.interpreter and self.interpreter.control in ready:
                self.read_reports()
            if 0 in ready:
                data = os.read(0, 1 << 20)
                if not data:
                    self.end_interpreter()
                    shutil.rmtree(self.root, ignore_errors=True)
                    return
                *lines, buffer = (buffer + data).split(b"\n")
                for line in lines:
                    self.obey(json.loads(line))

    def obey(self, message):
        kind = message["type"]
        if kind.startswith("file."):
            tell(self.files.handle(message))
        elif kind == "cell":
            self.interpreter = self.interpreter or Interpreter(self.root + "/work")
            self.interpreter.number += 1
            self.cell = message["id"]
            self.printed = {"stdout": b"", "stderr": b""}
            self.interpreter.send({**message, "number": self.interpreter.number})
        elif kind == "answer" and self.interpreter and self.call == message["number"]:
            self.call = 0
            answer = {key: message[key] for key in ("result", "error") if key in message}
            self.interpreter.send({"cell": self.interpreter.number, "answers": message["number"], **answer})
        elif kind == "interrupt" and self.cell == message["id"]:
            os.killpg(self.interpreter.pid, signal.SIGINT)

    def read_output(self, fd):
        data = os.read(fd, 1 << 20)
        if data:
            self.printed[self.interpreter.streams[fd]] += data
        else:
            del self.interpreter.streams[fd]

    def read_reports(self):
        data = self.interpreter.control.recv(1 << 20)
        for body in self.interpreter.reports.feed(data):
            self.take(document(body, 250))
        if not data:
            self.ended({"exit": "signal", "exitCode": None, "signal": 9, "stateLost": True})
            self.end_interpreter()

    def take(self, report):
        kind = report["type"]
        if kind == "tool_call":
            self.call = report["number"]
            tell({**report, "id": self.cell})
        elif kind == "display":
            tell({**report, "id": self.cell})
        elif kind == "ended":
            code, error = report["exitCode"], bounded_error(report["error"])
            state = {"scratchpad": report["scratchpad"]} if "scratchpad" in report else {}
            self.ended({"exit": "nonzero" if code or error else "ok", "exitCode": code, "signal": None, "error": error, "stateLost": False, **state})

    def ended(self, outcome):
        for fd in list(self.interpreter.streams):
            while fd in self.interpreter.streams and select.select([fd], [], [], 0)[0]:
                self.read_output(fd)
        printed = {name: text.decode("utf-8", "replace") for name, text in self.printed.items()}
        tell({"type": "ended", "id": self.cell, **outcome, **printed})
        self.cell = None

    def end_interpreter(self):
        if self.interpreter:
            processes.kill(self.interpreter.pid)
            os.waitpid(self.interpreter.pid, 0)
            self.interpreter = None


def tell(message):
    os.write(1, json.dumps(message).encode("ascii") + b"\n")


Host(sys.argv[2]).serve()
