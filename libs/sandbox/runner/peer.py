"""The line between an answer and its checker: one JSON frame at a time over a stream socket."""
import json
import struct

MESSAGE_BYTES_MAX = 64 * 1024 * 1024


class PeerGone(BaseException):
    """The other side died or speaks nonsense. Not an Exception, so that no test's `except` takes it for an answer."""


class TooLarge(ValueError):
    """A value is too large to cross."""


class Peer:
    def __init__(self, sock):
        self.socket = sock

    def send(self, message):
        """Raises TooLarge, PeerGone."""
        try:
            body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")
        except RecursionError as error:
            raise TooLarge("the value is nested too deep") from error
        if len(body) > MESSAGE_BYTES_MAX:
            raise TooLarge("the value has %d bytes, over the limit of %d" % (len(body), MESSAGE_BYTES_MAX))
        try:
            self.socket.sendall(struct.pack(">I", len(body)) + body)
        except OSError as error:
            raise PeerGone("the other side is gone") from error

    def receive(self):
        """Raises PeerGone."""
        length = struct.unpack(">I", self._exactly(4))[0]
        if length > MESSAGE_BYTES_MAX:
            raise PeerGone("a message of %d bytes" % length)
        try:
            message = json.loads(self._exactly(length), parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise PeerGone("a message that is not JSON") from error
        if type(message) is not dict:
            raise PeerGone("a message that is not an object")
        return message

    def _exactly(self, count):
        parts = []
        while count > 0:
            try:
                part = self.socket.recv(min(count, 1 << 20))
            except OSError as error:
                raise PeerGone("the other side is gone") from error
            if not part:
                raise PeerGone("the other side is gone")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def _refuse(constant):
    raise ValueError(constant)
