"""Process 1 of a sandbox. Runs no user code itself; docs/sandbox-protocol.md describes its protocol."""
import binascii
import json
import os
import sys
import time

from runner import processes, workspace
from runner.cells import CellPool
from runner.connection import FOREVER, READ, Claim, Connection, Loop, refusal
from runner.execution import KEPT_BYTES_MAX, LIMITS, Execution, Request, trim
from runner.files import SessionFiles
from runner.frames import Malformed, Refused, encode_frame, natural, text
from runner.kernel import socket_pair
from runner.outcome import refused_files
from runner.run import Run
from runner.session_run import SessionRun
from runner.workspace import Refusal
from runner.zygote import Zygote, hide, preload, sealed

PROTOCOL = 2
CONNECTIONS_MAX = 32


class Supervisor:
    """Serves its connections at any time, and runs one execution at a time."""

    def __init__(self, pool, claim, name=None, refills=False):
        self.pool = pool
        self.claim = claim
        self.name = name
        self.refills = refills
        self.loop = Loop()
        self.connections = []
        # The connection that bound the claim last. None once it has ended.
        self.owner = None
        # By name, so that an execution that is sent again doesn't run twice.
        self.executions = {}
        self.files = SessionFiles()
        self.current = None
        self.obeyed = {
            "bind": self.bind,
            "lease": self.lease,
            "execute": self.execute,
            "cancel": self.cancel,
            "answer": self.answer,
            **dict.fromkeys(self.files.operations, self.serve_file),
            "close": self.close,
        }

    def serve(self):
        while True:
            self.turn(FOREVER)
            if self.current:
                self.run(self.current)
                self.current = None
                if self.refills:
                    self.pool.fill()

    def turn(self, until):
        """Serves the connections once. Waits at most until the monotonic clock shows `until`."""
        if time.monotonic() >= self.claim.ends_at:
            os._exit(0)
        self.loop.turn(min(until, self.claim.ends_at))

    def connect(self, read_fd, write_fd, ended):
        """`ended(connection)` is called when the other side is gone."""
        if len(self.connections) == CONNECTIONS_MAX:
            # Drops the oldest connection that isn't the owner's, since its other side may be gone.
            next(connection for connection in self.connections if connection is not self.owner).end()
        connection = Connection(self.loop, read_fd, write_fd, self.obey, ended)
        self.connections.append(connection)
        self.claim.note_connections(len(self.connections))
        named = {} if self.name is None else {"sandbox": self.name}
        connection.reply({"type": "hello", "protocol": PROTOCOL, "python": sys.version.split()[0], **named})

    def disconnected(self, connection):
        self.connections.remove(connection)
        if self.owner is connection:
            self.owner = None
        self.claim.note_connections(len(self.connections))

    def obey(self, connection, frame):
        kind = frame.get("type")
        try:
            obey = self.obeyed.get(kind) if type(kind) is str else None
            if obey is None:
                raise Refused("unknown", "unknown frame type %.100r" % (kind,))
            obey(connection, frame)
        except Refused as refused:
            connection.reply(refusal(refused.code, refused))
        except Malformed as malformed:
            connection.reply(refusal("malformed", malformed))

    def bind(self, connection, frame):
        self.claim.bind(frame)
        former, self.owner = self.owner, connection
        if former not in (None, connection):
            # Without this, the former holder would think that its connection is broken, and bind again.
            former.reply(refusal("superseded", "the claim was bound on another connection"))
            former.end()
        connection.bound()
        connection.reply({"type": "bound", "claim": self.claim.owner})

    def lease(self, connection, frame):
        self.expect_bound(connection, frame)
        self.claim.renew(frame)

    def execute(self, connection, frame):
        """Runs an execution. For a known execution it runs nothing, and sends its frames again."""
        self.expect_bound(connection, frame)
        name = text(frame, "executionId", 200)
        after = natural(frame, "after", least=0) if "after" in frame else 0
        execution = self.executions.get(name)
        if execution is None:
            if self.current:
                raise Refused("busy", "another execution runs")
            execution = self.current = Execution(name, Request(frame), self.tell_owner)
            self.executions[name] = execution
        connection.follow(execution, after)

    def cancel(self, connection, frame):
        self.expect_bound(connection, frame)
        if self.current and frame.get("executionId", self.current.name) == self.current.name:
            self.current.cancelled = True

    def answer(self, connection, frame):
        """The answer to a call of a tool. Does nothing unless the running execution waits for it."""
        self.expect_bound(connection, frame)
        if self.current and frame.get("executionId") == self.current.name:
            self.current.take_answer(natural(frame, "number"), frame)
        connection.reply({"type": "answered", "requestId": frame.get("requestId")})

    def close(self, connection, frame):
        """Ends the sandbox. Over a pipe no claim is needed, since only the controller can send frames."""
        if self.claim.token_digest is not None:
            self.expect_bound(connection, frame)
        os._exit(0)

    def serve_file(self, connection, frame):
        self.expect_bound(connection, frame)
        connection.reply(self.files.handle(frame))

    def expect_bound(self, connection, frame):
        self.claim.expect(frame)
        if connection is not self.owner:
            raise Refused("unbound", "only the newest connection of the claim may send this frame")

    def tell_owner(self):
        if self.owner:
            self.owner.flush()

    def run(self, execution):
        """Adds a result per run, and then `done`, which is sent together with the last result."""
        request = execution.request
        # A running session keeps the seed of its interpreter.
        if request.hash_seed is not None and self.pool.session is None:
            self.pool.reseed(request.hash_seed)
        for index, run in enumerate(request.runs):
            if not request.keep:
                workspace.empty_all()
            result = self.result(execution, index, run)
            execution.note("run", run=index, result=result)
            if result["exit"] == "cancelled" or (request.stop_on_failure and result["exit"] != "ok"):
                break
            if index + 1 < len(request.runs):
                self.tell_owner()
                self.await_reader(execution)
        execution.add("done")
        execution.request = None

    def result(self, execution, index, run):
        request = execution.request
        try:
            for file in request.files:
                self.files.place(file["path"], binascii.a2b_base64(file["contentBase64"]))
        except (OSError, ValueError, Refusal) as error:
            return refused_files(run, error)
        kind = SessionRun if request.keep and run["kind"] == "cell" else Run
        return kind(execution, index, self.pool, self.loop, self.turn).execute()

    def await_reader(self, execution):
        """Waits until the reader has taken so many frames that at most KEPT_BYTES_MAX bytes are kept."""
        while True:
            trim(self.executions.values(), execution, self.owner.sent(execution) if self.owner else 0)
            if execution.kept_bytes <= KEPT_BYTES_MAX or execution.cancelled:
                return
            self.turn(time.monotonic() + 0.1)


