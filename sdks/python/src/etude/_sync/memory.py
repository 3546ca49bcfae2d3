# Generated from ../_async/memory.py by tools/generate.py; don't edit.
"""Memory: remember, recall, search."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from etude._sync.calls import Calls
from etude._values import chunks_of, document_of
from etude.v1 import memory_pb2 as pb


class Memory:
    """Memory: facts, episodes, documents and skills. Each record belongs to an agent, and to a user if one is given."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def remember(
        self, text: str, *, agent: str = "", user: str = "", category: str = "", subject: str = "", confidence: float | None = None
    ) -> pb.StoreFactResponse:
        """Stores a fact. `outcome` says whether the fact was new. `replaced` lists the facts that the new fact replaced."""
        request = pb.StoreFactRequest(
            agent=agent, user=user, text=text, category=category, subject=subject, confidence=confidence, source="told"
        )
        return self._calls.unary("Memory/StoreFact", request, pb.StoreFactResponse)

    def recall(self, context: str, *, agent: str = "", user: str = "", tokens_max: int = 0) -> pb.RecallResponse:
        """Facts, experiences and procedures that help with a task, with at most `tokens_max` tokens in total."""
        request = pb.RecallRequest(context=context, agent=agent, user=user, tokens_max=tokens_max)
        return self._calls.unary("Memory/Recall", request, pb.RecallResponse)

    def search(
        self,
        query: str,
        *,
        agent: str = "",
        user: str = "",
        layers: Sequence[str] = (),
        kinds: Sequence[str] = (),
        limit: int = 0,
        explain: bool = False,
    ) -> list[pb.MemoryHit]:
        """The memories that are most relevant to the query, best first. With `explain`, hits explain the parts of their scores."""
        request = pb.SearchMemoryRequest(
            query=query, agent=agent, user=user, layers=layers, kinds=kinds, limit=limit, explain=explain
        )
        return list((self._calls.unary("Memory/SearchMemory", request, pb.SearchMemoryResponse)).hits)

    def get(self, id: str, *, layer: str = "", agent: str = "", user: str = "") -> pb.MemoryRecord:
        """A memory by its id."""
        request = pb.GetMemoryRequest(id=id, layer=layer, agent=agent, user=user)
        return self._calls.unary("Memory/GetMemory", request, pb.MemoryRecord)

    def list(self, kind: str, *, agent: str = "", user: str = "") -> Iterator[pb.MemoryRecord]:
        """All memories of a kind, such as "fact"."""
        request = pb.ListMemoryRequest(kind=kind, agent=agent, user=user)
        for record in self._calls.pages("Memory/ListMemory", request, pb.ListMemoryResponse, lambda page: page.records):
            yield record

    def forget(self, id: str, *, layer: str = "semantic", agent: str = "", user: str = "") -> pb.ErasureReceipt:
        """Deletes a record and its parts."""
        request = pb.DeleteMemoryRequest(id=id, layer=layer, agent=agent, user=user)
        return self._calls.unary("Memory/DeleteMemory", request, pb.ErasureReceipt)

    def import_document(
        self, source: str | os.PathLike[str] | bytes, *, name: str | None = None, agent: str = "", user: str = "", media_type: str = ""
    ) -> pb.ImportDocumentResponse:
        """Imports a document from a path or from bytes: text, Markdown, HTML or PDF."""
        title, data = document_of(source, name)
        head = pb.DocumentHead(name=title, media_type=media_type, agent=agent, user=user)
        parts = [pb.ImportDocumentRequest(head=head), *(pb.ImportDocumentRequest(data=chunk) for chunk in chunks_of(data))]
        return self._calls.upload("Memory/ImportDocument", parts, pb.ImportDocumentResponse)

    def erase_user(self, user: str) -> pb.ErasureReceipt:
        """Erases everything about a user, and returns a receipt."""
        return self._calls.unary("Memory/EraseMemory", pb.EraseMemoryRequest(user=user), pb.ErasureReceipt)
