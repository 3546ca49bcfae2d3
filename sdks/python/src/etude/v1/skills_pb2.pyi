import datetime

from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SkillStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SKILL_STATUS_UNSPECIFIED: _ClassVar[SkillStatus]
    SKILL_STATUS_CANDIDATE: _ClassVar[SkillStatus]
    SKILL_STATUS_VERIFIED: _ClassVar[SkillStatus]
    SKILL_STATUS_PENDING_REVIEW: _ClassVar[SkillStatus]
    SKILL_STATUS_ACTIVE: _ClassVar[SkillStatus]
    SKILL_STATUS_DEPRECATED: _ClassVar[SkillStatus]
    SKILL_STATUS_ARCHIVED: _ClassVar[SkillStatus]
    SKILL_STATUS_REJECTED: _ClassVar[SkillStatus]

class SkillScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SKILL_SCOPE_UNSPECIFIED: _ClassVar[SkillScope]
    SKILL_SCOPE_AGENT: _ClassVar[SkillScope]
    SKILL_SCOPE_USER: _ClassVar[SkillScope]
    SKILL_SCOPE_TENANT: _ClassVar[SkillScope]
    SKILL_SCOPE_GLOBAL: _ClassVar[SkillScope]
SKILL_STATUS_UNSPECIFIED: SkillStatus
SKILL_STATUS_CANDIDATE: SkillStatus
SKILL_STATUS_VERIFIED: SkillStatus
SKILL_STATUS_PENDING_REVIEW: SkillStatus
SKILL_STATUS_ACTIVE: SkillStatus
SKILL_STATUS_DEPRECATED: SkillStatus
SKILL_STATUS_ARCHIVED: SkillStatus
SKILL_STATUS_REJECTED: SkillStatus
SKILL_SCOPE_UNSPECIFIED: SkillScope
SKILL_SCOPE_AGENT: SkillScope
SKILL_SCOPE_USER: SkillScope
SKILL_SCOPE_TENANT: SkillScope
SKILL_SCOPE_GLOBAL: SkillScope

class SkillParameter(_message.Message):
    __slots__ = ("name", "type", "description", "required", "default_value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    description: str
    required: bool
    default_value: _struct_pb2.Value
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., description: _Optional[str] = ..., required: bool = ..., default_value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...

class SkillDependency(_message.Message):
    __slots__ = ("name", "version", "digest")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    digest: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., digest: _Optional[str] = ...) -> None: ...

class SkillFinding(_message.Message):
    __slots__ = ("analyser", "rule", "severity", "line", "message")
    ANALYSER_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    analyser: str
    rule: str
    severity: str
    line: int
    message: str
    def __init__(self, analyser: _Optional[str] = ..., rule: _Optional[str] = ..., severity: _Optional[str] = ..., line: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class SkillProof(_message.Message):
    __slots__ = ("digest", "verify_time", "tests_passed", "held_out_passed", "mutants_made", "mutants_noticed", "mutants_survived", "findings", "kept", "confidence", "signature", "key_id", "alike", "generated_answers")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    VERIFY_TIME_FIELD_NUMBER: _ClassVar[int]
    TESTS_PASSED_FIELD_NUMBER: _ClassVar[int]
    HELD_OUT_PASSED_FIELD_NUMBER: _ClassVar[int]
    MUTANTS_MADE_FIELD_NUMBER: _ClassVar[int]
    MUTANTS_NOTICED_FIELD_NUMBER: _ClassVar[int]
    MUTANTS_SURVIVED_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    ALIKE_FIELD_NUMBER: _ClassVar[int]
    GENERATED_ANSWERS_FIELD_NUMBER: _ClassVar[int]
    digest: str
    verify_time: _timestamp_pb2.Timestamp
    tests_passed: int
    held_out_passed: int
    mutants_made: int
    mutants_noticed: int
    mutants_survived: _containers.RepeatedScalarFieldContainer[str]
    findings: _containers.RepeatedCompositeFieldContainer[SkillFinding]
    kept: _containers.RepeatedCompositeFieldContainer[SkillDependency]
    confidence: float
    signature: str
    key_id: str
    alike: _containers.RepeatedCompositeFieldContainer[SkillLikeness]
    generated_answers: int
    def __init__(self, digest: _Optional[str] = ..., verify_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tests_passed: _Optional[int] = ..., held_out_passed: _Optional[int] = ..., mutants_made: _Optional[int] = ..., mutants_noticed: _Optional[int] = ..., mutants_survived: _Optional[_Iterable[str]] = ..., findings: _Optional[_Iterable[_Union[SkillFinding, _Mapping]]] = ..., kept: _Optional[_Iterable[_Union[SkillDependency, _Mapping]]] = ..., confidence: _Optional[float] = ..., signature: _Optional[str] = ..., key_id: _Optional[str] = ..., alike: _Optional[_Iterable[_Union[SkillLikeness, _Mapping]]] = ..., generated_answers: _Optional[int] = ...) -> None: ...

class SkillLikeness(_message.Message):
    __slots__ = ("name", "agent", "version", "similarity", "passes_theirs", "they_pass")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    PASSES_THEIRS_FIELD_NUMBER: _ClassVar[int]
    THEY_PASS_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    version: int
    similarity: float
    passes_theirs: bool
    they_pass: bool
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., version: _Optional[int] = ..., similarity: _Optional[float] = ..., passes_theirs: bool = ..., they_pass: bool = ...) -> None: ...

