# Generated from ../_async/skills.py by tools/generate.py; don't edit.
"""Skills: search, use, register, review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from etude._sync.calls import Calls
from etude._errors import SkillFailedError
from etude._values import python_of, skill_name, skill_tests, struct_of
from etude.v1 import skills_pb2 as pb


class Skills:
    """Verified functions that solve tasks without a model call."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def search(
        self,
        query: str,
        *,
        agent: str = "",
        user: str = "",
        tags: Sequence[str] = (),
        min_similarity: float | None = None,
        limit: int = 0,
    ) -> list[pb.SearchSkillsResponse.Hit]:
        """The approved skills that are most similar to the query, best first."""
        request = pb.SearchSkillsRequest(
            query=query, agent=agent, user=user, tags=tags, min_similarity=min_similarity, max_results=limit
        )
        return list((self._calls.unary("Skills/SearchSkills", request, pb.SearchSkillsResponse)).hits)

    def use(
        self,
        name: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        agent: str = "",
        user: str = "",
        stdin: str = "",
        request_missing: bool = False,
    ) -> Any:
        """Runs a skill. Returns its result as plain data, or for a program its output.

        request_missing: whether to request a skill that doesn't exist. Raises SkillFailedError.
        """
        request = pb.UseSkillRequest(
            name=skill_name(name),
            agent=agent,
            user=user,
            stdin=stdin,
            no_request=not request_missing,
            parameters=struct_of(parameters or {}),
        )
        answer = self._calls.unary("Skills/UseSkill", request, pb.UseSkillResponse)
        if not answer.success:
            raise SkillFailedError(answer.error, answer=answer)
        return python_of(answer.result) if answer.HasField("result") else answer.output

    def register(
        self,
        name: str,
        description: str,
        code: str,
        *,
        tests: Sequence[tuple[Sequence[Any], Any]] = (),
        agent: str = "",
        user: str = "",
        wait: bool = True,
        draft: pb.SkillDraft | None = None,
    ) -> pb.Skill:
        """Registers a function. It is verified in sandboxes, then waits for a review or is approved.

        tests: pairs of arguments and expected result.
        draft: further fields of the skill. wait: whether to wait for the verification.
        """
        skill = pb.SkillDraft(name=name, agent=agent, user=user, description=description, code=code, tests=skill_tests(tests))
        if draft is not None:
            skill.MergeFrom(draft)
        request = pb.RegisterSkillRequest(skill=skill, wait=wait)
        return self._calls.unary("Skills/RegisterSkill", request, pb.Skill, timeout=120.0 if wait else None)

    def get(self, name: str, *, agent: str = "", user: str = "", version: int = 0) -> pb.Skill:
        """A skill; its newest version by default."""
        request = pb.GetSkillRequest(name=skill_name(name), agent=agent, user=user, version=version)
        return self._calls.unary("Skills/GetSkill", request, pb.Skill)

    def list(self, *, agent: str = "", category: str = "", status: str = "") -> Iterator[pb.Skill]:
        """All skills. Code and tests are left out. With `status`, such as "active": only skills in this status."""
        named = f"SKILL_STATUS_{status.upper()}" if status else None
        request = pb.ListSkillsRequest(agent=agent, category=category, status=named, brief=True)
        for skill in self._calls.pages("Skills/ListSkills", request, pb.ListSkillsResponse, lambda page: page.skills):
            yield skill

    def review(self, name: str, *, agent: str = "", user: str = "", version: int = 0) -> pb.SkillReview:
        """Everything for a review: code, differences, evidence, tests and similar skills."""
        request = pb.GetSkillReviewRequest(name=skill_name(name), agent=agent, user=user, version=version)
        return self._calls.unary("Skills/GetSkillReview", request, pb.SkillReview)

    def approve(self, name: str, digest: str, *, agent: str = "", user: str = "", version: int = 0) -> pb.Skill:
        """Approves the version with exactly this digest. Needs the role reviewer."""
        request = pb.ApproveSkillRequest(name=skill_name(name), digest=digest, agent=agent, user=user, version=version)
        return self._calls.unary("Skills/ApproveSkill", request, pb.Skill)

    def reject(self, name: str, reason: str, *, agent: str = "", user: str = "", version: int = 0) -> pb.Skill:
        """Rejects a skill with a reason. Needs the role reviewer."""
        request = pb.RejectSkillRequest(name=skill_name(name), reason=reason, agent=agent, user=user, version=version)
        return self._calls.unary("Skills/RejectSkill", request, pb.Skill)
