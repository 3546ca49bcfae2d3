"""Client of Etude: submit tasks, use memory and skills, run code in sandboxes."""

from etude._async.client import AsyncEtude
from etude._async.sandboxes import AsyncSandbox
from etude._async.tasks import AsyncTask
from etude._errors import (
    AbortedError,
    AlreadyExistsError,
    CallCancelledError,
    DeadlineExceededError,
    EtudeError,
    FailedPreconditionError,
    FieldViolation,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    SkillFailedError,
    TaskFailedError,
    UnauthenticatedError,
    UnavailableError,
)
from etude._execution import Execution
from etude._settings import Tls
from etude._sync.client import Etude
from etude._sync.sandboxes import Sandbox
from etude._sync.tasks import Task

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "AsyncEtude",
    "AsyncSandbox",
    "AsyncTask",
    "CallCancelledError",
    "DeadlineExceededError",
    "Etude",
    "EtudeError",
    "Execution",
    "FailedPreconditionError",
    "FieldViolation",
    "InvalidArgumentError",
    "NotFoundError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "Sandbox",
    "SkillFailedError",
    "Task",
    "TaskFailedError",
    "Tls",
    "UnauthenticatedError",
    "UnavailableError",
]