class SkillChange(_message.Message):
    __slots__ = ("time", "by", "to", "reason")
    TIME_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    by: str
    to: SkillStatus
    reason: str
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., by: _Optional[str] = ..., to: _Optional[_Union[SkillStatus, str]] = ..., reason: _Optional[str] = ..., **kwargs) -> None: ...

class SkillFailure(_message.Message):
    __slots__ = ("time", "input", "error")
    TIME_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    input: str
    error: str
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., input: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class Skill(_message.Message):
    __slots__ = ("name", "agent", "kind", "version", "status", "status_reason", "description", "code", "entry_point", "tags", "execution_count", "success_rate", "evidence", "sources", "model", "scripted", "digest", "create_time", "update_time", "test_count", "user", "scope", "display_name", "category", "example_prompts", "parameters", "input_schema", "output_schema", "dependencies", "packages", "proof", "history", "origin", "untrusted", "replaced_by", "offered_count", "used_count", "fell_back_count", "last_use_time", "nondeterministic", "failures", "files")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    STATUS_REASON_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    ENTRY_POINT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_COUNT_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_RATE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SCRIPTED_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    TEST_COUNT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_PROMPTS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    PACKAGES_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    UNTRUSTED_FIELD_NUMBER: _ClassVar[int]
    REPLACED_BY_FIELD_NUMBER: _ClassVar[int]
    OFFERED_COUNT_FIELD_NUMBER: _ClassVar[int]
    USED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FELL_BACK_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_USE_TIME_FIELD_NUMBER: _ClassVar[int]
    NONDETERMINISTIC_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    kind: str
    version: int
    status: SkillStatus
    status_reason: str
    description: str
    code: str
    entry_point: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    execution_count: int
    success_rate: float
    evidence: _containers.RepeatedScalarFieldContainer[str]
    sources: _containers.RepeatedScalarFieldContainer[str]
    model: str
    scripted: bool
    digest: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    test_count: int
    user: str
    scope: SkillScope
    display_name: str
    category: str
    example_prompts: _containers.RepeatedScalarFieldContainer[str]
    parameters: _containers.RepeatedCompositeFieldContainer[SkillParameter]
    input_schema: _struct_pb2.Struct
    output_schema: _struct_pb2.Struct
    dependencies: _containers.RepeatedCompositeFieldContainer[SkillDependency]
    packages: _containers.RepeatedScalarFieldContainer[str]
    proof: SkillProof
    history: _containers.RepeatedCompositeFieldContainer[SkillChange]
    origin: str
    untrusted: _containers.RepeatedScalarFieldContainer[str]
    replaced_by: str
    offered_count: int
    used_count: int
    fell_back_count: int
    last_use_time: _timestamp_pb2.Timestamp
    nondeterministic: bool
    failures: _containers.RepeatedCompositeFieldContainer[SkillFailure]
    files: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., kind: _Optional[str] = ..., version: _Optional[int] = ..., status: _Optional[_Union[SkillStatus, str]] = ..., status_reason: _Optional[str] = ..., description: _Optional[str] = ..., code: _Optional[str] = ..., entry_point: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., execution_count: _Optional[int] = ..., success_rate: _Optional[float] = ..., evidence: _Optional[_Iterable[str]] = ..., sources: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ..., scripted: bool = ..., digest: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., test_count: _Optional[int] = ..., user: _Optional[str] = ..., scope: _Optional[_Union[SkillScope, str]] = ..., display_name: _Optional[str] = ..., category: _Optional[str] = ..., example_prompts: _Optional[_Iterable[str]] = ..., parameters: _Optional[_Iterable[_Union[SkillParameter, _Mapping]]] = ..., input_schema: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., output_schema: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., dependencies: _Optional[_Iterable[_Union[SkillDependency, _Mapping]]] = ..., packages: _Optional[_Iterable[str]] = ..., proof: _Optional[_Union[SkillProof, _Mapping]] = ..., history: _Optional[_Iterable[_Union[SkillChange, _Mapping]]] = ..., origin: _Optional[str] = ..., untrusted: _Optional[_Iterable[str]] = ..., replaced_by: _Optional[str] = ..., offered_count: _Optional[int] = ..., used_count: _Optional[int] = ..., fell_back_count: _Optional[int] = ..., last_use_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., nondeterministic: bool = ..., failures: _Optional[_Iterable[_Union[SkillFailure, _Mapping]]] = ..., files: _Optional[_Iterable[str]] = ...) -> None: ...

class ListSkillsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "agent", "status", "category", "user", "tags", "brief")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    BRIEF_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    agent: str
    status: SkillStatus
    category: str
    user: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    brief: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., agent: _Optional[str] = ..., status: _Optional[_Union[SkillStatus, str]] = ..., category: _Optional[str] = ..., user: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., brief: bool = ...) -> None: ...

class ListSkillsResponse(_message.Message):
    __slots__ = ("skills", "next_page_token")
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    skills: _containers.RepeatedCompositeFieldContainer[Skill]
    next_page_token: str
    def __init__(self, skills: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetSkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    version: int
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class SearchSkillsRequest(_message.Message):
    __slots__ = ("query", "agent", "user", "tags", "min_similarity", "max_results")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    MIN_SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULTS_FIELD_NUMBER: _ClassVar[int]
    query: str
    agent: str
    user: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    min_similarity: float
    max_results: int
    def __init__(self, query: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., min_similarity: _Optional[float] = ..., max_results: _Optional[int] = ...) -> None: ...

class SearchSkillsResponse(_message.Message):
    __slots__ = ("hits",)
    class Hit(_message.Message):
        __slots__ = ("skill", "similarity")
        SKILL_FIELD_NUMBER: _ClassVar[int]
        SIMILARITY_FIELD_NUMBER: _ClassVar[int]
        skill: Skill
        similarity: float
        def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ..., similarity: _Optional[float] = ...) -> None: ...
    HITS_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[SearchSkillsResponse.Hit]
    def __init__(self, hits: _Optional[_Iterable[_Union[SearchSkillsResponse.Hit, _Mapping]]] = ...) -> None: ...

class ListSkillCategoriesRequest(_message.Message):
    __slots__ = ("agent", "user", "parent")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    agent: str
    user: str
    parent: str
    def __init__(self, agent: _Optional[str] = ..., user: _Optional[str] = ..., parent: _Optional[str] = ...) -> None: ...

class ListSkillCategoriesResponse(_message.Message):
    __slots__ = ("categories",)
    class Category(_message.Message):
        __slots__ = ("category", "skill_count")
        CATEGORY_FIELD_NUMBER: _ClassVar[int]
        SKILL_COUNT_FIELD_NUMBER: _ClassVar[int]
        category: str
        skill_count: int
        def __init__(self, category: _Optional[str] = ..., skill_count: _Optional[int] = ...) -> None: ...
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    categories: _containers.RepeatedCompositeFieldContainer[ListSkillCategoriesResponse.Category]
    def __init__(self, categories: _Optional[_Iterable[_Union[ListSkillCategoriesResponse.Category, _Mapping]]] = ...) -> None: ...

class ListSkillVersionsRequest(_message.Message):
    __slots__ = ("name", "agent", "user")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class ListSkillVersionsResponse(_message.Message):
    __slots__ = ("skills",)
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    skills: _containers.RepeatedCompositeFieldContainer[Skill]
    def __init__(self, skills: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ...) -> None: ...

class DiffSkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "from_version", "to_version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    TO_VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    from_version: int
    to_version: int
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., from_version: _Optional[int] = ..., to_version: _Optional[int] = ...) -> None: ...

