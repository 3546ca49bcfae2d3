"""Who owns this sandbox, and how long it lives without hearing from its owner."""
import hashlib
import hmac
import time

from runner.connection import FOREVER
from runner.frames import Refused, natural, text

LEASE_MS_MAX = 3_600_000


class Claim:
    """`token_digest`: SHA-256, in hex, of the token that a claim needs. The owner must then renew its lease. None over a pipe, where
    a claim needs no token and no lease. `unclaimed_s`: seconds that the sandbox waits for a claim while nobody is connected."""

    def __init__(self, token_digest=None, unclaimed_s=FOREVER):
        self.token_digest = token_digest
        self.unclaimed_s = unclaimed_s
        self.owner = None
        self.ends_at = time.monotonic() + unclaimed_s

    def bind(self, frame):
        """Accepts only the first claim, and repeats of that claim. Raises Refused, Malformed."""
        claim = text(frame, "claim", 200)
        if self.token_digest is not None:
            digest = hashlib.sha256(text(frame, "token", 1000).encode("utf-8", "replace")).hexdigest()
            if not hmac.compare_digest(digest, self.token_digest):
                raise Refused("token", "the token is not this sandbox's")
        ends_at = self._end_of_lease(frame)
        if self.owner not in (None, claim):
            raise Refused("claimed", "another claim holds this sandbox")
        self.owner = claim
        self.ends_at = ends_at

    def renew(self, frame):
        """Raises Refused, Malformed."""
        self.expect(frame)
        self.ends_at = self._end_of_lease(frame)

    def expect(self, frame):
        if self.owner is None or frame.get("claim", self.owner) != self.owner:
            raise Refused("unbound", "only the bound claim may do this")

    def note_connections(self, count):
        """Without a connection and an owner, the sandbox ends after `unclaimed_s`."""
        if self.owner is None:
            self.ends_at = FOREVER if count else time.monotonic() + self.unclaimed_s

    def _end_of_lease(self, frame):
        return FOREVER if self.token_digest is None else time.monotonic() + natural(frame, "leaseMs", LEASE_MS_MAX) / 1000
