"""Process 1 of a nest: a warm interpreter inside bubblewrap that forks sandboxes, each into fresh namespaces.

It never reads a payload. It only passes to each sandbox its socket to the controller.
Bubblewrap isolates the nest with all its sandboxes from the host.
"""
import json
import os
import select
import sys

import _signal

from runner import kernel, processes
from runner.frames import FrameReader, encode_frame, write_all
from runner.zygote import fork_orphan, hide, preload

INODES_PER_MIB = 400
INODES_MAX = 50_000
SHARED_MEMORY_MIB = 8
TERMINALS_MAX = 16
# Python 3.11 and later optimise code during its first runs. Rehearsals cause this once here, instead of in each fork.
REHEARSALS = 20


class Nest:
    def __init__(self, first_fd, filter_program, own_network, start_supervisor):
        self.first_fd = first_fd
        self.filter_program = filter_program
        self.own_network = own_network
        self.start_supervisor = start_supervisor
        self.reader = FrameReader()
        self.slots = {}
        self.wake, wake = os.pipe()
        os.set_blocking(wake, False)
        _signal.set_wakeup_fd(wake)
        # SIGCHLD reports the end of a sandbox. It needs a handler, since the kernel sends process 1 only signals that have one.
        _signal.signal(_signal.SIGCHLD, lambda *_: None)

    def serve(self):
        self.send({"type": "ready"})
        while True:
            ready = select.select([0, self.wake], [], [])[0]
            if self.wake in ready:
                os.read(self.wake, 4096)
                self.reap()
            if 0 in ready:
                data = os.read(0, 65536)
                if not data:
                    # The controller is gone. The end of process 1 ends every sandbox.
                    os._exit(0)
                for frame in self.reader.feed(data):
                    self.obey(json.loads(frame))

    def obey(self, frame):
        slot = frame["slot"]
        if frame["type"] == "open":
            self.open(slot, frame["diskMiB"], frame.get("user"))
        elif frame["type"] == "destroy":
            for pid in [pid for pid, known in self.slots.items() if known == slot]:
                processes.kill(pid)

    def open(self, slot, disk_mib, user):
        """`user`: the number of the sandbox's own user and group in this nest. None: the sandbox has the user and group of the nest."""
        fd = self.first_fd + slot
        pid = fork_orphan(lambda kept: self._open_namespaces(fd, kept, user), lambda: self._become_supervisor(disk_mib))
        # A sandbox that could not be opened gets a negative number as its pid. `reap` reports it as gone.
        self.slots[pid or -fd] = slot
        os.close(fd)
        self.reap()

    def _open_namespaces(self, fd, kept, user):
        """Creates the namespaces of a sandbox. The next fork becomes its process 1."""
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        # Code sees the same user in every sandbox.
        seen_uid, seen_gid = os.getuid(), os.getgid()
        if user is not None:
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        uid, gid = os.getuid(), os.getgid()
        for other in (0, 1):
            os.dup2(fd, other)
        kernel.close_others(kept)
        network = kernel.CLONE_NEWNET if self.own_network else 0
        kernel.unshare(
            kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | network
        )
        # The kernel hides the /proc files of a process that has gained privileges. The next lines write to these files.
        kernel.set_readable(True)
        kernel.write_file("/proc/self/setgroups", "deny")
        kernel.write_file("/proc/self/uid_map", "%d %d 1" % (seen_uid, uid))
        kernel.write_file("/proc/self/gid_map", "%d %d 1" % (seen_gid, gid))
        kernel.set_readable(False)

    def _become_supervisor(self, disk_mib):
        os.setsid()
        kernel.make_mounts_private()
        kernel.mount("proc", "/proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        inodes = min(INODES_MAX, disk_mib * INODES_PER_MIB + 1000)
        writable = kernel.MS_NOSUID | kernel.MS_NODEV
        kernel.mount("tmpfs", "/tmp", writable, "mode=1777,size=%dm,nr_inodes=%d" % (disk_mib, inodes))
        kernel.mount("tmpfs", "/dev/shm", writable, "mode=1777,size=%dm,nr_inodes=1000" % SHARED_MEMORY_MIB)
        # Each sandbox has its own terminals, so that no other sandbox can open them. At most 16, since the whole machine shares one limit.
        kernel.mount("devpts", "/dev/pts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=600,max=%d" % TERMINALS_MAX)
        kernel.write_file("/proc/sys/user/max_user_namespaces", "0")
        kernel.drop_capabilities()
        if self.filter_program:
            kernel.filter_system_calls(self.filter_program)
        kernel.set_readable(False)
        # Fails if this user can't read the packages of the template. An import would treat their folder as empty.
        os.listdir(sys.path[-1])
        self.start_supervisor()

    def reap(self):
        ended = {}
        processes.reap(ended)
        for pid in [pid for pid in self.slots if pid in ended or pid <= 0]:
            self.send({"type": "gone", "slot": self.slots.pop(pid)})

    def send(self, frame):
        write_all(1, encode_frame(frame))


def main(zygote_command, first_fd, filter_hex, own_network):
    from runner import supervisor

    hide()
    preload()
    for _ in range(REHEARSALS):
        supervisor.rehearse()
    Nest(first_fd, bytes.fromhex(filter_hex), own_network, lambda: supervisor.serve_sandbox(zygote_command)).serve()
