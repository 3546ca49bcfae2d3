"""Frames: four bytes of length, big endian, then one JSON document in UTF-8."""
import json
import os
import struct

FRAME_BYTES_MAX = 256 * 1024 * 1024


class FrameReader:
    """Cuts a byte stream into frames. Raises ValueError when a frame is longer than `bytes_max`."""

    def __init__(self, bytes_max=FRAME_BYTES_MAX):
        self.bytes_max = bytes_max
        self.buffer = bytearray()

    def feed(self, data):
        """All frames that are complete with `data`."""
        self.push(data)
        frames = []
        frame = self.take()
        while frame is not None:
            frames.append(frame)
            frame = self.take()
        return frames

    def push(self, data):
        self.buffer += data

    def take(self):
        """The next complete frame, or None."""
        if len(self.buffer) < 4:
            return None
        length = struct.unpack_from(">I", self.buffer)[0]
        if length > self.bytes_max:
            raise ValueError("a frame of %d bytes is over the limit of %d" % (length, self.bytes_max))
        if len(self.buffer) < 4 + length:
            return None
        frame = bytes(self.buffer[4 : 4 + length])
        del self.buffer[: 4 + length]
        return frame


def encode_frame(document):
    body = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    return struct.pack(">I", len(body)) + body


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
