"""Process 1 of a sandbox. Runs no user code itself; see docs/sandbox-protocol.md for what it speaks."""
import json
import os
import sys

import _signal

from runner import processes, workspace
from runner.frames import FrameReader, encode_frame, write_all
from runner.kernel import set_readable
from runner.run import Run
from runner.spare import SpareCell
from runner.zygote import Zygote, ZygoteLost, fork_cell_from_here, preload

PROTOCOL = 1
# As many as a checked run takes.
SPARES = 2
# The supervisor, the zygote, its middle fork, and cells in waiting are not the code's processes.
PROCESSES_APART = 4 + SPARES


class CellPool:
    """Cells forked ahead, and a new zygote when the last one was killed."""

    def __init__(self, zygote, hash_seed):
        self.zygote = zygote
        self.hash_seed = hash_seed
        self.spares = []

    def fill_from_here(self, count):
        """Forks this very process, which only is right while it has seen no payload."""
        self.spares += [SpareCell(fork_cell_from_here) for _ in range(count)]

    def fill_while_code_runs(self, count):
        """Never starts an interpreter: until it has hidden itself, the code could take it over."""
        try:
            while len(self.spares) < count:
                self.spares.append(SpareCell(self.zygote.fork_cell))
        except (ZygoteLost, OSError):
            return

    def take(self):
        return self.spares.pop(0) if self.spares else self._fork()

    def _fork(self):
        try:
            return SpareCell(self.zygote.fork_cell)
        except ZygoteLost:
            self.zygote.start_fresh(self.hash_seed)
            return SpareCell(self.zygote.fork_cell)

    def reseed(self, hash_seed):
        if hash_seed != self.hash_seed:
            self.lose_all()
            self.hash_seed = hash_seed
            self.zygote.start_fresh(hash_seed)

    def forget(self, reaped):
        """Drops what has ended: its number may be another process's by now."""
        for cell in [cell for cell in self.spares if cell.pid in reaped]:
            self.spares.remove(cell)
            cell.close()
        if self.zygote.pid in reaped:
            self.zygote.stop()

    def lose_all(self):
        """After everything was killed, or before it is."""
        for cell in self.spares:
            processes.kill(cell.pid)
            cell.close()
        self.spares.clear()
        if self.zygote.connection is not None:
            processes.kill(self.zygote.pid)
            self.zygote.stop()

    def apart(self):
        """Processes that belong to no run."""
        zygote = {self.zygote.pid} if self.zygote.connection is not None else set()
        return {1} | zygote | {cell.pid for cell in self.spares}


def cells_for(run):
    return 2 if run["kind"] == "checked" else 1


class Supervisor:
    def __init__(self, pool):
        self.pool = pool
        self.reader = FrameReader()
        self.inbox = []
        self.owner = None
        self.executed = {}

    def serve(self):
        self.send({"type": "hello", "protocol": PROTOCOL, "python": sys.version.split()[0]})
        while True:
            frame = self.receive()
            kind = frame.get("type")
            if kind == "bind":
                self.bind(frame)
            elif kind == "execute":
                self.execute(frame)
            elif kind == "close":
                os._exit(0)
            elif kind != "cancel":
                self.send({"type": "refused", "reason": "unknown frame type %r" % kind})

    def bind(self, frame):
        """The first claimer wins; the same claimer again is fine."""
        if self.owner is None:
            self.owner = frame["claim"]
        if self.owner == frame["claim"]:
            self.send({"type": "bound", "claim": self.owner})
        else:
            self.send({"type": "refused", "reason": "another claim holds this sandbox"})

    def execute(self, frame):
        """One frame per run, numbered from 0, then `done`. The same execution again repeats its frames and runs nothing."""
        if self.owner is None or frame.get("claim") != self.owner:
            self.send({"type": "refused", "reason": "execute needs the claim that is bound"})
            return
        frames = self.executed.get(frame["executionId"])
        if frames is not None:
            for known in frames[frame.get("after", 0) :]:
                self.send(known)
            return
        frames = self.executed[frame["executionId"]] = []
        for result in self.results(frame):
            frames.append({"type": "run", "executionId": frame["executionId"], "seq": len(frames), "result": result})
            self.send(frames[-1])
        frames.append({"type": "done", "executionId": frame["executionId"], "seq": len(frames)})
        self.send(frames[-1])

    def results(self, frame):
        if frame.get("hashSeed") is not None:
            self.pool.reseed(frame["hashSeed"])
        runs = frame["runs"]
        for index, run in enumerate(runs):
            if index > 0:
                workspace.empty_all()
            workspace.place_files(frame["files"])
            cells_next = cells_for(runs[index + 1]) if index + 1 < len(runs) else 0
            result = Run(run, frame["files"], frame["limits"], self.pool, self.cancelled, PROCESSES_APART, cells_next).execute()
            yield result
            if result["exit"] == "cancelled" or (frame["stopOnFailure"] and result["exit"] != "ok"):
                return

    def cancelled(self):
        """Whether a cancel has come. Called when there is something to read."""
        self._read()
        return any(frame.get("type") == "cancel" for frame in self.inbox)

    def receive(self):
        while not self.inbox:
            self._read()
        return self.inbox.pop(0)

    def _read(self):
        data = os.read(0, 1 << 20)
        if not data:
            # The controller is gone; process 1 takes the whole sandbox with it.
            os._exit(0)
        self.inbox += [json.loads(frame) for frame in self.reader.feed(data)]

    def send(self, frame):
        write_all(1, encode_frame(frame))


def main(zygote_command):
    set_readable(False)
    # To process 1 a signal without handler is no signal at all: nothing inside can stop it.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    sys.dont_write_bytecode = True
    preload()
    serve_sandbox(zygote_command)


def serve_sandbox(zygote_command):
    """With a warm interpreter behind it, which has seen no payload."""
    workspace.place_files([])
    zygote = Zygote(zygote_command)
    zygote.fork_from_here()
    pool = CellPool(zygote, int(os.environ.get("PYTHONHASHSEED", "0")))
    pool.fill_from_here(SPARES)
    Supervisor(pool).serve()