class DiffSkillResponse(_message.Message):
    __slots__ = ("from_version", "to_version", "code_diff", "fields_diff")
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    TO_VERSION_FIELD_NUMBER: _ClassVar[int]
    CODE_DIFF_FIELD_NUMBER: _ClassVar[int]
    FIELDS_DIFF_FIELD_NUMBER: _ClassVar[int]
    from_version: int
    to_version: int
    code_diff: str
    fields_diff: str
    def __init__(self, from_version: _Optional[int] = ..., to_version: _Optional[int] = ..., code_diff: _Optional[str] = ..., fields_diff: _Optional[str] = ...) -> None: ...

class SkillTestCase(_message.Message):
    __slots__ = ("call", "program", "python")
    class Call(_message.Message):
        __slots__ = ("args", "kwargs", "expected", "tolerance")
        ARGS_FIELD_NUMBER: _ClassVar[int]
        KWARGS_FIELD_NUMBER: _ClassVar[int]
        EXPECTED_FIELD_NUMBER: _ClassVar[int]
        TOLERANCE_FIELD_NUMBER: _ClassVar[int]
        args: _struct_pb2.ListValue
        kwargs: _struct_pb2.Struct
        expected: _struct_pb2.Value
        tolerance: float
        def __init__(self, args: _Optional[_Union[_struct_pb2.ListValue, _Mapping]] = ..., kwargs: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., expected: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., tolerance: _Optional[float] = ...) -> None: ...
    class Program(_message.Message):
        __slots__ = ("stdin", "expected_stdout", "comparison", "tolerance")
        STDIN_FIELD_NUMBER: _ClassVar[int]
        EXPECTED_STDOUT_FIELD_NUMBER: _ClassVar[int]
        COMPARISON_FIELD_NUMBER: _ClassVar[int]
        TOLERANCE_FIELD_NUMBER: _ClassVar[int]
        stdin: str
        expected_stdout: str
        comparison: str
        tolerance: float
        def __init__(self, stdin: _Optional[str] = ..., expected_stdout: _Optional[str] = ..., comparison: _Optional[str] = ..., tolerance: _Optional[float] = ...) -> None: ...
    class Python(_message.Message):
        __slots__ = ("setup", "tests")
        SETUP_FIELD_NUMBER: _ClassVar[int]
        TESTS_FIELD_NUMBER: _ClassVar[int]
        setup: str
        tests: str
        def __init__(self, setup: _Optional[str] = ..., tests: _Optional[str] = ...) -> None: ...
    CALL_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    PYTHON_FIELD_NUMBER: _ClassVar[int]
    call: SkillTestCase.Call
    program: SkillTestCase.Program
    python: SkillTestCase.Python
    def __init__(self, call: _Optional[_Union[SkillTestCase.Call, _Mapping]] = ..., program: _Optional[_Union[SkillTestCase.Program, _Mapping]] = ..., python: _Optional[_Union[SkillTestCase.Python, _Mapping]] = ...) -> None: ...

class SkillDraft(_message.Message):
    __slots__ = ("name", "agent", "user", "scope", "kind", "display_name", "description", "code", "entry_point", "is_program", "parameters", "tests", "held_out_tests", "tags", "category", "example_prompts", "packages", "sources", "model")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    ENTRY_POINT_FIELD_NUMBER: _ClassVar[int]
    IS_PROGRAM_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    TESTS_FIELD_NUMBER: _ClassVar[int]
    HELD_OUT_TESTS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_PROMPTS_FIELD_NUMBER: _ClassVar[int]
    PACKAGES_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    scope: SkillScope
    kind: str
    display_name: str
    description: str
    code: str
    entry_point: str
    is_program: bool
    parameters: _containers.RepeatedCompositeFieldContainer[SkillParameter]
    tests: _containers.RepeatedCompositeFieldContainer[SkillTestCase]
    held_out_tests: _containers.RepeatedCompositeFieldContainer[SkillTestCase]
    tags: _containers.RepeatedScalarFieldContainer[str]
    category: str
    example_prompts: _containers.RepeatedScalarFieldContainer[str]
    packages: _containers.RepeatedScalarFieldContainer[str]
    sources: _containers.RepeatedScalarFieldContainer[str]
    model: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., scope: _Optional[_Union[SkillScope, str]] = ..., kind: _Optional[str] = ..., display_name: _Optional[str] = ..., description: _Optional[str] = ..., code: _Optional[str] = ..., entry_point: _Optional[str] = ..., is_program: bool = ..., parameters: _Optional[_Iterable[_Union[SkillParameter, _Mapping]]] = ..., tests: _Optional[_Iterable[_Union[SkillTestCase, _Mapping]]] = ..., held_out_tests: _Optional[_Iterable[_Union[SkillTestCase, _Mapping]]] = ..., tags: _Optional[_Iterable[str]] = ..., category: _Optional[str] = ..., example_prompts: _Optional[_Iterable[str]] = ..., packages: _Optional[_Iterable[str]] = ..., sources: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ...) -> None: ...

