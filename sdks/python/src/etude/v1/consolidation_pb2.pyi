import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ConsolidationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONSOLIDATION_STATE_UNSPECIFIED: _ClassVar[ConsolidationState]
    CONSOLIDATION_STATE_QUEUED: _ClassVar[ConsolidationState]
    CONSOLIDATION_STATE_RUNNING: _ClassVar[ConsolidationState]
    CONSOLIDATION_STATE_DONE: _ClassVar[ConsolidationState]
    CONSOLIDATION_STATE_FAILED: _ClassVar[ConsolidationState]

class ConsolidatedState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONSOLIDATED_STATE_UNSPECIFIED: _ClassVar[ConsolidatedState]
    CONSOLIDATED_STATE_PLANNED: _ClassVar[ConsolidatedState]
    CONSOLIDATED_STATE_APPLIED: _ClassVar[ConsolidatedState]
    CONSOLIDATED_STATE_UNCHANGED: _ClassVar[ConsolidatedState]
    CONSOLIDATED_STATE_GATED: _ClassVar[ConsolidatedState]
    CONSOLIDATED_STATE_FAILED: _ClassVar[ConsolidatedState]
    CONSOLIDATED_STATE_LEFT: _ClassVar[ConsolidatedState]
    CONSOLIDATED_STATE_UNDONE: _ClassVar[ConsolidatedState]
CONSOLIDATION_STATE_UNSPECIFIED: ConsolidationState
CONSOLIDATION_STATE_QUEUED: ConsolidationState
CONSOLIDATION_STATE_RUNNING: ConsolidationState
CONSOLIDATION_STATE_DONE: ConsolidationState
CONSOLIDATION_STATE_FAILED: ConsolidationState
CONSOLIDATED_STATE_UNSPECIFIED: ConsolidatedState
CONSOLIDATED_STATE_PLANNED: ConsolidatedState
CONSOLIDATED_STATE_APPLIED: ConsolidatedState
CONSOLIDATED_STATE_UNCHANGED: ConsolidatedState
CONSOLIDATED_STATE_GATED: ConsolidatedState
CONSOLIDATED_STATE_FAILED: ConsolidatedState
CONSOLIDATED_STATE_LEFT: ConsolidatedState
CONSOLIDATED_STATE_UNDONE: ConsolidatedState

class RunConsolidationRequest(_message.Message):
    __slots__ = ("agent", "days", "dry_run", "request_id", "force")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    DAYS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    agent: str
    days: int
    dry_run: bool
    request_id: str
    force: bool
    def __init__(self, agent: _Optional[str] = ..., days: _Optional[int] = ..., dry_run: bool = ..., request_id: _Optional[str] = ..., force: bool = ...) -> None: ...

class ListConsolidationRunsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListConsolidationRunsResponse(_message.Message):
    __slots__ = ("runs", "next_page_token")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[ConsolidationRun]
    next_page_token: str
    def __init__(self, runs: _Optional[_Iterable[_Union[ConsolidationRun, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetConsolidationRunRequest(_message.Message):
    __slots__ = ("name", "page_size", "page_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    page_size: int
    page_token: str
    def __init__(self, name: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class UndoConsolidationRequest(_message.Message):
    __slots__ = ("name", "agent", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class UndoConsolidationResponse(_message.Message):
    __slots__ = ("agents",)
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[UndoneConsolidation]
    def __init__(self, agents: _Optional[_Iterable[_Union[UndoneConsolidation, _Mapping]]] = ...) -> None: ...

class UndoneConsolidation(_message.Message):
    __slots__ = ("agent", "undone", "kept")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    UNDONE_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    agent: str
    undone: _containers.RepeatedScalarFieldContainer[str]
    kept: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent: _Optional[str] = ..., undone: _Optional[_Iterable[str]] = ..., kept: _Optional[_Iterable[str]] = ...) -> None: ...

class ConsolidatedAgent(_message.Message):
    __slots__ = ("agent", "state", "reason", "episodes_read", "groups", "facts_added", "facts_reinforced", "skills_proposed", "model_calls", "model_failures", "input_tokens", "output_tokens", "cost_usd", "scripted")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EPISODES_READ_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    FACTS_ADDED_FIELD_NUMBER: _ClassVar[int]
    FACTS_REINFORCED_FIELD_NUMBER: _ClassVar[int]
    SKILLS_PROPOSED_FIELD_NUMBER: _ClassVar[int]
    MODEL_CALLS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FAILURES_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    SCRIPTED_FIELD_NUMBER: _ClassVar[int]
    agent: str
    state: ConsolidatedState
    reason: str
    episodes_read: int
    groups: int
    facts_added: int
    facts_reinforced: int
    skills_proposed: int
    model_calls: int
    model_failures: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    scripted: bool
    def __init__(self, agent: _Optional[str] = ..., state: _Optional[_Union[ConsolidatedState, str]] = ..., reason: _Optional[str] = ..., episodes_read: _Optional[int] = ..., groups: _Optional[int] = ..., facts_added: _Optional[int] = ..., facts_reinforced: _Optional[int] = ..., skills_proposed: _Optional[int] = ..., model_calls: _Optional[int] = ..., model_failures: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., scripted: bool = ...) -> None: ...

class ConsolidationRun(_message.Message):
    __slots__ = ("name", "state", "create_time", "end_time", "episodes_read", "groups", "facts_added", "facts_reinforced", "skills_proposed", "skills_activated", "skills_rejected", "model_calls", "model_failures", "plan", "error", "dry_run", "scripted", "input_tokens", "output_tokens", "cost_usd", "agents", "next_page_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    EPISODES_READ_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    FACTS_ADDED_FIELD_NUMBER: _ClassVar[int]
    FACTS_REINFORCED_FIELD_NUMBER: _ClassVar[int]
    SKILLS_PROPOSED_FIELD_NUMBER: _ClassVar[int]
    SKILLS_ACTIVATED_FIELD_NUMBER: _ClassVar[int]
    SKILLS_REJECTED_FIELD_NUMBER: _ClassVar[int]
    MODEL_CALLS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FAILURES_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    SCRIPTED_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: ConsolidationState
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    episodes_read: int
    groups: int
    facts_added: int
    facts_reinforced: int
    skills_proposed: int
    skills_activated: int
    skills_rejected: int
    model_calls: int
    model_failures: int
    plan: _containers.RepeatedScalarFieldContainer[str]
    error: str
    dry_run: bool
    scripted: bool
    input_tokens: int
    output_tokens: int
    cost_usd: float
    agents: _containers.RepeatedCompositeFieldContainer[ConsolidatedAgent]
    next_page_token: str
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[ConsolidationState, str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., episodes_read: _Optional[int] = ..., groups: _Optional[int] = ..., facts_added: _Optional[int] = ..., facts_reinforced: _Optional[int] = ..., skills_proposed: _Optional[int] = ..., skills_activated: _Optional[int] = ..., skills_rejected: _Optional[int] = ..., model_calls: _Optional[int] = ..., model_failures: _Optional[int] = ..., plan: _Optional[_Iterable[str]] = ..., error: _Optional[str] = ..., dry_run: bool = ..., scripted: bool = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., agents: _Optional[_Iterable[_Union[ConsolidatedAgent, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
