import datetime

from etude.v1 import tasks_pb2 as _tasks_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SandboxState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SANDBOX_STATE_UNSPECIFIED: _ClassVar[SandboxState]
    SANDBOX_STATE_OPEN: _ClassVar[SandboxState]
    SANDBOX_STATE_CLOSED: _ClassVar[SandboxState]
    SANDBOX_STATE_EXPIRED: _ClassVar[SandboxState]
    SANDBOX_STATE_LOST: _ClassVar[SandboxState]

class Language(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LANGUAGE_UNSPECIFIED: _ClassVar[Language]
    LANGUAGE_PYTHON: _ClassVar[Language]
    LANGUAGE_SHELL: _ClassVar[Language]
SANDBOX_STATE_UNSPECIFIED: SandboxState
SANDBOX_STATE_OPEN: SandboxState
SANDBOX_STATE_CLOSED: SandboxState
SANDBOX_STATE_EXPIRED: SandboxState
SANDBOX_STATE_LOST: SandboxState
LANGUAGE_UNSPECIFIED: Language
LANGUAGE_PYTHON: Language
LANGUAGE_SHELL: Language

class Sandbox(_message.Message):
    __slots__ = ("name", "state", "state_reason", "template", "limits", "labels", "create_time", "expire_time", "scratchpad")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_REASON_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    SCRATCHPAD_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: SandboxState
    state_reason: str
    template: str
    limits: _tasks_pb2.SandboxLimits
    labels: _containers.ScalarMap[str, str]
    create_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    scratchpad: bool
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[SandboxState, str]] = ..., state_reason: _Optional[str] = ..., template: _Optional[str] = ..., limits: _Optional[_Union[_tasks_pb2.SandboxLimits, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., scratchpad: bool = ...) -> None: ...

class CreateSandboxRequest(_message.Message):
    __slots__ = ("request_id", "template", "limits", "ttl", "labels", "scratchpad")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SCRATCHPAD_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    template: str
    limits: _tasks_pb2.SandboxLimits
    ttl: _duration_pb2.Duration
    labels: _containers.ScalarMap[str, str]
    scratchpad: bool
    def __init__(self, request_id: _Optional[str] = ..., template: _Optional[str] = ..., limits: _Optional[_Union[_tasks_pb2.SandboxLimits, _Mapping]] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., scratchpad: bool = ...) -> None: ...

class GetSandboxRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListSandboxesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "state")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    state: SandboxState
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., state: _Optional[_Union[SandboxState, str]] = ...) -> None: ...