class CheckSkillRequest(_message.Message):
    __slots__ = ("skill",)
    SKILL_FIELD_NUMBER: _ClassVar[int]
    skill: SkillDraft
    def __init__(self, skill: _Optional[_Union[SkillDraft, _Mapping]] = ...) -> None: ...

class CheckSkillResponse(_message.Message):
    __slots__ = ("passed", "reason", "evidence", "findings", "parameters", "input_schema", "output_schema", "dependencies", "mutants_made", "mutants_noticed")
    PASSED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    INPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    MUTANTS_MADE_FIELD_NUMBER: _ClassVar[int]
    MUTANTS_NOTICED_FIELD_NUMBER: _ClassVar[int]
    passed: bool
    reason: str
    evidence: _containers.RepeatedScalarFieldContainer[str]
    findings: _containers.RepeatedCompositeFieldContainer[SkillFinding]
    parameters: _containers.RepeatedCompositeFieldContainer[SkillParameter]
    input_schema: _struct_pb2.Struct
    output_schema: _struct_pb2.Struct
    dependencies: _containers.RepeatedCompositeFieldContainer[SkillDependency]
    mutants_made: int
    mutants_noticed: int
    def __init__(self, passed: bool = ..., reason: _Optional[str] = ..., evidence: _Optional[_Iterable[str]] = ..., findings: _Optional[_Iterable[_Union[SkillFinding, _Mapping]]] = ..., parameters: _Optional[_Iterable[_Union[SkillParameter, _Mapping]]] = ..., input_schema: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., output_schema: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., dependencies: _Optional[_Iterable[_Union[SkillDependency, _Mapping]]] = ..., mutants_made: _Optional[int] = ..., mutants_noticed: _Optional[int] = ...) -> None: ...

class RegisterSkillRequest(_message.Message):
    __slots__ = ("skill", "base_version", "request_id", "wait")
    SKILL_FIELD_NUMBER: _ClassVar[int]
    BASE_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    skill: SkillDraft
    base_version: int
    request_id: str
    wait: bool
    def __init__(self, skill: _Optional[_Union[SkillDraft, _Mapping]] = ..., base_version: _Optional[int] = ..., request_id: _Optional[str] = ..., wait: bool = ...) -> None: ...

class VerifySkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "version", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    version: int
    request_id: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class GetSkillReviewRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    version: int
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class SkillReview(_message.Message):
    __slots__ = ("skill", "diff", "tests", "held_out_count", "similar", "dependents")
    SKILL_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    TESTS_FIELD_NUMBER: _ClassVar[int]
    HELD_OUT_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIMILAR_FIELD_NUMBER: _ClassVar[int]
    DEPENDENTS_FIELD_NUMBER: _ClassVar[int]
    skill: Skill
    diff: DiffSkillResponse
    tests: _containers.RepeatedScalarFieldContainer[str]
    held_out_count: int
    similar: _containers.RepeatedCompositeFieldContainer[SearchSkillsResponse.Hit]
    dependents: _containers.RepeatedCompositeFieldContainer[SkillDependency]
    def __init__(self, skill: _Optional[_Union[Skill, _Mapping]] = ..., diff: _Optional[_Union[DiffSkillResponse, _Mapping]] = ..., tests: _Optional[_Iterable[str]] = ..., held_out_count: _Optional[int] = ..., similar: _Optional[_Iterable[_Union[SearchSkillsResponse.Hit, _Mapping]]] = ..., dependents: _Optional[_Iterable[_Union[SkillDependency, _Mapping]]] = ...) -> None: ...

class ApproveSkillRequest(_message.Message):
    __slots__ = ("name", "digest", "request_id", "agent", "user", "version", "merge")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MERGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    digest: str
    request_id: str
    agent: str
    user: str
    version: int
    merge: str
    def __init__(self, name: _Optional[str] = ..., digest: _Optional[str] = ..., request_id: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ..., merge: _Optional[str] = ...) -> None: ...

class RejectSkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "version", "reason", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    version: int
    reason: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RollbackSkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "to_version", "reason", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TO_VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    to_version: int
    reason: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., to_version: _Optional[int] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeprecateSkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "version", "reason", "request_id", "replaced_by")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REPLACED_BY_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    version: int
    reason: str
    request_id: str
    replaced_by: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ..., replaced_by: _Optional[str] = ...) -> None: ...

class ArchiveSkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "version", "reason", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    version: int
    reason: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RestoreSkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "version", "reason", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    version: int
    reason: str
    request_id: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class PromoteSkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "version", "scope", "request_id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    version: int
    scope: SkillScope
    request_id: str
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ..., scope: _Optional[_Union[SkillScope, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class UseSkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "parameters", "request_id", "stdin", "no_request")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    NO_REQUEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    parameters: _struct_pb2.Struct
    request_id: str
    stdin: str
    no_request: bool
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., parameters: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., request_id: _Optional[str] = ..., stdin: _Optional[str] = ..., no_request: bool = ...) -> None: ...

class UseSkillResponse(_message.Message):
    __slots__ = ("success", "result", "output", "error", "name", "version", "duration_ms", "skill_request_submitted", "wanted_skill", "note")
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    SKILL_REQUEST_SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    WANTED_SKILL_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    success: bool
    result: _struct_pb2.Value
    output: str
    error: str
    name: str
    version: int
    duration_ms: float
    skill_request_submitted: bool
    wanted_skill: str
    note: str
    def __init__(self, success: bool = ..., result: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., output: _Optional[str] = ..., error: _Optional[str] = ..., name: _Optional[str] = ..., version: _Optional[int] = ..., duration_ms: _Optional[float] = ..., skill_request_submitted: bool = ..., wanted_skill: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class LoadFunctionsRequest(_message.Message):
    __slots__ = ("names", "agent", "user")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    agent: str
    user: str
    def __init__(self, names: _Optional[_Iterable[str]] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class LoadFunctionsResponse(_message.Message):
    __slots__ = ("functions", "code")
    class Function(_message.Message):
        __slots__ = ("name", "version", "signature", "description", "digest")
        NAME_FIELD_NUMBER: _ClassVar[int]
        VERSION_FIELD_NUMBER: _ClassVar[int]
        SIGNATURE_FIELD_NUMBER: _ClassVar[int]
        DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
        DIGEST_FIELD_NUMBER: _ClassVar[int]
        name: str
        version: int
        signature: str
        description: str
        digest: str
        def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., signature: _Optional[str] = ..., description: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    functions: _containers.RepeatedCompositeFieldContainer[LoadFunctionsResponse.Function]
    code: str
    def __init__(self, functions: _Optional[_Iterable[_Union[LoadFunctionsResponse.Function, _Mapping]]] = ..., code: _Optional[str] = ...) -> None: ...

class RequestSkillRequest(_message.Message):
    __slots__ = ("name", "description", "agent", "user", "request_id", "example")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    agent: str
    user: str
    request_id: str
    example: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., request_id: _Optional[str] = ..., example: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class WantedSkill(_message.Message):
    __slots__ = ("name", "skill", "description", "agent", "user", "state", "reason", "priority", "asked", "create_time", "update_time", "registered_skill", "scripted")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SKILL_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_SKILL_FIELD_NUMBER: _ClassVar[int]
    SCRIPTED_FIELD_NUMBER: _ClassVar[int]
    name: str
    skill: str
    description: str
    agent: str
    user: str
    state: str
    reason: str
    priority: int
    asked: int
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    registered_skill: str
    scripted: bool
    def __init__(self, name: _Optional[str] = ..., skill: _Optional[str] = ..., description: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., priority: _Optional[int] = ..., asked: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., registered_skill: _Optional[str] = ..., scripted: bool = ...) -> None: ...

class GetWantedSkillRequest(_message.Message):
    __slots__ = ("name", "user")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    name: str
    user: str
    def __init__(self, name: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class WithdrawWantedSkillRequest(_message.Message):
    __slots__ = ("name", "user", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    user: str
    reason: str
    def __init__(self, name: _Optional[str] = ..., user: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ListWantedSkillsRequest(_message.Message):
    __slots__ = ("agent", "page_size", "page_token", "user")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    agent: str
    page_size: int
    page_token: str
    user: str
    def __init__(self, agent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class ListWantedSkillsResponse(_message.Message):
    __slots__ = ("wanted_skills", "next_page_token")
    WANTED_SKILLS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    wanted_skills: _containers.RepeatedCompositeFieldContainer[WantedSkill]
    next_page_token: str
    def __init__(self, wanted_skills: _Optional[_Iterable[_Union[WantedSkill, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ImportSkillRequest(_message.Message):
    __slots__ = ("head", "file")
    class Head(_message.Message):
        __slots__ = ("agent", "user", "scope", "request_id", "format", "dry_run")
        AGENT_FIELD_NUMBER: _ClassVar[int]
        USER_FIELD_NUMBER: _ClassVar[int]
        SCOPE_FIELD_NUMBER: _ClassVar[int]
        REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
        FORMAT_FIELD_NUMBER: _ClassVar[int]
        DRY_RUN_FIELD_NUMBER: _ClassVar[int]
        agent: str
        user: str
        scope: SkillScope
        request_id: str
        format: str
        dry_run: bool
        def __init__(self, agent: _Optional[str] = ..., user: _Optional[str] = ..., scope: _Optional[_Union[SkillScope, str]] = ..., request_id: _Optional[str] = ..., format: _Optional[str] = ..., dry_run: bool = ...) -> None: ...
    class File(_message.Message):
        __slots__ = ("path", "data")
        PATH_FIELD_NUMBER: _ClassVar[int]
        DATA_FIELD_NUMBER: _ClassVar[int]
        path: str
        data: bytes
        def __init__(self, path: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...
    HEAD_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    head: ImportSkillRequest.Head
    file: ImportSkillRequest.File
    def __init__(self, head: _Optional[_Union[ImportSkillRequest.Head, _Mapping]] = ..., file: _Optional[_Union[ImportSkillRequest.File, _Mapping]] = ...) -> None: ...

class ImportSkillResponse(_message.Message):
    __slots__ = ("skills", "notes")
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    skills: _containers.RepeatedCompositeFieldContainer[Skill]
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, skills: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class ExportSkillRequest(_message.Message):
    __slots__ = ("name", "agent", "user", "version", "without_hidden_tests")
    NAME_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_HIDDEN_TESTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    agent: str
    user: str
    version: int
    without_hidden_tests: bool
    def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., version: _Optional[int] = ..., without_hidden_tests: bool = ...) -> None: ...

class ExportSkillResponse(_message.Message):
    __slots__ = ("files", "notes")
    class File(_message.Message):
        __slots__ = ("path", "data")
        PATH_FIELD_NUMBER: _ClassVar[int]
        DATA_FIELD_NUMBER: _ClassVar[int]
        path: str
        data: bytes
        def __init__(self, path: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...
    FILES_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[ExportSkillResponse.File]
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, files: _Optional[_Iterable[_Union[ExportSkillResponse.File, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class PruneSkillsRequest(_message.Message):
    __slots__ = ("agent", "dry_run", "unused_days", "failing_rate_max", "failing_uses_min", "superseded_days", "request_id")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    UNUSED_DAYS_FIELD_NUMBER: _ClassVar[int]
    FAILING_RATE_MAX_FIELD_NUMBER: _ClassVar[int]
    FAILING_USES_MIN_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_DAYS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    agent: str
    dry_run: bool
    unused_days: int
    failing_rate_max: float
    failing_uses_min: int
    superseded_days: int
    request_id: str
    def __init__(self, agent: _Optional[str] = ..., dry_run: bool = ..., unused_days: _Optional[int] = ..., failing_rate_max: _Optional[float] = ..., failing_uses_min: _Optional[int] = ..., superseded_days: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

class PruneSkillsResponse(_message.Message):
    __slots__ = ("pruned", "prune_id", "kept")
    class Pruned(_message.Message):
        __slots__ = ("name", "agent", "version", "reason")
        NAME_FIELD_NUMBER: _ClassVar[int]
        AGENT_FIELD_NUMBER: _ClassVar[int]
        VERSION_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        name: str
        agent: str
        version: int
        reason: str
        def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., version: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...
    class Kept(_message.Message):
        __slots__ = ("name", "agent", "version", "reason", "called_by")
        NAME_FIELD_NUMBER: _ClassVar[int]
        AGENT_FIELD_NUMBER: _ClassVar[int]
        VERSION_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        CALLED_BY_FIELD_NUMBER: _ClassVar[int]
        name: str
        agent: str
        version: int
        reason: str
        called_by: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., version: _Optional[int] = ..., reason: _Optional[str] = ..., called_by: _Optional[_Iterable[str]] = ...) -> None: ...
    PRUNED_FIELD_NUMBER: _ClassVar[int]
    PRUNE_ID_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    pruned: _containers.RepeatedCompositeFieldContainer[PruneSkillsResponse.Pruned]
    prune_id: str
    kept: _containers.RepeatedCompositeFieldContainer[PruneSkillsResponse.Kept]
    def __init__(self, pruned: _Optional[_Iterable[_Union[PruneSkillsResponse.Pruned, _Mapping]]] = ..., prune_id: _Optional[str] = ..., kept: _Optional[_Iterable[_Union[PruneSkillsResponse.Kept, _Mapping]]] = ...) -> None: ...

class UndoPruneRequest(_message.Message):
    __slots__ = ("prune_id", "request_id")
    PRUNE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    prune_id: str
    request_id: str
    def __init__(self, prune_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class UndoPruneResponse(_message.Message):
    __slots__ = ("skills", "left")
    class Left(_message.Message):
        __slots__ = ("name", "agent", "version", "reason")
        NAME_FIELD_NUMBER: _ClassVar[int]
        AGENT_FIELD_NUMBER: _ClassVar[int]
        VERSION_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        name: str
        agent: str
        version: int
        reason: str
        def __init__(self, name: _Optional[str] = ..., agent: _Optional[str] = ..., version: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    skills: _containers.RepeatedCompositeFieldContainer[Skill]
    left: _containers.RepeatedCompositeFieldContainer[UndoPruneResponse.Left]
    def __init__(self, skills: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ..., left: _Optional[_Iterable[_Union[UndoPruneResponse.Left, _Mapping]]] = ...) -> None: ...

class RevokeSourceRequest(_message.Message):
    __slots__ = ("source", "dry_run", "reason", "request_id")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    source: str
    dry_run: bool
    reason: str
    request_id: str
    def __init__(self, source: _Optional[str] = ..., dry_run: bool = ..., reason: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RevokeSourceResponse(_message.Message):
    __slots__ = ("skills", "facts")
    SKILLS_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    skills: _containers.RepeatedCompositeFieldContainer[Skill]
    facts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, skills: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ..., facts: _Optional[_Iterable[str]] = ...) -> None: ...

class GetSkillStatsRequest(_message.Message):
    __slots__ = ("agent",)
    AGENT_FIELD_NUMBER: _ClassVar[int]
    agent: str
    def __init__(self, agent: _Optional[str] = ...) -> None: ...

class GetSkillStatsResponse(_message.Message):
    __slots__ = ("agents", "most_used", "failing", "unused")
    class AgentStats(_message.Message):
        __slots__ = ("agent", "by_status", "offered_count", "used_count", "succeeded_count", "fell_back_count")
        class ByStatusEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: int
            def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
        AGENT_FIELD_NUMBER: _ClassVar[int]
        BY_STATUS_FIELD_NUMBER: _ClassVar[int]
        OFFERED_COUNT_FIELD_NUMBER: _ClassVar[int]
        USED_COUNT_FIELD_NUMBER: _ClassVar[int]
        SUCCEEDED_COUNT_FIELD_NUMBER: _ClassVar[int]
        FELL_BACK_COUNT_FIELD_NUMBER: _ClassVar[int]
        agent: str
        by_status: _containers.ScalarMap[str, int]
        offered_count: int
        used_count: int
        succeeded_count: int
        fell_back_count: int
        def __init__(self, agent: _Optional[str] = ..., by_status: _Optional[_Mapping[str, int]] = ..., offered_count: _Optional[int] = ..., used_count: _Optional[int] = ..., succeeded_count: _Optional[int] = ..., fell_back_count: _Optional[int] = ...) -> None: ...
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    MOST_USED_FIELD_NUMBER: _ClassVar[int]
    FAILING_FIELD_NUMBER: _ClassVar[int]
    UNUSED_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[GetSkillStatsResponse.AgentStats]
    most_used: _containers.RepeatedCompositeFieldContainer[Skill]
    failing: _containers.RepeatedCompositeFieldContainer[Skill]
    unused: _containers.RepeatedCompositeFieldContainer[Skill]
    def __init__(self, agents: _Optional[_Iterable[_Union[GetSkillStatsResponse.AgentStats, _Mapping]]] = ..., most_used: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ..., failing: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ..., unused: _Optional[_Iterable[_Union[Skill, _Mapping]]] = ...) -> None: ...
