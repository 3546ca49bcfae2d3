"""Keeps the head and the tail of output of any length, and reports the head as it comes."""
import codecs
import time

from runner.connection import FOREVER

# Least time between two frames of output, so that code that prints letter by letter doesn't make a frame of each.
TELL_S = 0.005


class Stream:
    """Keeps `bytes_max` bytes of a stream: the head, half of them, is reported piece by piece, the other half is the tail. All pieces
    and the rest together are exactly `text()`. `cut` is the number of bytes lost between."""

    def __init__(self, bytes_max):
        self.head_max = (bytes_max + 1) // 2
        self.tail_max = bytes_max - self.head_max
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0
        self.told = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data):
        self.total += len(data)
        room = self.head_max - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        # Trimmed only now and then, so that endless small writes don't move the tail each time.
        if len(self.tail) > 2 * self.tail_max + 65536:
            self._trim()

    def _trim(self):
        if len(self.tail) > self.tail_max:
            del self.tail[: len(self.tail) - self.tail_max]

    @property
    def cut(self):
        self._trim()
        return self.total - len(self.head) - len(self.tail)

    def text(self):
        self._trim()
        return (self.head + self.tail).decode("utf-8", "replace")

    def piece(self):
        """Text of the head that was not reported yet; an incomplete character stays for later."""
        new = bytes(self.head[self.told :])
        self.told += len(new)
        return self.decoder.decode(new)

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
        if all(stream.told == len(stream.head) for stream in self.streams.values()):
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
