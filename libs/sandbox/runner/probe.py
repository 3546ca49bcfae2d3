"""Tests every control from inside the sandbox. Prints a JSON object: each failed control, and what was found.

Its stdin is the limits of the run as JSON. In a pod the limits have the further field `pod`: `{"internet": false}` if no socket
may be opened, `{"internet": true}` if a NetworkPolicy decides which addresses can be reached.
"""
import json
import os
import resource
import socket

limits = json.loads(input())
pod = limits.get("pod")
failed = {}


def expect(control, ok, found):
    if not ok:
        failed.setdefault(control, found)


def refused(attempt):
    try:
        attempt()
    except OSError:
        return True
    return False


def connect(address):
    with socket.socket() as sock:
        sock.settimeout(0.2)
        sock.connect(address)


def status(name):
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(name + ":"))


def soft(kind):
    return resource.getrlimit(kind)[0]


def writable_folders():
    """Folders that can be written, except folders meant for writing. Follows no links."""
    for folder, _folders, _files in os.walk("/"):
        if not folder.startswith(("/proc", "/sys", "/tmp", "/dev/shm", "/dev/mqueue", "/dev/pts")) and os.access(folder, os.W_OK):
            yield folder


def check_bubblewrap():
    with open("/proc/net/dev") as file:
        devices = [line.partition(":")[0].strip() for line in file.readlines()[2:]]
    expect("network", devices == ["lo"], "it has the network devices %s" % devices)
    visible = sorted(os.listdir("/"))
    expect("mounts", set(visible) <= {"bin", "dev", "etc", "lib", "lib64", "proc", "run", "tmp", "usr"}, "it sees %s" % visible)
    expect("mounts", set(os.listdir("/etc")) <= {"alternatives"}, "code sees the settings of the host")
    for path in ("/", "/usr", "/dev", "/run/etude"):
        expect("mounts", refused(lambda: open(os.path.join(path, "probe"), "w")), "%s can be written" % path)


def check_pod():
    closed = [socket.AF_PACKET, socket.AF_VSOCK] + ([] if pod["internet"] else [socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK])
    for family in closed:
        expect("network", refused(lambda: socket.socket(family, socket.SOCK_DGRAM)), "sockets of %s can be opened" % family.name)
    written = list(writable_folders())
    expect("mounts", not written, "%s can be written" % written[:10])
    expect("token", not os.path.exists("/var/run/secrets/kubernetes.io"), "code has a service account token")
    expect("environment", not os.environ and not open("/proc/self/environ").read().strip(chr(0)), "code sees the pod's environment")
    with open("/proc/self/oom_score_adj") as file:
        expect("memory", file.read().strip() == "1000", "the kernel would not end it before the supervisor")
    expect("syscalls", refused(lambda: os.setpriority(os.PRIO_PROCESS, 1, 19)), "the runner's own system call filter is not active")


check_pod() if pod else check_bubblewrap()
expect("network", refused(lambda: connect(("192.0.2.1", 9))), "an address outside the sandbox can be reached")

pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
expect("processes", os.getppid() == 1 and len(pids) <= 8, "code sees the processes %s" % pids)
expect("hiding", refused(lambda: os.listdir("/proc/1/fd")) and refused(lambda: open("/proc/1/mem")), "the supervisor can be read")

expect("identity", os.getuid() != 0 and int(status("CapEff"), 16) == 0 and status("NoNewPrivs") == "1", "code has privileges")
expect("syscalls", status("Seccomp") == "2", "no system call filter is active")

disk = os.statvfs("/tmp")
expect("disk", disk.f_blocks * disk.f_frsize == limits["diskMiB"] << 20, "/tmp has another size than requested")
expect("limits", soft(resource.RLIMIT_NPROC) < 64 and soft(resource.RLIMIT_NOFILE) == limits["openFiles"], "processes or files are not limited")
expect("limits", soft(resource.RLIMIT_FSIZE) == limits["fileSizeMiB"] << 20 and soft(resource.RLIMIT_CPU) < 600, "file size or time are not limited")

children = []
for _ in range(64):
    try:
        pid = os.fork()
    except OSError:
        break
    if pid == 0:
        os.read(os.pipe()[0], 1)
        os._exit(0)
    children.append(pid)
expect("limits", len(children) < 64, "more processes start than allowed")
try:
    bytearray((limits["memoryMiB"] + 64) << 20)
    expect("limits", False, "code gets more memory than allowed")
except MemoryError:
    pass

print(json.dumps(failed))
