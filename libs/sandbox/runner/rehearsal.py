"""What a supervisor does for its first execution, done while nobody waits: a page that it shares with other forks is copied
when it is first written to, and a run takes half as long again where that happens underway."""
import json
import os

from runner import memory_kills, processes
from runner.claim import Claim
from runner.descriptors import socket_pair
from runner.execution import LIMITS
from runner.frames import encode_frame
from runner.loop import FOREVER, READ
from runner.run import Run
from runner.spare import sealed
from runner.supervisor import Supervisor

RUN = {"kind": "call", "code": "", "entryPoint": "f", "args": [1], "kwargs": {"a": "b"}}
RESULT = {"exit": "ok", "exitCode": 0, "signal": None, "stdout": "", "stdoutCutBytes": 0, "cpuMs": 0.5, "value": [1, "a", {"b": None}]}


def rehearse():
    """Has a supervisor of its own take an execution over a connection and answer it. No code runs, and nothing is left of it."""
    supervisor = Supervisor(None, Claim())
    ours, theirs = socket_pair()
    fd = ours.detach()
    supervisor.connect(fd, os.dup(fd), supervisor.disconnected)
    limits = dict.fromkeys(LIMITS, 1)
    request = {"executionId": "rehearsal", "limits": limits, "runs": [RUN], "stream": True, "after": 0}
    theirs.sendall(encode_frame({"type": "bind", "claim": "c"}) + encode_frame({"type": "execute", "claim": "c", **request}))
    while supervisor.current is None:
        supervisor.turn(FOREVER)
    execution = supervisor.current
    _rehearse_run(Run(execution, 0, None, supervisor.loop, supervisor.turn, 0))
    execution.note("run", run=0, result=RESULT)
    execution.add("done")
    supervisor.owner.end()
    theirs.close()


def _rehearse_run(run):
    """What is around the cell: its payload, waiting for its end, its report and its output."""
    memory_kills.count()
    os.close(sealed(json.dumps(run.request).encode("ascii")))
    pidfd = os.pidfd_open(os.getpid())
    run.loop.watch(pidfd, READ, run.loop.turn)
    run.turn(0)
    run.loop.forget(pidfd)
    os.close(pidfd)
    run._take_report(encode_frame({"value": RESULT["value"]}))
    for sink in (run.stdout, run.stderr):
        sink.feed(b"text")
        sink.text()
        sink.rest()
    processes.children()
