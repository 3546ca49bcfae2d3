import datetime

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

class LearningState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LEARNING_STATE_UNSPECIFIED: _ClassVar[LearningState]
    LEARNING_STATE_NONE: _ClassVar[LearningState]
    LEARNING_STATE_PENDING: _ClassVar[LearningState]
    LEARNING_STATE_DONE: _ClassVar[LearningState]
    LEARNING_STATE_FAILED: _ClassVar[LearningState]

class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATE_UNSPECIFIED: _ClassVar[TaskState]
    TASK_STATE_QUEUED: _ClassVar[TaskState]
    TASK_STATE_RUNNING: _ClassVar[TaskState]
    TASK_STATE_SUCCEEDED: _ClassVar[TaskState]
    TASK_STATE_FAILED: _ClassVar[TaskState]
    TASK_STATE_CANCELLED: _ClassVar[TaskState]
    TASK_STATE_INPUT_REQUIRED: _ClassVar[TaskState]

class StopReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STOP_REASON_UNSPECIFIED: _ClassVar[StopReason]
    STOP_REASON_SOLVED: _ClassVar[StopReason]
    STOP_REASON_ATTEMPTS: _ClassVar[StopReason]
    STOP_REASON_STEPS: _ClassVar[StopReason]
    STOP_REASON_WALL_TIME: _ClassVar[StopReason]
    STOP_REASON_MODEL_TOKENS: _ClassVar[StopReason]
    STOP_REASON_COST: _ClassVar[StopReason]
    STOP_REASON_CANCELLED: _ClassVar[StopReason]
    STOP_REASON_ERROR: _ClassVar[StopReason]
    STOP_REASON_BUDGET: _ClassVar[StopReason]

class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODE_UNSPECIFIED: _ClassVar[Mode]
    MODE_INFERENCE: _ClassVar[Mode]
    MODE_TRAINING: _ClassVar[Mode]

class Comparison(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPARISON_UNSPECIFIED: _ClassVar[Comparison]
    COMPARISON_WHITESPACE: _ClassVar[Comparison]
    COMPARISON_EXACT: _ClassVar[Comparison]
    COMPARISON_NUMERIC: _ClassVar[Comparison]

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSPECIFIED: _ClassVar[Verdict]
    VERDICT_AC: _ClassVar[Verdict]
    VERDICT_WA: _ClassVar[Verdict]
    VERDICT_TLE: _ClassVar[Verdict]
    VERDICT_MLE: _ClassVar[Verdict]
    VERDICT_RE: _ClassVar[Verdict]
LEARNING_STATE_UNSPECIFIED: LearningState
LEARNING_STATE_NONE: LearningState
LEARNING_STATE_PENDING: LearningState
LEARNING_STATE_DONE: LearningState
LEARNING_STATE_FAILED: LearningState
TASK_STATE_UNSPECIFIED: TaskState
TASK_STATE_QUEUED: TaskState
TASK_STATE_RUNNING: TaskState
TASK_STATE_SUCCEEDED: TaskState
TASK_STATE_FAILED: TaskState
TASK_STATE_CANCELLED: TaskState
TASK_STATE_INPUT_REQUIRED: TaskState
STOP_REASON_UNSPECIFIED: StopReason
STOP_REASON_SOLVED: StopReason
STOP_REASON_ATTEMPTS: StopReason
STOP_REASON_STEPS: StopReason
STOP_REASON_WALL_TIME: StopReason
STOP_REASON_MODEL_TOKENS: StopReason
STOP_REASON_COST: StopReason
STOP_REASON_CANCELLED: StopReason
STOP_REASON_ERROR: StopReason
STOP_REASON_BUDGET: StopReason
MODE_UNSPECIFIED: Mode
MODE_INFERENCE: Mode
MODE_TRAINING: Mode
COMPARISON_UNSPECIFIED: Comparison
COMPARISON_WHITESPACE: Comparison
COMPARISON_EXACT: Comparison
COMPARISON_NUMERIC: Comparison
VERDICT_UNSPECIFIED: Verdict
VERDICT_AC: Verdict
VERDICT_WA: Verdict
VERDICT_TLE: Verdict
VERDICT_MLE: Verdict
VERDICT_RE: Verdict

class Task(_message.Message):
    __slots__ = ("name", "spec", "state", "stop_reason", "result", "usage", "create_time", "update_time", "end_time", "etag", "error", "cancel_requested", "question", "learning")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STOP_REASON_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    LEARNING_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: TaskSpec
    state: TaskState
    stop_reason: StopReason
    result: TaskResult
    usage: Usage
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    etag: str
    error: TaskError
    cancel_requested: bool
    question: Question
    learning: Learning
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[TaskSpec, _Mapping]] = ..., state: _Optional[_Union[TaskState, str]] = ..., stop_reason: _Optional[_Union[StopReason, str]] = ..., result: _Optional[_Union[TaskResult, _Mapping]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., etag: _Optional[str] = ..., error: _Optional[_Union[TaskError, _Mapping]] = ..., cancel_requested: bool = ..., question: _Optional[_Union[Question, _Mapping]] = ..., learning: _Optional[_Union[Learning, _Mapping]] = ...) -> None: ...

