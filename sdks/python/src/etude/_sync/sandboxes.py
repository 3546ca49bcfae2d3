# Generated from ../_async/sandboxes.py by tools/generate.py; don't edit.
"""Sandboxes: run code, keep files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType

from etude._sync.calls import Calls
from etude._execution import Execution
from etude._values import bytes_of, chunks_of, duration_of, new_request_id
from etude.v1 import sandboxes_pb2 as pb
from etude.v1 import tasks_pb2


class Sandbox:
    """A code interpreter without a network. It keeps Python names and files until it is closed, for example by `with`."""

    def __init__(self, calls: Calls, name: str) -> None:
        self._calls = calls
        self.name = name

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def stream(
        self, code: str, *, shell: bool = False, stdin: str = "", execution_id: str | None = None
    ) -> Iterator[pb.ExecuteEvent]:
        """Runs code, and yields its output while it runs. The last event is the result. A broken stream resumes automatically."""
        run = execution_id or new_request_id()
        language = pb.LANGUAGE_SHELL if shell else pb.LANGUAGE_PYTHON

        def open_from(token: str) -> pb.ExecuteRequest:
            return pb.ExecuteRequest(
                name=self.name, execution_id=run, language=language, code=code, stdin=stdin, resume_token=token
            )

        for event in self._calls.resuming("Sandboxes/Execute", open_from, pb.ExecuteEvent, "result"):
            yield event

    def run(self, code: str, *, shell: bool = False, stdin: str = "") -> Execution:
        """Runs a Python cell, or with `shell` a command line, to its end. Names stay for the next cell."""
        execution = Execution(new_request_id())
        for event in self.stream(code, shell=shell, stdin=stdin, execution_id=execution.execution_id):
            execution.add(event)
        return execution

    def cancel(self, execution_id: str) -> bool:
        """Stops a running execution. Returns False if it was not running."""
        request = pb.CancelExecutionRequest(name=self.name, execution_id=execution_id)
        return (self._calls.unary("Sandboxes/CancelExecution", request, pb.CancelExecutionResponse)).stopped

    def upload(self, path: str, content: bytes | str) -> pb.SandboxFile:
        """Writes a file, such as "data/input.csv"."""
        data = bytes_of(content)
        header = pb.UploadFileHeader(name=self.name, path=path, size_bytes=len(data))
        parts = [pb.UploadFileRequest(header=header), *(pb.UploadFileRequest(chunk=chunk) for chunk in chunks_of(data))]
        return self._calls.upload("Sandboxes/UploadFile", parts, pb.SandboxFile)

    def download(self, path: str) -> bytes:
        """The content of a file."""
        data = bytearray()
        request = pb.DownloadFileRequest(name=self.name, path=path)
        for part in self._calls.stream("Sandboxes/DownloadFile", request, pb.DownloadFileResponse):
            data += part.chunk
        return bytes(data)

    def files(self) -> Iterator[pb.SandboxFile]:
        """All files, by path."""
        request = pb.ListSandboxFilesRequest(name=self.name)
        for file in self._calls.pages(
            "Sandboxes/ListSandboxFiles", request, pb.ListSandboxFilesResponse, lambda page: page.files
        ):
            yield file

    def delete(self, path: str) -> None:
        """Deletes a file."""
        request = pb.DeleteSandboxFileRequest(name=self.name, path=path)
        self._calls.unary("Sandboxes/DeleteSandboxFile", request, pb.DeleteSandboxFileResponse)

    def renew(self, ttl: float) -> pb.Sandbox:
        """Extends the sandbox's lifetime to `ttl` seconds from now."""
        return self._calls.unary("Sandboxes/RenewSandbox", pb.RenewSandboxRequest(name=self.name, ttl=duration_of(ttl)), pb.Sandbox)

    def close(self) -> None:
        """Ends the sandbox and everything in it. Closing it again changes nothing."""
        self._calls.unary("Sandboxes/CloseSandbox", pb.CloseSandboxRequest(name=self.name), pb.Sandbox)


class Sandboxes:
    """Code interpreters of the tenant."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def create(
        self,
        *,
        template: str = "",
        ttl: float = 600.0,
        limits: tasks_pb2.SandboxLimits | None = None,
        labels: Mapping[str, str] | None = None,
        scratchpad: bool = False,
        request_id: str | None = None,
    ) -> Sandbox:
        """Opens a sandbox for `ttl` seconds."""
        request = pb.CreateSandboxRequest(
            request_id=request_id or new_request_id(),
            template=template,
            limits=limits,
            ttl=duration_of(ttl),
            labels=labels,
            scratchpad=scratchpad,
        )
        return Sandbox(self._calls, (self._calls.unary("Sandboxes/CreateSandbox", request, pb.Sandbox)).name)

    def get(self, name: str) -> Sandbox:
        """A sandbox by its name, without a call to the gateway."""
        return Sandbox(self._calls, name)

    def list(self) -> Iterator[pb.Sandbox]:
        """All open sandboxes, and those that ended within the last hour, newest first."""
        request = pb.ListSandboxesRequest()
        for sandbox in self._calls.pages(
            "Sandboxes/ListSandboxes", request, pb.ListSandboxesResponse, lambda page: page.sandboxes
        ):
            yield sandbox
