"""The client of a gateway."""

from __future__ import annotations

from types import TracebackType

from etude._async.calls import AsyncCalls
from etude._async.memory import AsyncMemory
from etude._async.sandboxes import AsyncSandboxes
from etude._async.skills import AsyncSkills
from etude._async.tasks import AsyncTasks
from etude._settings import Key, Tls, find_address, find_key, is_local


class AsyncEtude:
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
        self._calls = AsyncCalls(self.address, find_key(api_key, local=is_local(address)), tls, timeout, retry_for)
        self.tasks = AsyncTasks(self._calls)
        self.skills = AsyncSkills(self._calls)
        self.memory = AsyncMemory(self._calls)
        self.sandboxes = AsyncSandboxes(self._calls)

    async def __aenter__(self) -> AsyncEtude:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection."""
        await self._calls.close()
