"""Process 1 of a pod. The container runtime isolates it as bubblewrap does locally. `main` adds the remaining controls.

It listens only when its cells are warm. Settings come in the environment, which is wiped before code runs:
ETUDE_SANDBOX_HOST, _PORT, _NAME, _TOKEN_SHA256, _FILTER (a system call filter, in hex) and _UNCLAIMED_MS.
"""
import os
import sys
from contextlib import suppress

import _socket

from runner import kernel
from runner.connection import Claim, listen
from runner.supervisor import Supervisor, warm_pool
from runner.zygote import hide, preload

PREFIX = "ETUDE_SANDBOX_"
LISTENING = 64
DISCARD_PORT = 9


def main():
    settings = take_settings()
    hide()
    # Created before the system call filter, which refuses further sockets.
    address = settings.get("HOST", "0.0.0.0")
    sock = _socket.socket(_socket.AF_INET6 if ":" in address else _socket.AF_INET, _socket.SOCK_STREAM)
    # Closed connections of an earlier process 1 may still hold the port.
    sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    announce(address)
    kernel.refuse_new_privileges()
    if settings.get("FILTER"):
        kernel.filter_system_calls(bytes.fromhex(settings["FILTER"]))
    preload()
    pool = warm_pool(fresh_zygote())
    claim = Claim(settings["TOKEN_SHA256"], unclaimed_s=int(settings.get("UNCLAIMED_MS", "600000")) / 1000)
    supervisor = Supervisor(pool, claim, settings.get("NAME"), refills=True)
    sock.bind((address, int(settings.get("PORT", "7070"))))
    sock.listen(LISTENING)
    listen(supervisor.loop, sock, lambda *fds: supervisor.connect(*fds, supervisor.disconnected))
    supervisor.serve()


def announce(address):
    """Announces the pod's address on its network: a datagram to an unused address makes the kernel ask for the gateway's hardware
    address, and this question contains the pod's own. Otherwise a neighbour's stale entry, for the previous pod with this address,
    would delay connections by 9 s."""
    nobody = {"0.0.0.0": (_socket.AF_INET, "192.0.2.1"), "::": (_socket.AF_INET6, "2001:db8::1")}.get(address)
    if nobody is None:
        return
    family, there = nobody
    sock = _socket.socket(family, _socket.SOCK_DGRAM | _socket.SOCK_NONBLOCK)
    # Fails if there is no route. Then no neighbour has a stale entry.
    with suppress(OSError):
        sock.sendto(b"", (there, DISCARD_PORT))
    sock.close()


def take_settings():
    """Settings by name without prefix. Wipes the environment, also the kernel's copy in /proc."""
    settings = {name[len(PREFIX) :]: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    kernel.wipe_environment()
    return settings


def fresh_zygote():
    """The command that starts another zygote with the import paths of this process."""
    statement = "import sys;sys.path[:]=%r;from runner.zygote import main_fresh;main_fresh()" % (sys.path,)
    return [sys.executable, "-s", "-S", "-B", "-P", "-X", "utf8", "-c", statement]
