"""Tests the installed package against the real stack at ETUDE_ADDRESS, whose model is scripted by model.yaml."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
import unittest
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import etude
import grpc
from etude import (
    AsyncEtude,
    Etude,
    InvalidArgumentError,
    NotFoundError,
    TaskFailedError,
    UnauthenticatedError,
    UnavailableError,
)
from etude._sync.calls import Calls
from etude._sync.tasks import Tasks as TasksThrough
from etude.v1 import tasks_pb2

README = Path(__file__).parent.parent / "README.md"


class Client(unittest.TestCase):
    client: Etude

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = Etude()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()


Watch = Callable[[tasks_pb2.WatchTaskRequest, grpc.ServicerContext], Iterator[tasks_pb2.TaskEvent]]


class AgainstAFake(unittest.TestCase):
    def gateway(self, watch: Watch) -> str:
        """Starts a gateway that has only WatchTask. Returns its address."""
        method = grpc.unary_stream_rpc_method_handler(
            watch, tasks_pb2.WatchTaskRequest.FromString, tasks_pb2.TaskEvent.SerializeToString
        )
        server = grpc.server(ThreadPoolExecutor(1))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("etude.v1.Tasks", {"WatchTask": method}),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(None).wait())
        return f"127.0.0.1:{port}"

    def test_goes_on_after_a_break_for_a_reader_that_took_longer_than_repeats_may_take(self) -> None:
        def watch(request: tasks_pb2.WatchTaskRequest, context: grpc.ServicerContext) -> Iterator[tasks_pb2.TaskEvent]:
            if request.resume_token:
                yield tasks_pb2.TaskEvent(resume_token="two", finished=tasks_pb2.Finished())
            else:
                yield tasks_pb2.TaskEvent(resume_token="one", attempt_started=tasks_pb2.AttemptStarted())
                context.abort(grpc.StatusCode.UNAVAILABLE, "away")

        kinds: list[str | None] = []
        with Etude(self.gateway(watch), retry_for=0.2) as client:
            for event in client.tasks.get("t0192f0c8a1b2").watch():
                kinds.append(event.WhichOneof("event"))
                time.sleep(0.25)
        self.assertEqual(kinds, ["attempt_started", "finished"])

    def test_ends_a_watch_whose_key_was_revoked_without_a_repeat(self) -> None:
        tokens: list[str] = []

        def watch(request: tasks_pb2.WatchTaskRequest, context: grpc.ServicerContext) -> Iterator[tasks_pb2.TaskEvent]:
            tokens.append(request.resume_token)
            yield tasks_pb2.TaskEvent(resume_token="one", attempt_started=tasks_pb2.AttemptStarted())
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "revoked")

        with Etude(self.gateway(watch)) as client, self.assertRaises(UnauthenticatedError):
            list(client.tasks.get("t0192f0c8a1b2").watch())
        self.assertEqual(tokens, [""])

    def test_keeps_the_key_of_the_local_stack_from_other_gateways(self) -> None:
        seen: list[str] = []

        def watch(_: tasks_pb2.WatchTaskRequest, context: grpc.ServicerContext) -> Iterator[tasks_pb2.TaskEvent]:
            seen.extend(key for key, _ in context.invocation_metadata())
            yield tasks_pb2.TaskEvent(resume_token="one", finished=tasks_pb2.Finished())

        with TemporaryDirectory() as home, patch.dict(os.environ, ETUDE_HOME=home, ETUDE_ADDRESS=self.gateway(watch)):
            (Path(home) / "key").write_text("key-of-the-local-stack")
            with Etude() as client:
                list(client.tasks.get("t0192f0c8a1b2").watch())
        self.assertNotIn("authorization", seen)


class WayToTheGateway:
    """A proxy of the gateway. After `vanish`, its open connections stay open but carry no more data."""

    def __init__(self) -> None:
        self._gone = threading.Event()
        self._sockets = [socket.create_server(("127.0.0.1", 0))]
        self.address = "127.0.0.1:%d" % self._sockets[0].getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def vanish(self) -> None:
        self._gone.set()
        self._gone = threading.Event()

    def close(self) -> None:
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        host, port = os.environ["ETUDE_ADDRESS"].split(":")
        while True:
            near, far = self._sockets[0].accept()[0], socket.create_connection((host, int(port)))
            self._sockets += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(*ends, self._gone), daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, target: socket.socket, gone: threading.Event) -> None:
        while data := source.recv(65536):
            if not gone.is_set():
                target.sendall(data)


class AwayForAWhile(Client):
    def test_notices_that_the_gateway_vanished_and_goes_on_when_it_is_back(self) -> None:
        task = self.client.tasks.submit("Ask which colour it shall have.", strategy="codeact")
        way = WayToTheGateway()
        self.addCleanup(way.close)
        calls = Calls(way.address, "", None, timeout=30, retry_for=30, keepalive_ms=1200)
        self.addCleanup(calls.close)
        kinds: list[str | None] = []
        for event in TasksThrough(calls).get(task.name).watch():
            kinds.append(event.WhichOneof("event"))
            if kinds[-1] == "question":
                way.vanish()
                task.answer("green")
        self.assertEqual((kinds[-1], kinds.count("question")), ("finished", 1))
        self.assertEqual(task.result().output, "green")


class Tasks(Client):
    def test_solves_a_task_and_shows_every_event_once(self) -> None:
        task = self.client.tasks.submit("Write a function square(n).", tests=["assert square(3) == 9"])
        kinds = [event.WhichOneof("event") for event in task.watch()]
        self.assertEqual(kinds[-1], "finished")
        self.assertEqual(kinds.count("attempt_started"), 1)
        self.assertIn("return n * n", task.result().code)

    def test_raises_with_the_best_attempt_where_none_is_accepted(self) -> None:
        limits = tasks_pb2.Limits(attempts=1)
        task = self.client.tasks.submit("Write a function cube(n).", tests="assert cube(2) == 8", limits=limits)
        with self.assertRaises(TaskFailedError) as caught:
            task.result()
        self.assertEqual(caught.exception.code, "ATTEMPTS")
        self.assertIn("return n", caught.exception.task.result.code)

    def test_is_one_task_for_one_request_id(self) -> None:
        request_id = uuid.uuid4().hex
        names = {self.client.tasks.submit("Write a function square(n).", request_id=request_id).name for _ in range(2)}
        self.assertEqual(len(names), 1)

    def test_lists_all_pages(self) -> None:
        label = {"run": uuid.uuid4().hex}
        names = {self.client.tasks.submit("Write a function square(n).", labels=label).name for _ in range(3)}
        self.assertEqual({task.name for task in self.client.tasks.list(labels=label)}, names)

    def test_cancels(self) -> None:
        task = self.client.tasks.submit("Write a function square(n).")
        task.cancel()
        self.assertTrue(task.wait(30).cancel_requested or task.get().state == tasks_pb2.TASK_STATE_SUCCEEDED)

    def test_counts_usage(self) -> None:
        self.client.tasks.submit("Write a function square(n).", agent="counted").wait()
        self.assertGreater(sum(row.model_calls for row in self.client.tasks.usage(agent="counted").rows), 0)


class Errors(Client):
    def test_names_the_wrong_field(self) -> None:
        with self.assertRaises(InvalidArgumentError) as caught:
            self.client.tasks.submit("")
        self.assertEqual(caught.exception.violations[0].field, "spec.prompt")

    def test_has_a_class_and_the_servers_hint(self) -> None:
        with self.assertRaises(NotFoundError) as caught:
            self.client.tasks.get("t0192f0c8a1b2").get()
        self.assertEqual(caught.exception.code, "NOT_FOUND")
        self.assertIn("t0192f0c8a1b2", str(caught.exception))

    def test_gives_up_where_no_gateway_answers(self) -> None:
        with Etude("127.0.0.1:1", retry_for=0.2) as nobody, self.assertRaises(UnavailableError):
            nobody.tasks.get("t0192f0c8a1b2").get()


class Sandboxes(Client):
    def test_keeps_names_and_files(self) -> None:
        with self.client.sandboxes.create() as sandbox:
            sandbox.upload("in/data.bin", bytes(range(256)) * 4096)
            self.assertEqual(sandbox.run("data = open('in/data.bin', 'rb').read(); len(data)").text, "1048576")
            self.assertEqual(len(sandbox.download("in/data.bin")), 1048576)
            self.assertEqual([file.path for file in sandbox.files()], ["in/data.bin"])
            sandbox.delete("in/data.bin")
            self.assertEqual(list(sandbox.files()), [])

    def test_streams_output_and_tells_errors(self) -> None:
        with self.client.sandboxes.create() as sandbox:
            events = list(sandbox.stream("print('a'); 1 / 0"))
            self.assertEqual(events[0].stdout, "a\n")
            self.assertEqual(events[-1].result.error.type, "ZeroDivisionError")
            self.assertEqual(sandbox.run("cat", shell=True, stdin="through").stdout, "through")


class Memory(Client):
    def test_remembers_recalls_and_forgets(self) -> None:
        agent = f"agent-{uuid.uuid4().hex[:8]}"
        fact = self.client.memory.remember("The tide is highest at five.", agent=agent).fact
        self.assertEqual([hit.id for hit in self.client.memory.search("tide", agent=agent)], [fact.id])
        self.assertIn("tide", self.client.memory.recall("when is the tide highest?", agent=agent).facts[0].text)
        self.client.memory.forget(fact.id, agent=agent)
        self.assertEqual(list(self.client.memory.list("fact", agent=agent)), [])

    def test_imports_a_document(self) -> None:
        answer = self.client.memory.import_document(b"# Harbour\n\nShips wait for the tide.", name="harbour.md", agent="harbour")
        self.assertEqual(answer.document.name, "harbour.md")


class Skills(Client):
    def test_registers_uses_and_lists(self) -> None:
        agent = f"agent-{uuid.uuid4().hex[:8]}"
        code = "def double(n: int) -> int:\n    return n + n\n"
        self.client.skills.register("double", "Doubles a whole number.", code, tests=[([2], 4), ([5], 10)], agent=agent)
        self.assertEqual(self.client.skills.use("double", {"n": 21}, agent=agent), 42)
        self.assertEqual([skill.name for skill in self.client.skills.list(agent=agent)], ["skills/double"])
        with self.assertRaises(etude.SkillFailedError):
            self.client.skills.use("no_such_skill", agent=agent)


class Asynchronous(unittest.TestCase):
    def test_has_the_same_stories(self) -> None:
        async def story() -> tuple[str, str, int]:
            async with AsyncEtude() as client:
                task = await client.tasks.submit("Write a function square(n).", tests="assert square(3) == 9")
                kinds = [event.WhichOneof("event") async for event in task.watch()]
                async with await client.sandboxes.create() as sandbox:
                    text = (await sandbox.run("6 * 7")).text
                return str(kinds[-1]), text, (await task.result()).cases_passed

        self.assertEqual(asyncio.run(story()), ("finished", "42", 1))


class Readme(unittest.TestCase):
    def test_has_five_examples_that_run(self) -> None:
        examples = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        self.assertGreaterEqual(len(examples), 5)
        for example in examples:
            run = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, timeout=100, env=dict(os.environ))
            self.assertEqual(run.returncode, 0, f"{example}\n{run.stderr}")
            self.assertNotEqual(run.stdout, "")


if __name__ == "__main__":
    unittest.main()
