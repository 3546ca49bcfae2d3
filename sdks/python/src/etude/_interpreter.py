"""A code interpreter for agents of other frameworks. It opens a sandbox when it needs one."""

from __future__ import annotations

from threading import Lock

from etude._errors import FailedPreconditionError, NotFoundError
from etude._execution import Execution
from etude._sync.client import Etude
from etude._sync.sandboxes import Sandbox

DESCRIPTION = (
    "Runs Python code in a sandbox without a network, and returns what it prints and the value of its last expression. "
    "Names and files stay for the next call."
)
_SHOWN_CHARS = 20_000


class Interpreter:
    """Runs code in a sandbox. It opens a sandbox at the first use, and a new one once the old one has ended.

    ttl: seconds that the sandbox lives after its last use.
    """

    def __init__(self, client: Etude | None = None, *, template: str = "", ttl: float = 600.0) -> None:
        self._client = client or Etude()
        self._template = template
        self._ttl = ttl
        self._sandbox: Sandbox | None = None
        self._one_at_a_time = Lock()

    def run(self, code: str) -> str:
        """Runs code. Returns its output, displayed values and error as text for a model."""
        with self._one_at_a_time:
            return _shown(self._open().run(code))

    def close(self) -> None:
        """Closes the sandbox. The next run opens a new sandbox."""
        with self._one_at_a_time:
            if self._sandbox is not None:
                self._sandbox.close()
            self._sandbox = None

    def _open(self) -> Sandbox:
        if self._sandbox is not None:
            try:
                self._sandbox.renew(self._ttl)
                return self._sandbox
            except (NotFoundError, FailedPreconditionError):
                pass
        self._sandbox = self._client.sandboxes.create(template=self._template, ttl=self._ttl)
        return self._sandbox


def _shown(execution: Execution) -> str:
    parts = [execution.stdout, execution.stderr, *(one.text.get("text/plain", "") for one in execution.displays)]
    if not execution.ok and not execution.stderr:
        error = execution.outcome.error
        parts.append(f"{error.type}: {error.message}" if error.type else f"ended by {execution.outcome.exit}")
    text = "\n".join(part.rstrip("\n") for part in parts if part)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS // 2]}\n[...]\n{text[-_SHOWN_CHARS // 2 :]}"
