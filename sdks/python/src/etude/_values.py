"""Converts Python values to protobuf messages and back."""

from __future__ import annotations

import ast
import os
import random
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from google.protobuf import duration_pb2, json_format, struct_pb2
from google.protobuf.message import Message

from etude.v1 import skills_pb2, tasks_pb2

CHUNK_BYTES = 256 * 1024

Files = Mapping[str, bytes | str]


def struct_of(values: Mapping[str, Any]) -> struct_pb2.Struct:
    return json_format.ParseDict(dict(values), struct_pb2.Struct())


def value_of(value: Any) -> struct_pb2.Value:
    return json_format.ParseDict(value, struct_pb2.Value())


def python_of(value: Any) -> Any:
    """A protobuf value as plain data. JSON has one kind of number, so whole numbers become int."""
    plain: Any = json_format.MessageToDict(value) if isinstance(value, Message) else value
    if isinstance(plain, float) and plain.is_integer() and abs(plain) <= 2**53:
        return int(plain)
    if isinstance(plain, list):
        return [python_of(one) for one in cast("list[Any]", plain)]
    if isinstance(plain, dict):
        return {key: python_of(one) for key, one in cast("dict[str, Any]", plain).items()}
    return plain


def duration_of(seconds: float | timedelta) -> duration_pb2.Duration:
    answer = duration_pb2.Duration()
    answer.FromTimedelta(seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds))
    return answer


def new_request_id() -> str:
    return uuid.uuid4().hex


def with_request_id(request: Message) -> Message:
    """Sets `request_id` if the request has this field without a value, so that a retry changes nothing twice."""
    if "request_id" in request.DESCRIPTOR.fields_by_name and not getattr(request, "request_id"):
        setattr(request, "request_id", new_request_id())
    return request


def pause(attempt: int, retry_after: float) -> float:
    """Seconds before a retry: what the server asks for, or 0.1 s doubled up to 5 s, with jitter."""
    return max(retry_after, min(5.0, 0.1 * 2**attempt) * random.uniform(0.5, 1.0))


def bytes_of(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


def chunks_of(data: bytes) -> list[bytes]:
    return [data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES)]


def entry_point_of(tests: str) -> str:
    """The function that tests call first, such as "square" in "assert square(3) == 9"."""
    for node in ast.walk(ast.parse(tests)):
        if isinstance(node, ast.Assert):
            for one in ast.walk(node.test):
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
                    return one.func.id
    raise ValueError("tests: no assert calls a function; pass entry_point")


def evaluator_of(
    tests: str | Sequence[str] | None,
    io_cases: Sequence[tuple[str, str]] | None,
    entry_point: str | None,
    public: bool,
) -> tasks_pb2.Evaluator | None:
    """The evaluator for Python asserts or for pairs of input and output; None if neither is given."""
    if tests is not None and io_cases is not None:
        raise ValueError("a task has one evaluator: pass tests or io_cases, not both")
    if tests is not None:
        text = tests if isinstance(tests, str) else "\n".join(tests)
        python = tasks_pb2.PythonTests(entry_point=entry_point or entry_point_of(text), tests=text, public=public)
        return tasks_pb2.Evaluator(python_tests=python)
    if io_cases is not None:
        cases = [tasks_pb2.IoCase(stdin=stdin, expected_stdout=out, public=public) for stdin, out in io_cases]
        return tasks_pb2.Evaluator(io_cases=tasks_pb2.IoCases(cases=cases))
    return None


def task_files(files: Files | None) -> list[tasks_pb2.TaskFile]:
    return [tasks_pb2.TaskFile(path=path, content=bytes_of(content)) for path, content in (files or {}).items()]


def skill_tests(tests: Sequence[tuple[Sequence[Any], Any]]) -> list[skills_pb2.SkillTestCase]:
    """Tests of a function from pairs of its arguments and the expected result."""
    return [
        skills_pb2.SkillTestCase(
            call=skills_pb2.SkillTestCase.Call(
                args=value_of(list(args)).list_value, expected=value_of(expected)
            )
        )
        for args, expected in tests
    ]


def skill_name(name: str) -> str:
    return name if name.startswith("skills/") else f"skills/{name}"


def task_name(name: str) -> str:
    return name if name.startswith("tasks/") else f"tasks/{name}"


def document_of(source: str | os.PathLike[str] | bytes, name: str | None) -> tuple[str, bytes]:
    """The name and content of a document, given as the path of a file, or as bytes with a name."""
    if isinstance(source, bytes):
        if name is None:
            raise ValueError("bytes need a name; pass name")
        return name, source
    with open(source, "rb") as file:
        return name or os.path.basename(os.fspath(source)), file.read()
