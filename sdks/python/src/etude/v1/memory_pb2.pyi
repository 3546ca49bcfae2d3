import datetime

from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SearchMemoryRequest(_message.Message):
    __slots__ = ("query", "layers", "limit", "agent", "explain", "user", "kinds", "importance_min", "success_rate_min", "similarity_min", "category", "archived", "rerank", "partial")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_MIN_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_RATE_MIN_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_MIN_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    RERANK_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    query: str
    layers: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    agent: str
    explain: bool
    user: str
    kinds: _containers.RepeatedScalarFieldContainer[str]
    importance_min: float
    success_rate_min: float
    similarity_min: float
    category: str
    archived: bool
    rerank: bool
    partial: bool
    def __init__(self, query: _Optional[str] = ..., layers: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., agent: _Optional[str] = ..., explain: bool = ..., user: _Optional[str] = ..., kinds: _Optional[_Iterable[str]] = ..., importance_min: _Optional[float] = ..., success_rate_min: _Optional[float] = ..., similarity_min: _Optional[float] = ..., category: _Optional[str] = ..., archived: bool = ..., rerank: bool = ..., partial: bool = ...) -> None: ...

class SearchMemoryResponse(_message.Message):
    __slots__ = ("hits", "missing_layers")
    HITS_FIELD_NUMBER: _ClassVar[int]
    MISSING_LAYERS_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[MemoryHit]
    missing_layers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hits: _Optional[_Iterable[_Union[MemoryHit, _Mapping]]] = ..., missing_layers: _Optional[_Iterable[str]] = ...) -> None: ...

class MemoryHit(_message.Message):
    __slots__ = ("id", "layer", "kind", "title", "text", "score", "similarity", "agent", "create_time", "explanation", "sources", "origins", "untrusted_origins", "user", "scripted", "turn", "before", "after", "why")
    class ExplanationEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    ORIGINS_FIELD_NUMBER: _ClassVar[int]
    UNTRUSTED_ORIGINS_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SCRIPTED_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    id: str
    layer: str
    kind: str
    title: str
    text: str
    score: float
    similarity: float
    agent: str
    create_time: _timestamp_pb2.Timestamp
    explanation: _containers.ScalarMap[str, float]
    sources: _containers.RepeatedScalarFieldContainer[str]
    origins: _containers.RepeatedScalarFieldContainer[str]
    untrusted_origins: _containers.RepeatedScalarFieldContainer[str]
    user: str
    scripted: bool
    turn: Turn
    before: _containers.RepeatedCompositeFieldContainer[Turn]
    after: _containers.RepeatedCompositeFieldContainer[Turn]
    why: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., layer: _Optional[str] = ..., kind: _Optional[str] = ..., title: _Optional[str] = ..., text: _Optional[str] = ..., score: _Optional[float] = ..., similarity: _Optional[float] = ..., agent: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., explanation: _Optional[_Mapping[str, float]] = ..., sources: _Optional[_Iterable[str]] = ..., origins: _Optional[_Iterable[str]] = ..., untrusted_origins: _Optional[_Iterable[str]] = ..., user: _Optional[str] = ..., scripted: bool = ..., turn: _Optional[_Union[Turn, _Mapping]] = ..., before: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ..., after: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ..., why: _Optional[_Iterable[str]] = ...) -> None: ...

class RecallRequest(_message.Message):
    __slots__ = ("context", "agent", "user", "facts", "experiences", "procedures", "tokens_max", "partial")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    EXPERIENCES_FIELD_NUMBER: _ClassVar[int]
    PROCEDURES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_MAX_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    context: str
    agent: str
    user: str
    facts: int
    experiences: int
    procedures: int
    tokens_max: int
    partial: bool
    def __init__(self, context: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., facts: _Optional[int] = ..., experiences: _Optional[int] = ..., procedures: _Optional[int] = ..., tokens_max: _Optional[int] = ..., partial: bool = ...) -> None: ...