class ListSandboxesResponse(_message.Message):
    __slots__ = ("sandboxes", "next_page_token")
    SANDBOXES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sandboxes: _containers.RepeatedCompositeFieldContainer[Sandbox]
    next_page_token: str
    def __init__(self, sandboxes: _Optional[_Iterable[_Union[Sandbox, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RenewSandboxRequest(_message.Message):
    __slots__ = ("name", "ttl")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    name: str
    ttl: _duration_pb2.Duration
    def __init__(self, name: _Optional[str] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class CloseSandboxRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExecuteRequest(_message.Message):
    __slots__ = ("name", "execution_id", "language", "code", "stdin", "limits", "resume_token", "tools", "scratchpad")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    SCRATCHPAD_FIELD_NUMBER: _ClassVar[int]
    name: str
    execution_id: str
    language: Language
    code: str
    stdin: str
    limits: _tasks_pb2.SandboxLimits
    resume_token: str
    tools: _containers.RepeatedCompositeFieldContainer[CellTool]
    scratchpad: Scratchpad
    def __init__(self, name: _Optional[str] = ..., execution_id: _Optional[str] = ..., language: _Optional[_Union[Language, str]] = ..., code: _Optional[str] = ..., stdin: _Optional[str] = ..., limits: _Optional[_Union[_tasks_pb2.SandboxLimits, _Mapping]] = ..., resume_token: _Optional[str] = ..., tools: _Optional[_Iterable[_Union[CellTool, _Mapping]]] = ..., scratchpad: _Optional[_Union[Scratchpad, _Mapping]] = ...) -> None: ...

class CellTool(_message.Message):
    __slots__ = ("name", "parameters", "description")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    parameters: _containers.RepeatedScalarFieldContainer[str]
    description: str
    def __init__(self, name: _Optional[str] = ..., parameters: _Optional[_Iterable[str]] = ..., description: _Optional[str] = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("number", "tool", "arguments")
    class ArgumentsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _struct_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    number: int
    tool: str
    arguments: _containers.MessageMap[str, _struct_pb2.Value]
    def __init__(self, number: _Optional[int] = ..., tool: _Optional[str] = ..., arguments: _Optional[_Mapping[str, _struct_pb2.Value]] = ...) -> None: ...

class AnswerToolCallRequest(_message.Message):
    __slots__ = ("name", "execution_id", "number", "result", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    execution_id: str
    number: int
    result: _struct_pb2.Value
    error: str
    def __init__(self, name: _Optional[str] = ..., execution_id: _Optional[str] = ..., number: _Optional[int] = ..., result: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., error: _Optional[str] = ...) -> None: ...

class AnswerToolCallResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Scratchpad(_message.Message):
    __slots__ = ("values", "observations", "failed_approaches")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_FIELD_NUMBER: _ClassVar[int]
    FAILED_APPROACHES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[ScratchpadValue]
    observations: _containers.RepeatedScalarFieldContainer[str]
    failed_approaches: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, values: _Optional[_Iterable[_Union[ScratchpadValue, _Mapping]]] = ..., observations: _Optional[_Iterable[str]] = ..., failed_approaches: _Optional[_Iterable[str]] = ...) -> None: ...

class ScratchpadValue(_message.Message):
    __slots__ = ("name", "shown", "pickled", "file", "lost")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    PICKLED_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    name: str
    shown: str
    pickled: str
    file: str
    lost: str
    def __init__(self, name: _Optional[str] = ..., shown: _Optional[str] = ..., pickled: _Optional[str] = ..., file: _Optional[str] = ..., lost: _Optional[str] = ...) -> None: ...

class ExecuteEvent(_message.Message):
    __slots__ = ("execution_id", "resume_token", "stdout", "stderr", "display", "result", "tool_call")
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    resume_token: str
    stdout: str
    stderr: str
    display: RichOutput
    result: ExecutionOutcome
    tool_call: ToolCall
    def __init__(self, execution_id: _Optional[str] = ..., resume_token: _Optional[str] = ..., stdout: _Optional[str] = ..., stderr: _Optional[str] = ..., display: _Optional[_Union[RichOutput, _Mapping]] = ..., result: _Optional[_Union[ExecutionOutcome, _Mapping]] = ..., tool_call: _Optional[_Union[ToolCall, _Mapping]] = ...) -> None: ...

class RichOutput(_message.Message):
    __slots__ = ("text", "binary", "json")
    class TextEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class BinaryEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    class JsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _struct_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BINARY_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    text: _containers.ScalarMap[str, str]
    binary: _containers.ScalarMap[str, bytes]
    json: _containers.MessageMap[str, _struct_pb2.Value]
    def __init__(self, text: _Optional[_Mapping[str, str]] = ..., binary: _Optional[_Mapping[str, bytes]] = ..., json: _Optional[_Mapping[str, _struct_pb2.Value]] = ...) -> None: ...

class ExecutionOutcome(_message.Message):
    __slots__ = ("exit", "exit_code", "signal", "stdout_cut_bytes", "stderr_cut_bytes", "cpu", "wall", "memory_peak_kib", "error", "state_lost", "scratchpad", "working_memory")
    EXIT_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    STDOUT_CUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    STDERR_CUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    WALL_FIELD_NUMBER: _ClassVar[int]
    MEMORY_PEAK_KIB_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    STATE_LOST_FIELD_NUMBER: _ClassVar[int]
    SCRATCHPAD_FIELD_NUMBER: _ClassVar[int]
    WORKING_MEMORY_FIELD_NUMBER: _ClassVar[int]
    exit: str
    exit_code: int
    signal: int
    stdout_cut_bytes: int
    stderr_cut_bytes: int
    cpu: _duration_pb2.Duration
    wall: _duration_pb2.Duration
    memory_peak_kib: int
    error: ExecutionError
    state_lost: bool
    scratchpad: Scratchpad
    working_memory: str
    def __init__(self, exit: _Optional[str] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., stdout_cut_bytes: _Optional[int] = ..., stderr_cut_bytes: _Optional[int] = ..., cpu: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., wall: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., memory_peak_kib: _Optional[int] = ..., error: _Optional[_Union[ExecutionError, _Mapping]] = ..., state_lost: bool = ..., scratchpad: _Optional[_Union[Scratchpad, _Mapping]] = ..., working_memory: _Optional[str] = ...) -> None: ...

class ExecutionError(_message.Message):
    __slots__ = ("type", "message", "line")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    type: str
    message: str
    line: int
    def __init__(self, type: _Optional[str] = ..., message: _Optional[str] = ..., line: _Optional[int] = ...) -> None: ...

class CancelExecutionRequest(_message.Message):
    __slots__ = ("name", "execution_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    execution_id: str
    def __init__(self, name: _Optional[str] = ..., execution_id: _Optional[str] = ...) -> None: ...

class CancelExecutionResponse(_message.Message):
    __slots__ = ("stopped",)
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    stopped: bool
    def __init__(self, stopped: bool = ...) -> None: ...

class UploadFileRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: UploadFileHeader
    chunk: bytes
    def __init__(self, header: _Optional[_Union[UploadFileHeader, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class UploadFileHeader(_message.Message):
    __slots__ = ("name", "path", "offset", "size_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    path: str
    offset: int
    size_bytes: int
    def __init__(self, name: _Optional[str] = ..., path: _Optional[str] = ..., offset: _Optional[int] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class DownloadFileRequest(_message.Message):
    __slots__ = ("name", "path", "offset")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    name: str
    path: str
    offset: int
    def __init__(self, name: _Optional[str] = ..., path: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class DownloadFileResponse(_message.Message):
    __slots__ = ("chunk", "size_bytes")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    size_bytes: int
    def __init__(self, chunk: _Optional[bytes] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class SandboxFile(_message.Message):
    __slots__ = ("path", "size_bytes", "modify_time", "uploaded_bytes")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MODIFY_TIME_FIELD_NUMBER: _ClassVar[int]
    UPLOADED_BYTES_FIELD_NUMBER: _ClassVar[int]
    path: str
    size_bytes: int
    modify_time: _timestamp_pb2.Timestamp
    uploaded_bytes: int
    def __init__(self, path: _Optional[str] = ..., size_bytes: _Optional[int] = ..., modify_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., uploaded_bytes: _Optional[int] = ...) -> None: ...

class GetSandboxFileRequest(_message.Message):
    __slots__ = ("name", "path")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    name: str
    path: str
    def __init__(self, name: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class ListSandboxFilesRequest(_message.Message):
    __slots__ = ("name", "page_size", "page_token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    page_size: int
    page_token: str
    def __init__(self, name: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSandboxFilesResponse(_message.Message):
    __slots__ = ("files", "next_page_token")
    FILES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[SandboxFile]
    next_page_token: str
    def __init__(self, files: _Optional[_Iterable[_Union[SandboxFile, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SearchSandboxFilesRequest(_message.Message):
    __slots__ = ("name", "text", "limit")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    limit: int
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class SearchSandboxFilesResponse(_message.Message):
    __slots__ = ("lines", "total")
    LINES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedCompositeFieldContainer[FoundLine]
    total: int
    def __init__(self, lines: _Optional[_Iterable[_Union[FoundLine, _Mapping]]] = ..., total: _Optional[int] = ...) -> None: ...

class FoundLine(_message.Message):
    __slots__ = ("path", "line", "text")
    PATH_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    path: str
    line: int
    text: str
    def __init__(self, path: _Optional[str] = ..., line: _Optional[int] = ..., text: _Optional[str] = ...) -> None: ...

class DeleteSandboxFileRequest(_message.Message):
    __slots__ = ("name", "path")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    name: str
    path: str
    def __init__(self, name: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class DeleteSandboxFileResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
