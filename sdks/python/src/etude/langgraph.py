"""A tool and a store for LangGraph; needs `etude[langgraph]`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import Any

from langchain_core.tools import StructuredTool
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, MatchCondition, Op, PutOp, Result, SearchItem, SearchOp

from etude._interpreter import DESCRIPTION, Interpreter
from etude._sync.client import Etude
from etude._values import python_of
from etude.v1 import memory_pb2 as pb

_SEARCHED = 100


def python_tool(client: Etude | None = None, *, template: str = "", ttl: float = 600.0) -> StructuredTool:
    """The tool `run_python`: runs code in a sandbox that keeps names and files between calls."""
    interpreter = Interpreter(client, template=template, ttl=ttl)

    def run_python(code: str) -> str:
        return interpreter.run(code)

    async def run_python_async(code: str) -> str:
        return await asyncio.to_thread(interpreter.run, code)

    return StructuredTool.from_function(func=run_python, coroutine=run_python_async, name="run_python", description=DESCRIPTION)


class EtudeStore(BaseStore):
    """LangGraph's long-term memory in Etude's facts.

    An item is a fact "NAMESPACE/KEY: VALUE" with its namespace as category ("users/ada") and its key as subject. VALUE is JSON.
    A get reads all facts of the owner, so keep their number small. `ttl` and `index` are not supported.
    """

    def __init__(self, client: Etude | None = None, *, agent: str = "", user: str = "") -> None:
        self._client = client or Etude()
        self._agent = agent
        self._user = user

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return [self._do(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _do(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = self._find(op.namespace, op.key)
            return None if found is None else _item(_Fact(found))
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        return self._put(op)

    def _facts(self) -> Iterator[_Fact]:
        for record in self._client.memory.list("fact", agent=self._agent, user=self._user):
            fact = _Fact(record)
            if fact.is_item:
                yield fact

    def _find(self, namespace: tuple[str, ...], key: str) -> pb.MemoryRecord | None:
        return next((one.record for one in self._facts() if one.namespace == namespace and one.key == key), None)

    def _put(self, op: PutOp) -> None:
        found = self._find(op.namespace, op.key)
        if found is not None:
            self._client.memory.forget(found.id, agent=self._agent, user=self._user)
        if op.value is not None:
            category = "/".join(op.namespace)
            text = f"{category}/{op.key}: {json.dumps(op.value, ensure_ascii=False)}"
            self._client.memory.remember(text, agent=self._agent, user=self._user, category=category, subject=op.key)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found: Iterable[tuple[_Fact, float | None]]
        if op.query:
            hits = self._client.memory.search(op.query, agent=self._agent, user=self._user, kinds=["fact"], limit=_SEARCHED)
            by_id = {fact.record.id: fact for fact in self._facts()}
            found = ((by_id[hit.id], hit.score) for hit in hits if hit.id in by_id)
        else:
            found = ((fact, None) for fact in self._facts())
        prefix = op.namespace_prefix
        items = [
            _item(fact, score)
            for fact, score in found
            if fact.namespace[: len(prefix)] == prefix and all(fact.value.get(k) == v for k, v in (op.filter or {}).items())
        ]
        return items[op.offset : op.offset + op.limit]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        matching = {
            fact.namespace[: op.max_depth]
            for fact in self._facts()
            if all(_matches(fact.namespace, condition) for condition in op.match_conditions or ())
        }
        return sorted(matching)[op.offset : op.offset + op.limit]


class _Fact:
    """A fact, read as an item of the store. `is_item` is false for any other fact."""

    def __init__(self, record: pb.MemoryRecord) -> None:
        fields: dict[str, Any] = python_of(record.fields)
        self.record = record
        self.key = str(fields.get("subject") or "")
        category = str(fields.get("category") or "")
        self.namespace = tuple(category.split("/"))
        prefix, text = f"{category}/{self.key}: ", str(fields.get("fact") or "")
        self.value: dict[str, Any] = {}
        self.is_item = False
        if self.key and text.startswith(prefix):
            try:
                value = json.loads(text[len(prefix) :])
            except ValueError:
                return
            if isinstance(value, dict):
                self.value, self.is_item = value, True


def _item(fact: _Fact, score: float | None = None) -> SearchItem:
    time: datetime = fact.record.create_time.ToDatetime(timezone.utc)
    return SearchItem(fact.namespace, fact.key, fact.value, time, time, score)


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return len(part) == len(path) and all(want in ("*", have) for want, have in zip(path, part, strict=True))
