# Generated from ../_async/client.py by tools/generate.py; don't edit.
"""The client of a gateway."""

from __future__ import annotations

from types import TracebackType

from etude._sync.calls import Calls
from etude._sync.memory import Memory
from etude._sync.sandboxes import Sandboxes
from etude._sync.skills import Skills
from etude._sync.tasks import Tasks
from etude._settings import Key, Tls, find_address, find_key, is_local


class Etude:
    """A client of one gateway. It can be used in `with`, which closes it.

    address: "host:port"; None: ETUDE_ADDRESS, or the local stack.
    api_key: a key or a JWT, or a function that returns one; None: ETUDE_API_KEY, or the local stack's key.
    tls: settings of TLS; None: plain text.
    timeout: timeout of one call, in seconds.
    retry_for: seconds for which calls are repeated while the gateway is unreachable; 0: never.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        api_key: Key | None = None,
        tls: Tls | None = None,
        timeout: float = 30.0,
        retry_for: float = 30.0,
    ) -> None:
        self.address = find_address(address)
        self._calls = Calls(self.address, find_key(api_key, local=is_local(address)), tls, timeout, retry_for)
        self.tasks = Tasks(self._calls)
        self.skills = Skills(self._calls)
        self.memory = Memory(self._calls)
        self.sandboxes = Sandboxes(self._calls)

    def __enter__(self) -> Etude:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._calls.close()