class Learning(_message.Message):
    __slots__ = ("state", "usage", "error")
    STATE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    state: LearningState
    usage: Usage
    error: TaskError
    def __init__(self, state: _Optional[_Union[LearningState, str]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., error: _Optional[_Union[TaskError, _Mapping]] = ...) -> None: ...

class Question(_message.Message):
    __slots__ = ("key", "text", "expire_time")
    KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    key: str
    text: str
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, key: _Optional[str] = ..., text: _Optional[str] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TaskError(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class TaskSpec(_message.Message):
    __slots__ = ("agent", "user", "prompt", "files", "mode", "evaluator", "reference_solution", "limits", "strategy", "memory", "priority", "labels", "untrusted")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_SOLUTION_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    UNTRUSTED_FIELD_NUMBER: _ClassVar[int]
    agent: str
    user: str
    prompt: str
    files: _containers.RepeatedCompositeFieldContainer[TaskFile]
    mode: Mode
    evaluator: Evaluator
    reference_solution: str
    limits: Limits
    strategy: str
    memory: MemoryPolicy
    priority: int
    labels: _containers.ScalarMap[str, str]
    untrusted: bool
    def __init__(self, agent: _Optional[str] = ..., user: _Optional[str] = ..., prompt: _Optional[str] = ..., files: _Optional[_Iterable[_Union[TaskFile, _Mapping]]] = ..., mode: _Optional[_Union[Mode, str]] = ..., evaluator: _Optional[_Union[Evaluator, _Mapping]] = ..., reference_solution: _Optional[str] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., strategy: _Optional[str] = ..., memory: _Optional[_Union[MemoryPolicy, _Mapping]] = ..., priority: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., untrusted: bool = ...) -> None: ...

class TaskFile(_message.Message):
    __slots__ = ("path", "content")
    PATH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    path: str
    content: bytes
    def __init__(self, path: _Optional[str] = ..., content: _Optional[bytes] = ...) -> None: ...

class Evaluator(_message.Message):
    __slots__ = ("io_cases", "function_cases", "python_tests", "command", "none", "named")
    IO_CASES_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_CASES_FIELD_NUMBER: _ClassVar[int]
    PYTHON_TESTS_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    NONE_FIELD_NUMBER: _ClassVar[int]
    NAMED_FIELD_NUMBER: _ClassVar[int]
    io_cases: IoCases
    function_cases: FunctionCases
    python_tests: PythonTests
    command: Command
    none: NoEvaluator
    named: NamedEvaluator
    def __init__(self, io_cases: _Optional[_Union[IoCases, _Mapping]] = ..., function_cases: _Optional[_Union[FunctionCases, _Mapping]] = ..., python_tests: _Optional[_Union[PythonTests, _Mapping]] = ..., command: _Optional[_Union[Command, _Mapping]] = ..., none: _Optional[_Union[NoEvaluator, _Mapping]] = ..., named: _Optional[_Union[NamedEvaluator, _Mapping]] = ...) -> None: ...

class NoEvaluator(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NamedEvaluator(_message.Message):
    __slots__ = ("name", "spec")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    name: str
    spec: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., spec: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class IoCases(_message.Message):
    __slots__ = ("cases", "comparison", "tolerance")
    CASES_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    cases: _containers.RepeatedCompositeFieldContainer[IoCase]
    comparison: Comparison
    tolerance: float
    def __init__(self, cases: _Optional[_Iterable[_Union[IoCase, _Mapping]]] = ..., comparison: _Optional[_Union[Comparison, str]] = ..., tolerance: _Optional[float] = ...) -> None: ...

class IoCase(_message.Message):
    __slots__ = ("stdin", "expected_stdout", "public")
    STDIN_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_STDOUT_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_FIELD_NUMBER: _ClassVar[int]
    stdin: str
    expected_stdout: str
    public: bool
    def __init__(self, stdin: _Optional[str] = ..., expected_stdout: _Optional[str] = ..., public: bool = ...) -> None: ...

class FunctionCases(_message.Message):
    __slots__ = ("entry_point", "cases", "tolerance")
    ENTRY_POINT_FIELD_NUMBER: _ClassVar[int]
    CASES_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    entry_point: str
    cases: _containers.RepeatedCompositeFieldContainer[FunctionCase]
    tolerance: float
    def __init__(self, entry_point: _Optional[str] = ..., cases: _Optional[_Iterable[_Union[FunctionCase, _Mapping]]] = ..., tolerance: _Optional[float] = ...) -> None: ...

class FunctionCase(_message.Message):
    __slots__ = ("args", "kwargs", "expected", "public")
    ARGS_FIELD_NUMBER: _ClassVar[int]
    KWARGS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_FIELD_NUMBER: _ClassVar[int]
    args: _struct_pb2.ListValue
    kwargs: _struct_pb2.Struct
    expected: _struct_pb2.Value
    public: bool
    def __init__(self, args: _Optional[_Union[_struct_pb2.ListValue, _Mapping]] = ..., kwargs: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., expected: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., public: bool = ...) -> None: ...

class PythonTests(_message.Message):
    __slots__ = ("entry_point", "tests", "setup", "public")
    ENTRY_POINT_FIELD_NUMBER: _ClassVar[int]
    TESTS_FIELD_NUMBER: _ClassVar[int]
    SETUP_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_FIELD_NUMBER: _ClassVar[int]
    entry_point: str
    tests: str
    setup: str
    public: bool
    def __init__(self, entry_point: _Optional[str] = ..., tests: _Optional[str] = ..., setup: _Optional[str] = ..., public: bool = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ("command", "expected_exit_code", "expected_stdout", "comparison", "answer_path")
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_STDOUT_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    ANSWER_PATH_FIELD_NUMBER: _ClassVar[int]
    command: str
    expected_exit_code: int
    expected_stdout: str
    comparison: Comparison
    answer_path: str
    def __init__(self, command: _Optional[str] = ..., expected_exit_code: _Optional[int] = ..., expected_stdout: _Optional[str] = ..., comparison: _Optional[_Union[Comparison, str]] = ..., answer_path: _Optional[str] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("attempts", "steps", "wall_time", "model_tokens", "cost_usd", "sandbox", "agent_steps")
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    MODEL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    AGENT_STEPS_FIELD_NUMBER: _ClassVar[int]
    attempts: int
    steps: int
    wall_time: _duration_pb2.Duration
    model_tokens: int
    cost_usd: float
    sandbox: SandboxLimits
    agent_steps: int
    def __init__(self, attempts: _Optional[int] = ..., steps: _Optional[int] = ..., wall_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., model_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., sandbox: _Optional[_Union[SandboxLimits, _Mapping]] = ..., agent_steps: _Optional[int] = ...) -> None: ...

class SandboxLimits(_message.Message):
    __slots__ = ("cpu_time", "wall_time", "memory_mib", "processes", "file_size_mib", "output_kib", "disk_mib")
    CPU_TIME_FIELD_NUMBER: _ClassVar[int]
    WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    FILE_SIZE_MIB_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_KIB_FIELD_NUMBER: _ClassVar[int]
    DISK_MIB_FIELD_NUMBER: _ClassVar[int]
    cpu_time: _duration_pb2.Duration
    wall_time: _duration_pb2.Duration
    memory_mib: int
    processes: int
    file_size_mib: int
    output_kib: int
    disk_mib: int
    def __init__(self, cpu_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., wall_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., memory_mib: _Optional[int] = ..., processes: _Optional[int] = ..., file_size_mib: _Optional[int] = ..., output_kib: _Optional[int] = ..., disk_mib: _Optional[int] = ...) -> None: ...

class MemoryPolicy(_message.Message):
    __slots__ = ("off", "read_only", "recall_count", "prefer_skills", "layers")
    OFF_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    RECALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    PREFER_SKILLS_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    off: bool
    read_only: bool
    recall_count: int
    prefer_skills: bool
    layers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, off: bool = ..., read_only: bool = ..., recall_count: _Optional[int] = ..., prefer_skills: bool = ..., layers: _Optional[_Iterable[str]] = ...) -> None: ...

class TaskResult(_message.Message):
    __slots__ = ("verdict", "reason", "code", "output", "cases_passed", "cases_total", "skill", "scripted", "model")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    CASES_PASSED_FIELD_NUMBER: _ClassVar[int]
    CASES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SKILL_FIELD_NUMBER: _ClassVar[int]
    SCRIPTED_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    verdict: Verdict
    reason: str
    code: str
    output: str
    cases_passed: int
    cases_total: int
    skill: str
    scripted: bool
    model: str
    def __init__(self, verdict: _Optional[_Union[Verdict, str]] = ..., reason: _Optional[str] = ..., code: _Optional[str] = ..., output: _Optional[str] = ..., cases_passed: _Optional[int] = ..., cases_total: _Optional[int] = ..., skill: _Optional[str] = ..., scripted: bool = ..., model: _Optional[str] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("attempts", "steps", "model_calls", "input_tokens", "output_tokens", "cost_usd", "executions")
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    MODEL_CALLS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    EXECUTIONS_FIELD_NUMBER: _ClassVar[int]
    attempts: int
    steps: int
    model_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    executions: int
    def __init__(self, attempts: _Optional[int] = ..., steps: _Optional[int] = ..., model_calls: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., executions: _Optional[int] = ...) -> None: ...

class GetUsageRequest(_message.Message):
    __slots__ = ("days", "agent")
    DAYS_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    days: int
    agent: str
    def __init__(self, days: _Optional[int] = ..., agent: _Optional[str] = ...) -> None: ...

class UsageReport(_message.Message):
    __slots__ = ("rows", "tokens_per_day", "usd_per_day")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    USD_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[ModelSpend]
    tokens_per_day: int
    usd_per_day: float
    def __init__(self, rows: _Optional[_Iterable[_Union[ModelSpend, _Mapping]]] = ..., tokens_per_day: _Optional[int] = ..., usd_per_day: _Optional[float] = ...) -> None: ...

class ModelSpend(_message.Message):
    __slots__ = ("day", "agent", "purpose", "model_calls", "input_tokens", "output_tokens", "cost_usd")
    DAY_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    MODEL_CALLS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    day: str
    agent: str
    purpose: str
    model_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    def __init__(self, day: _Optional[str] = ..., agent: _Optional[str] = ..., purpose: _Optional[str] = ..., model_calls: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ...) -> None: ...

class SubmitTaskRequest(_message.Message):
    __slots__ = ("spec", "request_id")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    spec: TaskSpec
    request_id: str
    def __init__(self, spec: _Optional[_Union[TaskSpec, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class GetTaskRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "state", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    state: TaskState
    labels: _containers.ScalarMap[str, str]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., state: _Optional[_Union[TaskState, str]] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("tasks", "next_page_token")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    next_page_token: str
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CancelTaskRequest(_message.Message):
    __slots__ = ("name", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class AnswerTaskRequest(_message.Message):
    __slots__ = ("name", "key", "text", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: str
    text: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., key: _Optional[str] = ..., text: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class WaitTaskRequest(_message.Message):
    __slots__ = ("name", "timeout", "learning")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LEARNING_FIELD_NUMBER: _ClassVar[int]
    name: str
    timeout: _duration_pb2.Duration
    learning: bool
    def __init__(self, name: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., learning: bool = ...) -> None: ...

class ExplainStepRequest(_message.Message):
    __slots__ = ("name", "step")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    name: str
    step: str
    def __init__(self, name: _Optional[str] = ..., step: _Optional[str] = ...) -> None: ...

class StepExplanation(_message.Message):
    __slots__ = ("step", "sections", "total_tokens", "steps")
    STEP_FIELD_NUMBER: _ClassVar[int]
    SECTIONS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    step: str
    sections: _containers.RepeatedCompositeFieldContainer[PromptSection]
    total_tokens: int
    steps: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, step: _Optional[str] = ..., sections: _Optional[_Iterable[_Union[PromptSection, _Mapping]]] = ..., total_tokens: _Optional[int] = ..., steps: _Optional[_Iterable[str]] = ...) -> None: ...

class PromptSection(_message.Message):
    __slots__ = ("role", "title", "text", "tokens", "sources")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    role: str
    title: str
    text: str
    tokens: int
    sources: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, role: _Optional[str] = ..., title: _Optional[str] = ..., text: _Optional[str] = ..., tokens: _Optional[int] = ..., sources: _Optional[_Iterable[str]] = ...) -> None: ...

class GetStepRequest(_message.Message):
    __slots__ = ("name", "step")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    name: str
    step: str
    def __init__(self, name: _Optional[str] = ..., step: _Optional[str] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("step", "text", "code", "tool", "query", "runs", "hidden_runs", "records")
    STEP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_RUNS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    step: str
    text: str
    code: str
    tool: str
    query: str
    runs: _containers.RepeatedCompositeFieldContainer[StepRun]
    hidden_runs: int
    records: _containers.RepeatedCompositeFieldContainer[StepRecord]
    def __init__(self, step: _Optional[str] = ..., text: _Optional[str] = ..., code: _Optional[str] = ..., tool: _Optional[str] = ..., query: _Optional[str] = ..., runs: _Optional[_Iterable[_Union[StepRun, _Mapping]]] = ..., hidden_runs: _Optional[int] = ..., records: _Optional[_Iterable[_Union[StepRecord, _Mapping]]] = ...) -> None: ...

class StepRun(_message.Message):
    __slots__ = ("case", "exit", "stdout", "stderr", "value_json")
    CASE_FIELD_NUMBER: _ClassVar[int]
    EXIT_FIELD_NUMBER: _ClassVar[int]
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    case: int
    exit: str
    stdout: str
    stderr: str
    value_json: str
    def __init__(self, case: _Optional[int] = ..., exit: _Optional[str] = ..., stdout: _Optional[str] = ..., stderr: _Optional[str] = ..., value_json: _Optional[str] = ...) -> None: ...

class StepRecord(_message.Message):
    __slots__ = ("kind", "id", "title", "text")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    id: str
    title: str
    text: str
    def __init__(self, kind: _Optional[str] = ..., id: _Optional[str] = ..., title: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class WatchTaskRequest(_message.Message):
    __slots__ = ("name", "resume_token", "text")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    resume_token: str
    text: bool
    def __init__(self, name: _Optional[str] = ..., resume_token: _Optional[str] = ..., text: bool = ...) -> None: ...

class TaskEvent(_message.Message):
    __slots__ = ("resume_token", "time", "state_changed", "attempt_started", "step_finished", "attempt_finished", "finished", "worker_changed", "question", "model_text")
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    STATE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_STARTED_FIELD_NUMBER: _ClassVar[int]
    STEP_FINISHED_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FINISHED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    WORKER_CHANGED_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    MODEL_TEXT_FIELD_NUMBER: _ClassVar[int]
    resume_token: str
    time: _timestamp_pb2.Timestamp
    state_changed: StateChanged
    attempt_started: AttemptStarted
    step_finished: StepFinished
    attempt_finished: AttemptFinished
    finished: Finished
    worker_changed: WorkerChanged
    question: Question
    model_text: ModelText
    def __init__(self, resume_token: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., state_changed: _Optional[_Union[StateChanged, _Mapping]] = ..., attempt_started: _Optional[_Union[AttemptStarted, _Mapping]] = ..., step_finished: _Optional[_Union[StepFinished, _Mapping]] = ..., attempt_finished: _Optional[_Union[AttemptFinished, _Mapping]] = ..., finished: _Optional[_Union[Finished, _Mapping]] = ..., worker_changed: _Optional[_Union[WorkerChanged, _Mapping]] = ..., question: _Optional[_Union[Question, _Mapping]] = ..., model_text: _Optional[_Union[ModelText, _Mapping]] = ...) -> None: ...

class ModelText(_message.Message):
    __slots__ = ("step", "text")
    STEP_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    step: str
    text: str
    def __init__(self, step: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class StateChanged(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: TaskState
    def __init__(self, state: _Optional[_Union[TaskState, str]] = ...) -> None: ...

class AttemptStarted(_message.Message):
    __slots__ = ("attempt",)
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    def __init__(self, attempt: _Optional[int] = ...) -> None: ...

class StepFinished(_message.Message):
    __slots__ = ("step", "attempt", "kind", "summary", "duration_ms", "usage", "scripted")
    STEP_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    SCRIPTED_FIELD_NUMBER: _ClassVar[int]
    step: str
    attempt: int
    kind: str
    summary: str
    duration_ms: int
    usage: Usage
    scripted: bool
    def __init__(self, step: _Optional[str] = ..., attempt: _Optional[int] = ..., kind: _Optional[str] = ..., summary: _Optional[str] = ..., duration_ms: _Optional[int] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., scripted: bool = ...) -> None: ...

class AttemptFinished(_message.Message):
    __slots__ = ("attempt", "verdict", "reason", "cases_passed", "cases_total", "skill")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CASES_PASSED_FIELD_NUMBER: _ClassVar[int]
    CASES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SKILL_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    verdict: Verdict
    reason: str
    cases_passed: int
    cases_total: int
    skill: str
    def __init__(self, attempt: _Optional[int] = ..., verdict: _Optional[_Union[Verdict, str]] = ..., reason: _Optional[str] = ..., cases_passed: _Optional[int] = ..., cases_total: _Optional[int] = ..., skill: _Optional[str] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: Task
    def __init__(self, task: _Optional[_Union[Task, _Mapping]] = ...) -> None: ...

class WorkerChanged(_message.Message):
    __slots__ = ("epoch",)
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    def __init__(self, epoch: _Optional[int] = ...) -> None: ...
