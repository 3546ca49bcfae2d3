"""Executions and their frames, which are numbered and kept so that they can be sent again. Also the output of a run."""
import codecs
import time

from runner.connection import FOREVER
from runner.frames import Malformed, Refused, boolean, encode_frame, natural, objects, text

LIMITS = ("cpuMs", "wallMs", "memoryMiB", "processes", "fileSizeMiB", "outputKiB", "diskMiB", "openFiles")
# The text fields that a run must have, by kind.
REQUIRED = {
    "program": ("code",),
    "call": ("code", "entryPoint"),
    "checked": ("code", "entryPoint", "tests"),
    "command": ("command",),
    "cell": ("code",),
}
# Maximum size of the frames kept for all executions. The oldest frames are dropped first, and frames of the running execution last.
KEPT_BYTES_MAX = 32 * 1024 * 1024


class Request:
    """The checked fields of an `execute` frame. Raises Malformed."""

    def __init__(self, frame):
        limits = frame.get("limits")
        if type(limits) is not dict:
            raise Malformed("limits must be an object")
        self.limits = {name: natural(limits, name) for name in LIMITS}
        self.runs = [_checked_run(run) for run in objects(frame, "runs", 1)]
        self.files = [{"path": text(file, "path", 4096), "contentBase64": text(file, "contentBase64")} for file in objects(frame, "files")]
        self.stop_on_failure = boolean(frame, "stopOnFailure")
        self.hash_seed = None if frame.get("hashSeed") is None else natural(frame, "hashSeed", 2**32 - 1, 0)
        self.keep = boolean(frame, "keep")


def _checked_run(run):
    required = REQUIRED.get(str(run.get("kind")))
    if required is None:
        raise Malformed("the kind of a run must be one of %s" % ", ".join(REQUIRED))
    for name in required:
        text(run, name)
    return {"setup": "", "stdin": "", "tools": [], "args": [], "kwargs": {}, **run}


class Execution:
    """An execution and its frames. Calls `tell()` after a frame was added."""

    def __init__(self, name, request, tell):
        self.name = name
        self.request = request
        self.tell = tell
        self.cancelled = False
        # By number; None for a frame that is no longer kept.
        self.frames = []
        self.kept_bytes = 0
        # Called with the number of a tool call and the frame that answers it. A session's cell sets this function.
        self.take_answer = lambda number, frame: None

    def add(self, kind, **fields):
        self.note(kind, **fields)
        self.tell()

    def note(self, kind, **fields):
        """Adds a frame without calling `tell()`, so that it is sent together with the next frame."""
        frame = encode_frame({"type": kind, "executionId": self.name, "seq": len(self.frames), **fields})
        self.frames.append(frame)
        self.kept_bytes += len(frame)

    def frame(self, number):
        """The frame with this number, or None if it does not exist yet. Raises Refused if it is no longer kept."""
        if number >= len(self.frames):
            return None
        if self.frames[number] is None:
            raise Refused("forgotten", "frame %d of this execution is no longer kept" % number)
        return self.frames[number]

    def forget(self, before):
        """Frees the frames below number `before`."""
        gone = self.frames[:before]
        self.frames[:before] = [None] * len(gone)
        self.kept_bytes -= sum(len(frame) for frame in gone if frame)


def trim(executions, current, sent):
    """Frees the oldest frames until at most KEPT_BYTES_MAX bytes are left, but of `current` only frames that were sent (below `sent`)."""
    excess = sum(execution.kept_bytes for execution in executions) - KEPT_BYTES_MAX
    for execution in executions:
        if excess <= 0:
            return
        before = execution.kept_bytes
        execution.forget(sent if execution is current else len(execution.frames))
        excess -= before - execution.kept_bytes


# Minimum time between two frames of output, so that code that prints single letters doesn't make a frame of each.
TELL_S = 0.005


# How many bytes of the end of a stream are searched for the reason why the code failed.
ENDING_BYTES = 1600


class Stream:
    """Keeps `bytes_max` bytes of a stream: half from its start (the head, reported in pieces), half from its end. `cut` counts lost bytes."""

    def __init__(self, bytes_max):
        self.head_room = (bytes_max + 1) // 2
        self.tail_max = bytes_max // 2
        # Bytes of the head that were not reported yet.
        self.new = bytearray()
        self.tail = bytearray()
        self.last = b""
        self.total = 0
        self.cut = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data):
        self.total += len(data)
        self.last = (self.last + data)[-ENDING_BYTES:]
        self.new += data[: self.head_room]
        self.tail += data[self.head_room :]
        self.head_room = max(0, self.head_room - len(data))
        # Trimmed only now and then, so that many small writes don't each move the tail.
        if len(self.tail) > 2 * self.tail_max + 65536:
            self._trim()

    def _trim(self):
        excess = max(0, len(self.tail) - self.tail_max)
        self.cut += excess
        del self.tail[:excess]

    def ending(self):
        return self.last.decode("utf-8", "replace")

    def piece(self):
        """Text of the head that was not reported yet. An incomplete character is kept for the next piece."""
        text = self.decoder.decode(bytes(self.new))
        self.new.clear()
        return text

    def rest(self):
        """All text that was not reported yet, for the end of the run."""
        self._trim()
        return self.piece() + self.decoder.decode(bytes(self.tail), True)


class Output:
    """Both streams of a run. Reports their heads to `add(stream, text)`."""

    def __init__(self, bytes_max, add):
        self.streams = {"stdout": Stream(bytes_max), "stderr": Stream(bytes_max)}
        self.add = add
        self.told_at = 0

    def serve(self):
        """Reports new output, at most every TELL_S. Returns when to call again."""
        if not any(stream.new for stream in self.streams.values()):
            return FOREVER
        if time.monotonic() < self.told_at + TELL_S:
            return self.told_at + TELL_S
        self.tell()
        return FOREVER

    def tell(self):
        self.told_at = time.monotonic()
        for name, stream in self.streams.items():
            piece = stream.piece()
            if piece:
                self.add(stream=name, text=piece)
