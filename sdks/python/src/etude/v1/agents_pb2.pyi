import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Agent(_message.Message):
    __slots__ = ("name", "procedural_memory_settings", "is_set", "update_time", "etag", "strategy", "mcp_servers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROCEDURAL_MEMORY_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    IS_SET_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    MCP_SERVERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    procedural_memory_settings: ProceduralMemorySettings
    is_set: bool
    update_time: _timestamp_pb2.Timestamp
    etag: str
    strategy: str
    mcp_servers: _containers.RepeatedCompositeFieldContainer[McpServer]
    def __init__(self, name: _Optional[str] = ..., procedural_memory_settings: _Optional[_Union[ProceduralMemorySettings, _Mapping]] = ..., is_set: bool = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ..., strategy: _Optional[str] = ..., mcp_servers: _Optional[_Iterable[_Union[McpServer, _Mapping]]] = ...) -> None: ...

class McpServer(_message.Message):
    __slots__ = ("name", "url", "command", "tools", "headers", "env", "timeout")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    name: str
    url: str
    command: str
    tools: _containers.RepeatedScalarFieldContainer[str]
    headers: _containers.ScalarMap[str, str]
    env: _containers.ScalarMap[str, str]
    timeout: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., url: _Optional[str] = ..., command: _Optional[str] = ..., tools: _Optional[_Iterable[str]] = ..., headers: _Optional[_Mapping[str, str]] = ..., env: _Optional[_Mapping[str, str]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ProceduralMemorySettings(_message.Message):
    __slots__ = ("enabled", "auto_register_skills", "skill_registration_confidence_threshold", "max_skills", "skill_search_threshold", "prefer_skills", "approval_mode", "settle_facts")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    AUTO_REGISTER_SKILLS_FIELD_NUMBER: _ClassVar[int]
    SKILL_REGISTRATION_CONFIDENCE_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    MAX_SKILLS_FIELD_NUMBER: _ClassVar[int]
    SKILL_SEARCH_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    PREFER_SKILLS_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_MODE_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FACTS_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    auto_register_skills: bool
    skill_registration_confidence_threshold: float
    max_skills: int
    skill_search_threshold: float
    prefer_skills: bool
    approval_mode: str
    settle_facts: bool
    def __init__(self, enabled: bool = ..., auto_register_skills: bool = ..., skill_registration_confidence_threshold: _Optional[float] = ..., max_skills: _Optional[int] = ..., skill_search_threshold: _Optional[float] = ..., prefer_skills: bool = ..., approval_mode: _Optional[str] = ..., settle_facts: bool = ...) -> None: ...

class ListAgentsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAgentsResponse(_message.Message):
    __slots__ = ("agents", "next_page_token")
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[Agent]
    next_page_token: str
    def __init__(self, agents: _Optional[_Iterable[_Union[Agent, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetAgentRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class UpdateAgentRequest(_message.Message):
    __slots__ = ("agent", "update_mask", "request_id")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent: Agent
    update_mask: _field_mask_pb2.FieldMask
    request_id: str
    def __init__(self, agent: _Optional[_Union[Agent, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...
