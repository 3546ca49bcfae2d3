# Generated from ../_async/tasks.py by tools/generate.py; don't edit.
"""Tasks: submit, watch, wait, answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from etude._sync.calls import Calls
from etude._errors import TaskFailedError
from etude._values import Files, duration_of, evaluator_of, new_request_id, task_files, task_name
from etude.v1 import tasks_pb2 as pb

_WAIT_S = 20.0


class Task:
    """One task by its name, such as "tasks/0199..."."""

    def __init__(self, calls: Calls, name: str) -> None:
        self._calls = calls
        self.name = name

    def __repr__(self) -> str:
        return f"Task({self.name!r})"

    def get(self) -> pb.Task:
        """The task in its current state."""
        return self._calls.unary("Tasks/GetTask", pb.GetTaskRequest(name=self.name), pb.Task)

    def watch(self, *, text: bool = False) -> Iterator[pb.TaskEvent]:
        """All events of the task, from its start until it is finished. A broken stream resumes automatically.

        text: whether to also yield the model's text while it is written; this text may be lost.
        """

        def open_from(token: str) -> pb.WatchTaskRequest:
            return pb.WatchTaskRequest(name=self.name, resume_token=token, text=text)

        for event in self._calls.resuming("Tasks/WatchTask", open_from, pb.TaskEvent, "finished"):
            yield event

    def wait(self, timeout: float | None = None, *, learning: bool = False) -> pb.Task:
        """Waits until the task is finished or asks a question, at most for `timeout` seconds. Returns the task in its state then.

        learning: whether to also wait for the end of learning.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _WAIT_S if end is None else max(0.0, min(_WAIT_S, end - time.monotonic()))
            request = pb.WaitTaskRequest(name=self.name, timeout=duration_of(max(left, 0.001)), learning=learning)
            task = self._calls.unary("Tasks/WaitTask", request, pb.Task, timeout=left + 10)
            if _is_done(task, learning) or (end is not None and time.monotonic() >= end):
                return task

    def result(self, timeout: float | None = None) -> pb.TaskResult:
        """Waits for the accepted answer.

        Raises TaskFailedError if the task ended without an accepted answer or asks a question, and TimeoutError after `timeout` seconds.
        """
        task = self.wait(timeout)
        state = pb.TaskState.Name(task.state).removeprefix("TASK_STATE_")
        if state == "SUCCEEDED":
            return task.result
        if state in ("QUEUED", "RUNNING"):
            raise TimeoutError(f"{self.name} is still {state.lower()} after {timeout} s")
        if state == "INPUT_REQUIRED":
            raise TaskFailedError(f"{self.name} asks: {task.question.text}; call answer()", task=task, code=state)
        stop = pb.StopReason.Name(task.stop_reason).removeprefix("STOP_REASON_")
        why = task.error.message or task.result.reason
        raise TaskFailedError(f"{self.name} {state.lower()} ({stop.lower()}): {why}", task=task, code=task.error.code or stop)

    def cancel(self) -> pb.Task:
        """Stops the task, with its running model call and code."""
        return self._calls.unary("Tasks/CancelTask", pb.CancelTaskRequest(name=self.name), pb.Task)

    def answer(self, text: str, *, key: str = "") -> pb.Task:
        """Answers the open question. With `key`: only if that question is open."""
        return self._calls.unary("Tasks/AnswerTask", pb.AnswerTaskRequest(name=self.name, text=text, key=key), pb.Task)

    def explain(self, step: str = "") -> pb.StepExplanation:
        """The model's prompt in a step, by default in the last step that called the model."""
        return self._calls.unary("Tasks/ExplainStep", pb.ExplainStepRequest(name=self.name, step=step), pb.StepExplanation)


def _is_done(task: pb.Task, learning: bool) -> bool:
    if task.state in (pb.TASK_STATE_QUEUED, pb.TASK_STATE_RUNNING):
        return False
    return not (learning and task.learning.state == pb.LEARNING_STATE_PENDING)


class Tasks:
    """Tasks of the tenant."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def submit(
        self,
        prompt: str,
        *,
        tests: str | Sequence[str] | None = None,
        io_cases: Sequence[tuple[str, str]] | None = None,
        entry_point: str | None = None,
        public: bool = False,
        evaluator: pb.Evaluator | None = None,
        agent: str = "",
        user: str = "",
        files: Files | None = None,
        training: bool = False,
        strategy: str = "",
        limits: pb.Limits | None = None,
        memory: pb.MemoryPolicy | None = None,
        priority: int = 0,
        labels: Mapping[str, str] | None = None,
        untrusted: bool = False,
        request_id: str | None = None,
    ) -> Task:
        """Submits a task. Once this returns, the task survives a crash of any service.

        tests: Python asserts. The answer must define the function that they call, or `entry_point`.
        io_cases: pairs of input and expected output of a program.
        public: whether the model sees these tests.
        evaluator: any other evaluator. Without one, the answer is not judged.
        files: files for the sandbox, content by path.
        training: whether to learn from the attempts at the end.
        request_id: a repeat with the same id returns the same task. None: a new id.
        """
        spec = pb.TaskSpec(
            agent=agent,
            user=user,
            prompt=prompt,
            files=task_files(files),
            mode=pb.MODE_TRAINING if training else pb.MODE_UNSPECIFIED,
            evaluator=evaluator or evaluator_of(tests, io_cases, entry_point, public),
            limits=limits,
            strategy=strategy,
            memory=memory,
            priority=priority,
            labels=labels,
            untrusted=untrusted,
        )
        request = pb.SubmitTaskRequest(spec=spec, request_id=request_id or new_request_id())
        task = self._calls.unary("Tasks/SubmitTask", request, pb.Task)
        return Task(self._calls, task.name)

    def get(self, name: str) -> Task:
        """A task by its name, without a call to the gateway."""
        return Task(self._calls, task_name(name))

    def list(self, *, state: str = "", labels: Mapping[str, str] | None = None) -> Iterator[pb.Task]:
        """All tasks, newest first. With `state`, such as "running", or `labels`: only tasks in this state and with all of these labels."""
        request = pb.ListTasksRequest(labels=labels, state=f"TASK_STATE_{state.upper()}" if state else None)
        for task in self._calls.pages("Tasks/ListTasks", request, pb.ListTasksResponse, lambda page: page.tasks):
            yield task

    def usage(self, days: int = 7, *, agent: str = "") -> pb.UsageReport:
        """What the tenant's model calls have cost, by day, agent and purpose."""
        return self._calls.unary("Tasks/GetUsage", pb.GetUsageRequest(days=days, agent=agent), pb.UsageReport)
