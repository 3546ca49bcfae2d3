"""System calls that the standard library lacks. Each raises OSError when it is refused."""
import array
import ctypes
import errno
import os
import struct

import _socket

_LIBC = ctypes.CDLL(None)


def _call(name, *arguments):
    """Calls a C function. Passes integers as long, and bytes and arrays as their address."""
    if getattr(_LIBC, name)(*map(_argument, arguments)) != 0:
        raise OSError("the kernel refused %s" % name)


def _argument(value):
    if isinstance(value, array.array):
        return ctypes.c_void_p(value.buffer_info()[0])
    return ctypes.c_ulong(value) if isinstance(value, int) else value


PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REC = 16384
MS_PRIVATE = 1 << 18


def set_readable(readable):
    """Sets whether processes of this user may debug this process and read its memory and descriptors. Forks inherit this, exec resets it."""
    _call("prctl", PR_SET_DUMPABLE, 1 if readable else 0, 0, 0, 0)


def refuse_new_privileges():
    """Refuses new privileges for ever. Required before a filter of system calls may be set."""
    _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def unshare(flags):
    _call("unshare", flags)


def mount(kind, target, flags, options=None):
    _call("mount", kind.encode(), target.encode(), kind.encode(), flags, options.encode() if options else None)


def make_mounts_private():
    _call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)


def drop_capabilities():
    """Permanent: neither this process nor anything it executes has any capability."""
    for capability in range(64):
        try:
            _call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
        except OSError:
            # The kernel has no more capabilities.
            break
    header = array.array("I", [CAPABILITY_VERSION_3, 0])
    _call("capset", header, array.array("I", [0] * 6))


def filter_system_calls(program):
    """`program` is an array of struct sock_filter."""
    code = array.array("B", program)
    descriptor = array.array("Q", [len(program) // 8, code.buffer_info()[0]])
    _call("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, descriptor, 0, 0)


def be_killed_first():
    """If memory is short, the kernel will kill this process and its children before process 1. Leaves this process hidden."""
    set_readable(True)
    try:
        write_file("/proc/self/oom_score_adj", "1000")
    finally:
        set_readable(False)


def wipe_environment():
    """Clears the environment, also the kernel's copy in /proc. The process must not be hidden yet."""
    os.environ.clear()
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        # The fields env_start and env_end, counted after the command's name.
        start, end = (int(field) for field in file.read().rpartition(")")[2].split()[47:49])
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(start)
        memory.write(bytes(end - start))


def refuse_memory_files():
    """Refuses memfd_create to this process and its children, since pages of a memory file count against no limit."""
    number = {"x86_64": 319, "aarch64": 279}.get(os.uname().machine)
    if number is not None:
        load, equals, answer, allow, refuse = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000 | errno.EPERM
        steps = ((load, 0, 0, 0), (equals, 0, 1, number), (answer, 0, 0, refuse), (answer, 0, 0, allow))
        filter_system_calls(b"".join(struct.pack("=HBBI", *step) for step in steps))


def write_file(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def close_others(*kept):
    """Closes all file descriptors except 0 to 2 and those in `kept`."""
    lowest = 3
    for fd in sorted(kept):
        os.closerange(lowest, fd)
        lowest = fd + 1
    os.closerange(lowest, 65536)


STREAM = _socket.SOCK_STREAM
PACKETS = _socket.SOCK_SEQPACKET


def socket_pair(kind=STREAM):
    return _socket.socketpair(_socket.AF_UNIX, kind)


def socket_of(fd):
    return _socket.socket(fileno=fd)


def send_fds(sock, message, fds):
    sock.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", fds))])


def receive_fds(sock, fds_max):
    """Returns the message and its file descriptors. The message is empty when the other side is gone."""
    fds = array.array("i")
    message, ancillary, _flags, _address = sock.recvmsg(1, _socket.CMSG_LEN(fds_max * fds.itemsize), _socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return message, list(fds)
