"""Connections from controllers: they cut input into frames, queue output, and never block. Also the claim that one controller holds."""
import collections
import hashlib
import hmac
import json
import os
import select
import time

import _socket

from runner.frames import FRAME_BYTES_MAX, FrameReader, Refused, encode_frame, natural, text

READ = select.POLLIN
WRITE = select.POLLOUT
FOREVER = float("inf")


class Loop:
    def __init__(self):
        self.poller = select.poll()
        self.told = {}

    def watch(self, fd, events, tell):
        self.poller.register(fd, events)
        self.told[fd] = tell

    def forget(self, fd):
        if self.told.pop(fd, None) is not None:
            self.poller.unregister(fd)

    def turn(self, until):
        """Waits until a descriptor is ready or the monotonic clock shows `until`, and calls the callbacks of ready descriptors."""
        wait_ms = None if until == FOREVER else int(max(0, until - time.monotonic()) * 1000) + 1
        for fd, _events in self.poller.poll(wait_ms):
            # An earlier callback may have removed this descriptor.
            tell = self.told.get(fd)
            if tell is not None:
                tell()


UNBOUND_BYTES_MAX = 64 * 1024
# Bytes read per turn from an unbound connection, so that an endless sender can't delay other connections.
UNBOUND_READ_BYTES = 1024
# A bound connection with more bytes of unsent replies is ended.
REPLIES_BYTES_MAX = 64 * 1024 * 1024
READ_BYTES = 256 * 1024


class Connection:
    """Calls `obey(connection, frame)` for each frame, and `ended(connection)` at the end. Sends replies before frames of executions."""

    def __init__(self, loop, read_fd, write_fd, obey, ended):
        self.loop = loop
        self.read_fd = read_fd
        self.write_fd = write_fd
        self.obey = obey
        self.ended = ended
        self.open = True
        self.reader = FrameReader(UNBOUND_BYTES_MAX)
        self.read_bytes = UNBOUND_READ_BYTES
        self.replies = collections.deque()
        self.replies_bytes = 0
        self.replies_bytes_max = UNBOUND_BYTES_MAX
        self.following = None
        self.number = 0
        self.sending = memoryview(b"")
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        loop.watch(read_fd, READ, self._readable)

    def bound(self):
        self.reader.bytes_max = FRAME_BYTES_MAX
        self.read_bytes = READ_BYTES
        self.replies_bytes_max = REPLIES_BYTES_MAX

    def reply(self, frame):
        data = encode_frame(frame)
        self.replies.append(data)
        self.replies_bytes += len(data)
        if self.replies_bytes > self.replies_bytes_max:
            self.end()
        self.flush()

    def follow(self, execution, number):
        """Sends the frames of `execution` from `number` on, and later frames when they are added."""
        self.following = execution
        self.number = number
        self.flush()

    def sent(self, execution):
        """How many of the execution's frames this connection has taken."""
        return self.number if self.following is execution else 0

    def flush(self):
        while self.open and (self.sending or self._next()):
            try:
                self.sending = self.sending[os.write(self.write_fd, self.sending) :]
            except BlockingIOError:
                self.loop.watch(self.write_fd, WRITE, self.flush)
                return
            except OSError:
                self.end()
        self.loop.forget(self.write_fd)

    def end(self):
        if self.open:
            self.open = False
            self.following = None
            self.replies.clear()
            for fd in (self.read_fd, self.write_fd):
                self.loop.forget(fd)
                os.close(fd)
            self.ended(self)

    def _next(self):
        """Takes the next frame. Returns False if no frame is ready."""
        if self.replies:
            frame = self.replies.popleft()
            self.replies_bytes -= len(frame)
        else:
            frame = self._next_of_execution()
        self.sending = memoryview(frame or b"")
        return frame is not None

    def _next_of_execution(self):
        try:
            frame = self.following and self.following.frame(self.number)
        except Refused as refused:
            self.following = None
            return encode_frame(refusal(refused.code, refused))
        self.number += frame is not None
        return frame

    def _readable(self):
        try:
            data = os.read(self.read_fd, self.read_bytes)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.end()
            return
        self.reader.push(data)
        try:
            while self.open and (body := self.reader.take()) is not None:
                frame = json.loads(body)
                if type(frame) is not dict:
                    raise ValueError("a frame must be an object")
                self.obey(self, frame)
        except (ValueError, RecursionError):
            self.end()


def listen(loop, sock, opened):
    """Accepts connections and calls `opened(read_fd, write_fd)` for each."""

    def ready():
        try:
            fd, _address = sock._accept()
        except OSError:
            return
        peer = _socket.socket(fileno=fd)
        peer.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        # Detects that a controller's machine has failed, since such a machine closes no connection.
        peer.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, 1)
        fd = peer.detach()
        # Two descriptors of one socket, so that the loop can watch reading and writing separately, as with pipes.
        opened(fd, os.dup(fd))

    sock.setblocking(False)
    loop.watch(sock.fileno(), READ, ready)


def refusal(code, reason):
    return {"type": "refused", "code": code, "reason": str(reason)}


LEASE_MS_MAX = 3_600_000


class Claim:
    """The owner of this sandbox, and the time at which the sandbox ends if no frame extends it.

    `token_digest`: SHA-256, in hex, of the token that a claim needs; the owner must then also renew its lease. None for a pipe,
    where a claim needs no token and no lease. `unclaimed_s`: how long the sandbox waits for a claim while nobody is connected."""

    def __init__(self, token_digest=None, unclaimed_s=FOREVER):
        self.token_digest = token_digest
        self.unclaimed_s = unclaimed_s
        self.owner = None
        self.ends_at = time.monotonic() + unclaimed_s

    def bind(self, frame):
        """Accepts the first claim, and repetitions of it, but no other claim. Raises Refused, Malformed."""
        claim = text(frame, "claim", 200)
        if self.token_digest is not None:
            digest = hashlib.sha256(text(frame, "token", 1000).encode("utf-8", "replace")).hexdigest()
            if not hmac.compare_digest(digest, self.token_digest):
                raise Refused("token", "the token is wrong")
        ends_at = self._end_of_lease(frame)
        if self.owner not in (None, claim):
            raise Refused("claimed", "another claim holds this sandbox")
        self.owner = claim
        self.ends_at = ends_at

    def renew(self, frame):
        """Raises Malformed."""
        self.ends_at = self._end_of_lease(frame)

    def expect(self, frame):
        if self.owner is None or frame.get("claim", self.owner) != self.owner:
            raise Refused("unbound", "only the claim that is bound may send this frame")

    def note_connections(self, count):
        """`count`: the number of connections. With no connection and no owner, the sandbox ends after `unclaimed_s`."""
        if self.owner is None:
            self.ends_at = FOREVER if count else time.monotonic() + self.unclaimed_s

    def _end_of_lease(self, frame):
        return FOREVER if self.token_digest is None else time.monotonic() + natural(frame, "leaseMs", LEASE_MS_MAX) / 1000