def main(zygote_command):
    hide()
    preload()
    serve_sandbox(zygote_command)


def warm_pool(zygote_command):
    """A pool of cells, with one forked ahead. Call it before this process has seen a payload, since it forks the zygote from here."""
    os.makedirs(workspace.WORK, exist_ok=True)
    zygote = Zygote(zygote_command)
    zygote.fork_from_here()
    pool = CellPool(zygote)
    pool.fill()
    return pool


def serve_sandbox(zygote_command):
    """Serves one connection over stdin and stdout. When the controller ends it, the whole sandbox ends."""
    pool = warm_pool(zygote_command)
    # After the forks, since a fork makes all pages copy-on-write again.
    rehearse()
    supervisor = Supervisor(pool, Claim())
    supervisor.connect(0, 1, lambda _connection: os._exit(0))
    supervisor.serve()


RUN = {"kind": "call", "code": "", "entryPoint": "f", "args": [1], "kwargs": {"a": "b"}}
RESULT = {"exit": "ok", "exitCode": 0, "signal": None, "stdout": "", "stdoutCutBytes": 0, "cpuMs": 0.5, "value": [1, "a", {"b": None}]}


def rehearse():
    """Warms this process up: a temporary supervisor receives an execution over a connection and answers it. No code of a run is executed."""
    supervisor = Supervisor(None, Claim())
    ours, theirs = socket_pair()
    fd = ours.detach()
    supervisor.connect(fd, os.dup(fd), supervisor.disconnected)
    limits = dict.fromkeys(LIMITS, 1)
    request = {"executionId": "rehearsal", "limits": limits, "runs": [RUN], "after": 0}
    theirs.sendall(encode_frame({"type": "bind", "claim": "c"}) + encode_frame({"type": "execute", "claim": "c", **request}))
    while supervisor.current is None:
        supervisor.turn(FOREVER)
    execution = supervisor.current
    _rehearse_run(Run(execution, 0, None, supervisor.loop, supervisor.turn))
    execution.note("run", run=0, result=RESULT)
    execution.add("done")
    supervisor.owner.end()
    theirs.close()


def _rehearse_run(run):
    """Rehearses the work around a cell: its payload, the wait for its end, its report, and its output."""
    processes.memory_kills()
    os.close(sealed(json.dumps(run.request).encode("ascii")))
    pidfd = os.pidfd_open(os.getpid())
    run.loop.watch(pidfd, READ, run.loop.turn)
    run.turn(0)
    run.loop.forget(pidfd)
    os.close(pidfd)
    run._take_report(encode_frame({"value": RESULT["value"]}))
    for sink in run.output.streams.values():
        sink.feed(b"text")
        sink.ending()
        sink.rest()
