import datetime

from etude.v1 import tools_pb2 as _tools_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class World(_message.Message):
    __slots__ = ("name", "seed", "width", "height", "tick", "agents", "rows", "create_time", "update_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    TICK_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    seed: str
    width: int
    height: int
    tick: int
    agents: _containers.RepeatedCompositeFieldContainer[WorldAgent]
    rows: _containers.RepeatedScalarFieldContainer[str]
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., seed: _Optional[str] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., tick: _Optional[int] = ..., agents: _Optional[_Iterable[_Union[WorldAgent, _Mapping]]] = ..., rows: _Optional[_Iterable[str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class WorldAgent(_message.Message):
    __slots__ = ("name", "x", "y", "stamina", "inventory")
    class InventoryEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    STAMINA_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_FIELD_NUMBER: _ClassVar[int]
    name: str
    x: int
    y: int
    stamina: float
    inventory: _containers.ScalarMap[str, int]
    def __init__(self, name: _Optional[str] = ..., x: _Optional[int] = ..., y: _Optional[int] = ..., stamina: _Optional[float] = ..., inventory: _Optional[_Mapping[str, int]] = ...) -> None: ...

class CreateWorldRequest(_message.Message):
    __slots__ = ("name", "seed", "width", "height")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    name: str
    seed: str
    width: int
    height: int
    def __init__(self, name: _Optional[str] = ..., seed: _Optional[str] = ..., width: _Optional[int] = ..., height: _Optional[int] = ...) -> None: ...

class GetWorldRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListWorldsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListWorldsResponse(_message.Message):
    __slots__ = ("worlds", "next_page_token")
    WORLDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    worlds: _containers.RepeatedCompositeFieldContainer[World]
    next_page_token: str
    def __init__(self, worlds: _Optional[_Iterable[_Union[World, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteWorldRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteWorldResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MoveInWorldRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "tool", "arguments", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    tool: str
    arguments: _struct_pb2.Struct
    request_id: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., tool: _Optional[str] = ..., arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...
