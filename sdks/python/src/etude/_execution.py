"""The output and outcome of an execution in a sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field

from etude.v1 import sandboxes_pb2 as pb


@dataclass
class Execution:
    """A finished execution. `displays` has each displayed object in all its forms."""

    execution_id: str
    stdout: str = ""
    stderr: str = ""
    displays: list[pb.RichOutput] = field(default_factory=list[pb.RichOutput])
    outcome: pb.ExecutionOutcome = field(default_factory=pb.ExecutionOutcome)

    @property
    def ok(self) -> bool:
        """Whether the code ran to its end."""
        return self.outcome.exit == "ok"

    @property
    def text(self) -> str:
        """The last displayed object as text, such as the value of the last expression."""
        return self.displays[-1].text.get("text/plain", "") if self.displays else ""

    def add(self, event: pb.ExecuteEvent) -> None:
        kind = event.WhichOneof("event")
        if kind == "stdout":
            self.stdout += event.stdout
        elif kind == "stderr":
            self.stderr += event.stderr
        elif kind == "display":
            self.displays.append(event.display)
        elif kind == "result":
            self.outcome = event.result
