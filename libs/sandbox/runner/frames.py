"""Frames: four bytes of length, big endian, then one JSON document in UTF-8. Also checks of their fields."""
import json
import os
import struct


class Refused(Exception):
    """The frame is refused. The other side gets `code` and the reason."""

    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code


class Malformed(ValueError):
    """A known frame with a field that is missing or wrong."""


def text(frame, name, chars_max=None):
    value = frame.get(name)
    if type(value) is not str or (chars_max is not None and not 0 < len(value) <= chars_max):
        raise Malformed("%s must be text%s" % (name, " of 1 to %d characters" % chars_max if chars_max else ""))
    return value


def natural(frame, name, most=2**53, least=1):
    value = frame.get(name)
    if type(value) is not int or not least <= value <= most:
        raise Malformed("%s must be a whole number from %d to %d" % (name, least, most))
    return value


def boolean(frame, name):
    value = frame.get(name, False)
    if type(value) is not bool:
        raise Malformed("%s must be true or false" % name)
    return value


def objects(frame, name, least=0):
    value = frame.get(name, [])
    if type(value) is not list or len(value) < least or any(type(item) is not dict for item in value):
        raise Malformed("%s must be a list of at least %d objects" % (name, least))
    return value


FRAME_BYTES_MAX = 256 * 1024 * 1024


class FrameReader:
    """Cuts a byte stream into frames. Raises ValueError when a frame is longer than `bytes_max`."""

    def __init__(self, bytes_max=FRAME_BYTES_MAX):
        self.bytes_max = bytes_max
        self.buffer = bytearray()

    def feed(self, data):
        """All frames that `data` completes."""
        self.push(data)
        return list(iter(self.take, None))

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


MESSAGE_BYTES_MAX = 64 * 1024 * 1024


class PeerGone(BaseException):
    """The other side died or sent a malformed message. Not an Exception, so that no `except` of a test catches it."""


class TooLarge(ValueError):
    """A value is too large to be sent to the other side."""


class Peer:
    """One side of the socket over which an answer and its checker exchange frames. `broken`: why the exchange ended, or None."""

    def __init__(self, sock):
        self.socket = sock
        self.reader = FrameReader(MESSAGE_BYTES_MAX)
        self.broken = None

    def fail(self, why):
        self.broken = why
        raise PeerGone(why)

    def send(self, message):
        """Raises TooLarge, PeerGone."""
        try:
            frame = encode_frame(message)
        except RecursionError as error:
            raise TooLarge("the value is nested too deep") from error
        if len(frame) > MESSAGE_BYTES_MAX:
            raise TooLarge("the value has %d bytes, over the limit of %d" % (len(frame), MESSAGE_BYTES_MAX))
        try:
            self.socket.sendall(frame)
        except OSError:
            self.fail("the other side is gone")

    def ask(self, request, serve):
        """Sends a request and returns the reply. Meanwhile calls `serve` with each request of the other side. Raises TooLarge, PeerGone."""
        self.send(request)
        while "op" in (message := self.receive()):
            serve(message)
        return message

    def receive(self):
        """Raises PeerGone."""
        try:
            body = self.reader.take()
            while body is None:
                data = self.socket.recv(1 << 20)
                if not data:
                    self.fail("the other side is gone")
                self.reader.push(data)
                body = self.reader.take()
            message = json.loads(body, parse_constant=_refuse)
        except OSError:
            self.fail("the other side is gone")
        except (ValueError, RecursionError):
            self.fail("a message that is malformed")
        if type(message) is not dict:
            self.fail("a message that is not an object")
        return message


def _refuse(constant):
    raise ValueError(constant)
