import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListQueuesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues", "sandbox_controllers")
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_CONTROLLERS_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    sandbox_controllers: _containers.RepeatedCompositeFieldContainer[SandboxController]
    def __init__(self, queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ..., sandbox_controllers: _Optional[_Iterable[_Union[SandboxController, _Mapping]]] = ...) -> None: ...

class SandboxController(_message.Message):
    __slots__ = ("id", "sessions", "sessions_max", "warm", "claims_waiting")
    ID_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_MAX_FIELD_NUMBER: _ClassVar[int]
    WARM_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_WAITING_FIELD_NUMBER: _ClassVar[int]
    id: str
    sessions: int
    sessions_max: int
    warm: int
    claims_waiting: int
    def __init__(self, id: _Optional[str] = ..., sessions: _Optional[int] = ..., sessions_max: _Optional[int] = ..., warm: _Optional[int] = ..., claims_waiting: _Optional[int] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("name", "waiting", "active", "delayed", "dead", "workers", "oldest_waiting_ms")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_WAITING_MS_FIELD_NUMBER: _ClassVar[int]
    name: str
    waiting: int
    active: int
    delayed: int
    dead: int
    workers: int
    oldest_waiting_ms: int
    def __init__(self, name: _Optional[str] = ..., waiting: _Optional[int] = ..., active: _Optional[int] = ..., delayed: _Optional[int] = ..., dead: _Optional[int] = ..., workers: _Optional[int] = ..., oldest_waiting_ms: _Optional[int] = ...) -> None: ...

class ListDeadLettersRequest(_message.Message):
    __slots__ = ("queue", "page_size", "page_token")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    queue: str
    page_size: int
    page_token: str
    def __init__(self, queue: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDeadLettersResponse(_message.Message):
    __slots__ = ("dead_letters", "next_page_token")
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    dead_letters: _containers.RepeatedCompositeFieldContainer[DeadLetter]
    next_page_token: str
    def __init__(self, dead_letters: _Optional[_Iterable[_Union[DeadLetter, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("queue", "id", "code", "reason", "path", "payload_json", "attempts", "fail_time")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    FAIL_TIME_FIELD_NUMBER: _ClassVar[int]
    queue: str
    id: str
    code: str
    reason: str
    path: str
    payload_json: str
    attempts: int
    fail_time: _timestamp_pb2.Timestamp
    def __init__(self, queue: _Optional[str] = ..., id: _Optional[str] = ..., code: _Optional[str] = ..., reason: _Optional[str] = ..., path: _Optional[str] = ..., payload_json: _Optional[str] = ..., attempts: _Optional[int] = ..., fail_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RedriveDeadLettersRequest(_message.Message):
    __slots__ = ("queue", "ids", "all")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    queue: str
    ids: _containers.RepeatedScalarFieldContainer[str]
    all: bool
    def __init__(self, queue: _Optional[str] = ..., ids: _Optional[_Iterable[str]] = ..., all: bool = ...) -> None: ...

class RedriveDeadLettersResponse(_message.Message):
    __slots__ = ("redriven", "refused")
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    redriven: int
    refused: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, redriven: _Optional[int] = ..., refused: _Optional[_Iterable[str]] = ...) -> None: ...

class ListTenantsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTenantsResponse(_message.Message):
    __slots__ = ("tenants", "next_page_token")
    TENANTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tenants: _containers.RepeatedCompositeFieldContainer[Tenant]
    next_page_token: str
    def __init__(self, tenants: _Optional[_Iterable[_Union[Tenant, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Tenant(_message.Message):
    __slots__ = ("name", "waiting", "running", "sandboxes", "tokens_today", "usd_today", "refused_today", "limits")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SANDBOXES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_TODAY_FIELD_NUMBER: _ClassVar[int]
    USD_TODAY_FIELD_NUMBER: _ClassVar[int]
    REFUSED_TODAY_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    name: str
    waiting: int
    running: int
    sandboxes: int
    tokens_today: int
    usd_today: float
    refused_today: int
    limits: TenantLimits
    def __init__(self, name: _Optional[str] = ..., waiting: _Optional[int] = ..., running: _Optional[int] = ..., sandboxes: _Optional[int] = ..., tokens_today: _Optional[int] = ..., usd_today: _Optional[float] = ..., refused_today: _Optional[int] = ..., limits: _Optional[_Union[TenantLimits, _Mapping]] = ...) -> None: ...

class TenantLimits(_message.Message):
    __slots__ = ("weight", "tasks", "submits_per_minute", "sandboxes", "tokens_per_day", "usd_per_day")
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    SUBMITS_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    SANDBOXES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    USD_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    weight: int
    tasks: int
    submits_per_minute: int
    sandboxes: int
    tokens_per_day: int
    usd_per_day: float
    def __init__(self, weight: _Optional[int] = ..., tasks: _Optional[int] = ..., submits_per_minute: _Optional[int] = ..., sandboxes: _Optional[int] = ..., tokens_per_day: _Optional[int] = ..., usd_per_day: _Optional[float] = ...) -> None: ...

class ListAuditRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "tenant", "days")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    DAYS_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    tenant: str
    days: int
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., tenant: _Optional[str] = ..., days: _Optional[int] = ...) -> None: ...

class ListAuditResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AuditEntry(_message.Message):
    __slots__ = ("id", "time", "actor", "roles", "call", "target", "outcome", "count")
    ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    id: str
    time: _timestamp_pb2.Timestamp
    actor: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    call: str
    target: str
    outcome: str
    count: int
    def __init__(self, id: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., actor: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., call: _Optional[str] = ..., target: _Optional[str] = ..., outcome: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...