class RecallResponse(_message.Message):
    __slots__ = ("facts", "experiences", "procedures", "tokens", "missing_layers")
    FACTS_FIELD_NUMBER: _ClassVar[int]
    EXPERIENCES_FIELD_NUMBER: _ClassVar[int]
    PROCEDURES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    MISSING_LAYERS_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.RepeatedCompositeFieldContainer[MemoryHit]
    experiences: _containers.RepeatedCompositeFieldContainer[MemoryHit]
    procedures: _containers.RepeatedCompositeFieldContainer[MemoryHit]
    tokens: int
    missing_layers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, facts: _Optional[_Iterable[_Union[MemoryHit, _Mapping]]] = ..., experiences: _Optional[_Iterable[_Union[MemoryHit, _Mapping]]] = ..., procedures: _Optional[_Iterable[_Union[MemoryHit, _Mapping]]] = ..., tokens: _Optional[int] = ..., missing_layers: _Optional[_Iterable[str]] = ...) -> None: ...

class GetMemoryRequest(_message.Message):
    __slots__ = ("id", "layer", "agent", "user")
    ID_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    id: str
    layer: str
    agent: str
    user: str
    def __init__(self, id: _Optional[str] = ..., layer: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ...) -> None: ...

class MemoryRecord(_message.Message):
    __slots__ = ("id", "layer", "kind", "agent", "user", "create_time", "fields")
    ID_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    layer: str
    kind: str
    agent: str
    user: str
    create_time: _timestamp_pb2.Timestamp
    fields: _struct_pb2.Struct
    def __init__(self, id: _Optional[str] = ..., layer: _Optional[str] = ..., kind: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., fields: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class ListMemoryRequest(_message.Message):
    __slots__ = ("kind", "agent", "user", "category", "all", "page_size", "page_token")
    KIND_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    kind: str
    agent: str
    user: str
    category: str
    all: bool
    page_size: int
    page_token: str
    def __init__(self, kind: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., category: _Optional[str] = ..., all: bool = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListMemoryResponse(_message.Message):
    __slots__ = ("records", "next_page_token")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[MemoryRecord]
    next_page_token: str
    def __init__(self, records: _Optional[_Iterable[_Union[MemoryRecord, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteMemoryRequest(_message.Message):
    __slots__ = ("id", "layer", "agent", "user", "request_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    layer: str
    agent: str
    user: str
    request_id: str
    def __init__(self, id: _Optional[str] = ..., layer: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class StoreEpisodeRequest(_message.Message):
    __slots__ = ("request_id", "agent", "user", "context", "actions", "outcomes", "skills_used", "reflection", "importance")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    SKILLS_USED_FIELD_NUMBER: _ClassVar[int]
    REFLECTION_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    agent: str
    user: str
    context: _containers.RepeatedScalarFieldContainer[str]
    actions: _containers.RepeatedScalarFieldContainer[str]
    outcomes: _containers.RepeatedCompositeFieldContainer[_struct_pb2.Struct]
    skills_used: _containers.RepeatedScalarFieldContainer[str]
    reflection: str
    importance: float
    def __init__(self, request_id: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., context: _Optional[_Iterable[str]] = ..., actions: _Optional[_Iterable[str]] = ..., outcomes: _Optional[_Iterable[_Union[_struct_pb2.Struct, _Mapping]]] = ..., skills_used: _Optional[_Iterable[str]] = ..., reflection: _Optional[str] = ..., importance: _Optional[float] = ...) -> None: ...

class ListRecentEpisodesRequest(_message.Message):
    __slots__ = ("agent", "user", "days", "limit", "skill")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    DAYS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SKILL_FIELD_NUMBER: _ClassVar[int]
    agent: str
    user: str
    days: int
    limit: int
    skill: str
    def __init__(self, agent: _Optional[str] = ..., user: _Optional[str] = ..., days: _Optional[int] = ..., limit: _Optional[int] = ..., skill: _Optional[str] = ...) -> None: ...

class ListRecentEpisodesResponse(_message.Message):
    __slots__ = ("episodes",)
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    episodes: _containers.RepeatedCompositeFieldContainer[MemoryRecord]
    def __init__(self, episodes: _Optional[_Iterable[_Union[MemoryRecord, _Mapping]]] = ...) -> None: ...

class StoreFactRequest(_message.Message):
    __slots__ = ("request_id", "agent", "user", "text", "category", "confidence", "source", "subject")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    agent: str
    user: str
    text: str
    category: str
    confidence: float
    source: str
    subject: str
    def __init__(self, request_id: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., text: _Optional[str] = ..., category: _Optional[str] = ..., confidence: _Optional[float] = ..., source: _Optional[str] = ..., subject: _Optional[str] = ...) -> None: ...

class StoreFactResponse(_message.Message):
    __slots__ = ("fact", "outcome", "replaced")
    FACT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    fact: MemoryRecord
    outcome: str
    replaced: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, fact: _Optional[_Union[MemoryRecord, _Mapping]] = ..., outcome: _Optional[str] = ..., replaced: _Optional[_Iterable[str]] = ...) -> None: ...

class UpdateFactRequest(_message.Message):
    __slots__ = ("id", "text", "confidence", "update_mask", "request_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    text: str
    confidence: float
    update_mask: _field_mask_pb2.FieldMask
    request_id: str
    def __init__(self, id: _Optional[str] = ..., text: _Optional[str] = ..., confidence: _Optional[float] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ListFactHistoryRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ListFactHistoryResponse(_message.Message):
    __slots__ = ("facts", "decisions")
    FACTS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.RepeatedCompositeFieldContainer[MemoryRecord]
    decisions: _containers.RepeatedCompositeFieldContainer[FactDecision]
    def __init__(self, facts: _Optional[_Iterable[_Union[MemoryRecord, _Mapping]]] = ..., decisions: _Optional[_Iterable[_Union[FactDecision, _Mapping]]] = ...) -> None: ...

class FactDecision(_message.Message):
    __slots__ = ("newer", "newer_text", "older", "older_text", "verdict", "reason", "by", "decide_time")
    NEWER_FIELD_NUMBER: _ClassVar[int]
    NEWER_TEXT_FIELD_NUMBER: _ClassVar[int]
    OLDER_FIELD_NUMBER: _ClassVar[int]
    OLDER_TEXT_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    DECIDE_TIME_FIELD_NUMBER: _ClassVar[int]
    newer: str
    newer_text: str
    older: str
    older_text: str
    verdict: str
    reason: str
    by: str
    decide_time: _timestamp_pb2.Timestamp
    def __init__(self, newer: _Optional[str] = ..., newer_text: _Optional[str] = ..., older: _Optional[str] = ..., older_text: _Optional[str] = ..., verdict: _Optional[str] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ..., decide_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class UndoFactDecisionRequest(_message.Message):
    __slots__ = ("id", "other")
    ID_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    id: str
    other: str
    def __init__(self, id: _Optional[str] = ..., other: _Optional[str] = ...) -> None: ...

class StoreProcedureRequest(_message.Message):
    __slots__ = ("request_id", "agent", "user", "name", "prompt")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    agent: str
    user: str
    name: str
    prompt: str
    def __init__(self, request_id: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., name: _Optional[str] = ..., prompt: _Optional[str] = ...) -> None: ...

class ImportDocumentRequest(_message.Message):
    __slots__ = ("head", "data")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    head: DocumentHead
    data: bytes
    def __init__(self, head: _Optional[_Union[DocumentHead, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class DocumentHead(_message.Message):
    __slots__ = ("name", "media_type", "agent", "user", "sha256")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    name: str
    media_type: str
    agent: str
    user: str
    sha256: str
    def __init__(self, name: _Optional[str] = ..., media_type: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., sha256: _Optional[str] = ...) -> None: ...

class ImportDocumentResponse(_message.Message):
    __slots__ = ("document", "outcome", "masked_secrets")
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MASKED_SECRETS_FIELD_NUMBER: _ClassVar[int]
    document: Document
    outcome: str
    masked_secrets: int
    def __init__(self, document: _Optional[_Union[Document, _Mapping]] = ..., outcome: _Optional[str] = ..., masked_secrets: _Optional[int] = ...) -> None: ...

class Document(_message.Message):
    __slots__ = ("id", "name", "title", "media_type", "sha256", "bytes", "chunks", "agent", "user", "create_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    title: str
    media_type: str
    sha256: str
    bytes: int
    chunks: int
    agent: str
    user: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., title: _Optional[str] = ..., media_type: _Optional[str] = ..., sha256: _Optional[str] = ..., bytes: _Optional[int] = ..., chunks: _Optional[int] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListDocumentsRequest(_message.Message):
    __slots__ = ("agent", "user", "page_size", "page_token")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agent: str
    user: str
    page_size: int
    page_token: str
    def __init__(self, agent: _Optional[str] = ..., user: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDocumentsResponse(_message.Message):
    __slots__ = ("documents", "next_page_token")
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedCompositeFieldContainer[Document]
    next_page_token: str
    def __init__(self, documents: _Optional[_Iterable[_Union[Document, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteDocumentRequest(_message.Message):
    __slots__ = ("id", "request_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    request_id: str
    def __init__(self, id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteDocumentResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Message(_message.Message):
    __slots__ = ("role", "name", "text", "time")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    role: str
    name: str
    text: str
    time: _timestamp_pb2.Timestamp
    def __init__(self, role: _Optional[str] = ..., name: _Optional[str] = ..., text: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Turn(_message.Message):
    __slots__ = ("id", "conversation", "index", "role", "name", "text", "time")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    conversation: str
    index: int
    role: str
    name: str
    text: str
    time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., conversation: _Optional[str] = ..., index: _Optional[int] = ..., role: _Optional[str] = ..., name: _Optional[str] = ..., text: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Conversation(_message.Message):
    __slots__ = ("id", "name", "title", "agent", "user", "turns", "create_time", "update_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    title: str
    agent: str
    user: str
    turns: int
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., title: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., turns: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AddConversationRequest(_message.Message):
    __slots__ = ("request_id", "agent", "user", "id", "name", "title", "messages", "first")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    agent: str
    user: str
    id: str
    name: str
    title: str
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    first: int
    def __init__(self, request_id: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., id: _Optional[str] = ..., name: _Optional[str] = ..., title: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., first: _Optional[int] = ...) -> None: ...

class AddConversationResponse(_message.Message):
    __slots__ = ("conversation", "outcome", "first")
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    conversation: Conversation
    outcome: str
    first: int
    def __init__(self, conversation: _Optional[_Union[Conversation, _Mapping]] = ..., outcome: _Optional[str] = ..., first: _Optional[int] = ...) -> None: ...

class ListConversationsRequest(_message.Message):
    __slots__ = ("agent", "user", "page_size", "page_token")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agent: str
    user: str
    page_size: int
    page_token: str
    def __init__(self, agent: _Optional[str] = ..., user: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListConversationsResponse(_message.Message):
    __slots__ = ("conversations", "next_page_token")
    CONVERSATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    conversations: _containers.RepeatedCompositeFieldContainer[Conversation]
    next_page_token: str
    def __init__(self, conversations: _Optional[_Iterable[_Union[Conversation, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListTurnsRequest(_message.Message):
    __slots__ = ("id", "page_size", "page_token")
    ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    id: str
    page_size: int
    page_token: str
    def __init__(self, id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTurnsResponse(_message.Message):
    __slots__ = ("turns", "next_page_token")
    TURNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    turns: _containers.RepeatedCompositeFieldContainer[Turn]
    next_page_token: str
    def __init__(self, turns: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteConversationRequest(_message.Message):
    __slots__ = ("id", "request_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    request_id: str
    def __init__(self, id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class DeleteConversationResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExportMemoryRequest(_message.Message):
    __slots__ = ("agent", "user", "layers")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    agent: str
    user: str
    layers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent: _Optional[str] = ..., user: _Optional[str] = ..., layers: _Optional[_Iterable[str]] = ...) -> None: ...

class ExportMemoryResponse(_message.Message):
    __slots__ = ("lines",)
    LINES_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, lines: _Optional[_Iterable[str]] = ...) -> None: ...

class ImportMemoryRequest(_message.Message):
    __slots__ = ("lines",)
    LINES_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, lines: _Optional[_Iterable[str]] = ...) -> None: ...

class ImportMemoryResponse(_message.Message):
    __slots__ = ("lines", "added", "unchanged", "refused")
    LINES_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    lines: int
    added: int
    unchanged: int
    refused: _containers.RepeatedCompositeFieldContainer[RefusedLine]
    def __init__(self, lines: _Optional[int] = ..., added: _Optional[int] = ..., unchanged: _Optional[int] = ..., refused: _Optional[_Iterable[_Union[RefusedLine, _Mapping]]] = ...) -> None: ...

class RefusedLine(_message.Message):
    __slots__ = ("line", "reason")
    LINE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    line: int
    reason: str
    def __init__(self, line: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class ArchiveMemoryRequest(_message.Message):
    __slots__ = ("agent", "user", "score_max", "older_than_days", "layers", "dry_run")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SCORE_MAX_FIELD_NUMBER: _ClassVar[int]
    OLDER_THAN_DAYS_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    agent: str
    user: str
    score_max: float
    older_than_days: int
    layers: _containers.RepeatedScalarFieldContainer[str]
    dry_run: bool
    def __init__(self, agent: _Optional[str] = ..., user: _Optional[str] = ..., score_max: _Optional[float] = ..., older_than_days: _Optional[int] = ..., layers: _Optional[_Iterable[str]] = ..., dry_run: bool = ...) -> None: ...

class ArchiveMemoryResponse(_message.Message):
    __slots__ = ("looked", "archived", "examples")
    LOOKED_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    looked: int
    archived: int
    examples: _containers.RepeatedCompositeFieldContainer[ArchivedExample]
    def __init__(self, looked: _Optional[int] = ..., archived: _Optional[int] = ..., examples: _Optional[_Iterable[_Union[ArchivedExample, _Mapping]]] = ...) -> None: ...

class ArchivedExample(_message.Message):
    __slots__ = ("id", "layer", "title", "score")
    ID_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    id: str
    layer: str
    title: str
    score: float
    def __init__(self, id: _Optional[str] = ..., layer: _Optional[str] = ..., title: _Optional[str] = ..., score: _Optional[float] = ...) -> None: ...

class RestoreMemoryRequest(_message.Message):
    __slots__ = ("agent", "user", "ids")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    agent: str
    user: str
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent: _Optional[str] = ..., user: _Optional[str] = ..., ids: _Optional[_Iterable[str]] = ...) -> None: ...

class RestoreMemoryResponse(_message.Message):
    __slots__ = ("restored",)
    RESTORED_FIELD_NUMBER: _ClassVar[int]
    restored: int
    def __init__(self, restored: _Optional[int] = ...) -> None: ...

class EraseMemoryRequest(_message.Message):
    __slots__ = ("request_id", "agent", "user", "tenant")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    agent: str
    user: str
    tenant: str
    def __init__(self, request_id: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., tenant: _Optional[str] = ...) -> None: ...

class GetErasureRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ErasureReceipt(_message.Message):
    __slots__ = ("id", "state", "removed", "left", "notes", "error", "request_time", "finish_time", "agent_digest", "user_digest", "supported")
    class RemovedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class LeftEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    REQUEST_TIME_FIELD_NUMBER: _ClassVar[int]
    FINISH_TIME_FIELD_NUMBER: _ClassVar[int]
    AGENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    USER_DIGEST_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    removed: _containers.ScalarMap[str, int]
    left: _containers.ScalarMap[str, int]
    notes: _containers.RepeatedScalarFieldContainer[str]
    error: str
    request_time: _timestamp_pb2.Timestamp
    finish_time: _timestamp_pb2.Timestamp
    agent_digest: str
    user_digest: str
    supported: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., removed: _Optional[_Mapping[str, int]] = ..., left: _Optional[_Mapping[str, int]] = ..., notes: _Optional[_Iterable[str]] = ..., error: _Optional[str] = ..., request_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finish_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., agent_digest: _Optional[str] = ..., user_digest: _Optional[str] = ..., supported: _Optional[_Iterable[str]] = ...) -> None: ...

class GetLiftRequest(_message.Message):
    __slots__ = ("agent", "user", "layer", "item")
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    agent: str
    user: str
    layer: str
    item: str
    def __init__(self, agent: _Optional[str] = ..., user: _Optional[str] = ..., layer: _Optional[str] = ..., item: _Optional[str] = ...) -> None: ...

class Lift(_message.Message):
    __slots__ = ("memory", "layers", "items")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    memory: ItemLift
    layers: _containers.RepeatedCompositeFieldContainer[ItemLift]
    items: _containers.RepeatedCompositeFieldContainer[ItemLift]
    def __init__(self, memory: _Optional[_Union[ItemLift, _Mapping]] = ..., layers: _Optional[_Iterable[_Union[ItemLift, _Mapping]]] = ..., items: _Optional[_Iterable[_Union[ItemLift, _Mapping]]] = ...) -> None: ...

class ItemLift(_message.Message):
    __slots__ = ("layer", "kind", "id", "agent", "user", "shown", "shown_right", "withheld", "withheld_right", "success", "tokens", "harmful", "archive_reason")
    LAYER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    SHOWN_RIGHT_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_RIGHT_FIELD_NUMBER: _ClassVar[int]
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    HARMFUL_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_REASON_FIELD_NUMBER: _ClassVar[int]
    layer: str
    kind: str
    id: str
    agent: str
    user: str
    shown: int
    shown_right: int
    withheld: int
    withheld_right: int
    success: Effect
    tokens: Effect
    harmful: bool
    archive_reason: str
    def __init__(self, layer: _Optional[str] = ..., kind: _Optional[str] = ..., id: _Optional[str] = ..., agent: _Optional[str] = ..., user: _Optional[str] = ..., shown: _Optional[int] = ..., shown_right: _Optional[int] = ..., withheld: _Optional[int] = ..., withheld_right: _Optional[int] = ..., success: _Optional[_Union[Effect, _Mapping]] = ..., tokens: _Optional[_Union[Effect, _Mapping]] = ..., harmful: bool = ..., archive_reason: _Optional[str] = ...) -> None: ...

class Effect(_message.Message):
    __slots__ = ("estimate", "low", "high")
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    estimate: float
    low: float
    high: float
    def __init__(self, estimate: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class GetMemoryStatsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MemoryStats(_message.Message):
    __slots__ = ("adapter", "embedding_model", "dimension", "layers", "disk_bytes", "memory_bytes", "settling")
    ADAPTER_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_MODEL_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    SETTLING_FIELD_NUMBER: _ClassVar[int]
    adapter: str
    embedding_model: str
    dimension: int
    layers: _containers.RepeatedCompositeFieldContainer[LayerStats]
    disk_bytes: int
    memory_bytes: int
    settling: Settling
    def __init__(self, adapter: _Optional[str] = ..., embedding_model: _Optional[str] = ..., dimension: _Optional[int] = ..., layers: _Optional[_Iterable[_Union[LayerStats, _Mapping]]] = ..., disk_bytes: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., settling: _Optional[_Union[Settling, _Mapping]] = ...) -> None: ...

class Settling(_message.Message):
    __slots__ = ("unsettled", "model_calls", "model_calls_today", "prompt_tokens", "failure", "unread_conversations")
    UNSETTLED_FIELD_NUMBER: _ClassVar[int]
    MODEL_CALLS_FIELD_NUMBER: _ClassVar[int]
    MODEL_CALLS_TODAY_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    UNREAD_CONVERSATIONS_FIELD_NUMBER: _ClassVar[int]
    unsettled: int
    model_calls: int
    model_calls_today: int
    prompt_tokens: int
    failure: str
    unread_conversations: int
    def __init__(self, unsettled: _Optional[int] = ..., model_calls: _Optional[int] = ..., model_calls_today: _Optional[int] = ..., prompt_tokens: _Optional[int] = ..., failure: _Optional[str] = ..., unread_conversations: _Optional[int] = ...) -> None: ...

class LayerStats(_message.Message):
    __slots__ = ("layer", "kind", "records", "archived")
    LAYER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    layer: str
    kind: str
    records: int
    archived: int
    def __init__(self, layer: _Optional[str] = ..., kind: _Optional[str] = ..., records: _Optional[int] = ..., archived: _Optional[int] = ...) -> None: ...

class StartReembeddingRequest(_message.Message):
    __slots__ = ("model", "dimension", "drop_model")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    DROP_MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    dimension: int
    drop_model: str
    def __init__(self, model: _Optional[str] = ..., dimension: _Optional[int] = ..., drop_model: _Optional[str] = ...) -> None: ...

class StopReembeddingRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetReembeddingRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Reembedding(_message.Message):
    __slots__ = ("model", "state", "done", "total", "error")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    model: str
    state: str
    done: int
    total: int
    error: str
    def __init__(self, model: _Optional[str] = ..., state: _Optional[str] = ..., done: _Optional[int] = ..., total: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class ReconcileMemoryRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReconcileMemoryResponse(_message.Message):
    __slots__ = ("checked", "repaired", "problems")
    class CheckedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CHECKED_FIELD_NUMBER: _ClassVar[int]
    REPAIRED_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    checked: _containers.ScalarMap[str, int]
    repaired: _containers.RepeatedScalarFieldContainer[str]
    problems: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, checked: _Optional[_Mapping[str, int]] = ..., repaired: _Optional[_Iterable[str]] = ..., problems: _Optional[_Iterable[str]] = ...) -> None: ...
