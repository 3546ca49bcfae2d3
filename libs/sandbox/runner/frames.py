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
        self.buffer += data
        frames = []
        while len(self.buffer) >= 4:
            length = struct.unpack_from(">I", self.buffer)[0]
            if length > self.bytes_max:
                raise ValueError("a frame of %d bytes is over the limit of %d" % (length, self.bytes_max))
            if len(self.buffer) < 4 + length:
                break
            frames.append(bytes(self.buffer[4 : 4 + length]))
            del self.buffer[: 4 + length]
        return frames


def encode_frame(document):
    body = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    return struct.pack(">I", len(body)) + body


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
