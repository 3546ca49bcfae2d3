"""Errors of calls: one class for each gRPC status, with Etude's code and the server's hint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, cast

import grpc
from google.rpc import error_details_pb2, status_pb2  # pyright: ignore[reportMissingTypeStubs]

_DETAILS_KEY = "grpc-status-details-bin"


@dataclass(frozen=True)
class FieldViolation:
    """A wrong field of the request: its path, such as "spec.prompt", and what is wrong with it."""

    field: str
    description: str


class EtudeError(Exception):
    """A failed call. The message says what was wrong and what to do.

    code: Etude's code, such as "NOT_FOUND" (docs/errors.md); the gRPC status if the server sent no code.
    retry_after: seconds to wait before a retry; None if a retry can't help.
    violations: the wrong fields of the request.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "INTERNAL",
        retry_after: float | None = None,
        violations: tuple[FieldViolation, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after
        self.violations = violations

    def __str__(self) -> str:
        return f"{self.code}: {super().__str__()}"


class InvalidArgumentError(EtudeError):
    """The request is wrong; `violations` name the fields."""


class NotFoundError(EtudeError):
    """There is no such record in this tenant."""


class AlreadyExistsError(EtudeError):
    """The request id was used with another body."""


class FailedPreconditionError(EtudeError):
    """A record has the wrong state for this call, such as a closed sandbox."""


class AbortedError(EtudeError):
    """The record has changed since it was read."""


class UnauthenticatedError(EtudeError):
    """The API key is missing or unknown."""


class PermissionDeniedError(EtudeError):
    """The key lacks the role that the message names."""


class ResourceExhaustedError(EtudeError):
    """A limit is reached: of calls, sandboxes, a budget, or the size of a message."""


class UnavailableError(EtudeError):
    """The gateway, or a service that it needs, can't be reached."""


class DeadlineExceededError(EtudeError):
    """The call took longer than its timeout."""


class CallCancelledError(EtudeError):
    """The call was cancelled."""


class TaskFailedError(EtudeError):
    """A task ended without an accepted answer; `task` has its best attempt, if there was one."""

    def __init__(self, message: str, *, task: object, code: str) -> None:
        super().__init__(message, code=code)
        self.task = task


class SkillFailedError(EtudeError):
    """A skill could not answer; `answer` is the whole UseSkillResponse."""

    def __init__(self, message: str, *, answer: object) -> None:
        super().__init__(message, code="SKILL_FAILED")
        self.answer = answer


_CLASSES: dict[str, type[EtudeError]] = {
    "INVALID_ARGUMENT": InvalidArgumentError,
    "NOT_FOUND": NotFoundError,
    "ALREADY_EXISTS": AlreadyExistsError,
    "FAILED_PRECONDITION": FailedPreconditionError,
    "ABORTED": AbortedError,
    "UNAUTHENTICATED": UnauthenticatedError,
    "PERMISSION_DENIED": PermissionDeniedError,
    "RESOURCE_EXHAUSTED": ResourceExhaustedError,
    "UNAVAILABLE": UnavailableError,
    "DEADLINE_EXCEEDED": DeadlineExceededError,
    "CANCELLED": CallCancelledError,
}


class _FailedCall(Protocol):
    """The methods that both kinds of grpc's RpcError have."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


def error_of(error: grpc.RpcError) -> EtudeError:
    """Makes an EtudeError from the trailers of a failed call."""
    failed = cast("_FailedCall", error)
    status = failed.code().name
    message = failed.details() or status
    code, retry_after, violations = status, None, ()
    for key, value in failed.trailing_metadata() or ():
        if key != _DETAILS_KEY or isinstance(value, str):
            continue
        for detail in status_pb2.Status.FromString(value).details:
            info, retry, bad = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo(), error_details_pb2.BadRequest()
            if detail.Unpack(info):
                code = info.reason
            elif detail.Unpack(retry):
                retry_after = retry.retry_delay.ToTimedelta().total_seconds()
            elif detail.Unpack(bad):
                violations = tuple(FieldViolation(one.field, one.description) for one in bad.field_violations)
    if status == "UNAVAILABLE" and retry_after is None:
        retry_after = 0.0
    return _CLASSES.get(status, EtudeError)(message, code=code, retry_after=retry_after, violations=violations)
