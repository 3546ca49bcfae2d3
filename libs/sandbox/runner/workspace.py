"""The writable places of a sandbox, emptied between runs."""
import os
import stat
from collections import namedtuple

TMP = "/tmp"
WORK = "/tmp/work"
SHARED_MEMORY = "/dev/shm"
# Exists only in containers. Message queues are files there, and outlive the processes that create them.
QUEUES = "/dev/mqueue"


# Current use of the writable places.
Space = namedtuple("Space", "used_mib full files")


def space():
    """The current use. Empty files count too: they take memory that is not freed when the code ends."""
    disk, memory = os.statvfs(TMP), os.statvfs(SHARED_MEMORY)
    files = sum(place.f_files - place.f_ffree for place in (disk, memory))
    return Space((disk.f_blocks - disk.f_bfree) * disk.f_frsize / 1048576, disk.f_bavail == 0, files)


def empty_all():
    """Leaves an empty working directory."""
    for root in (TMP, SHARED_MEMORY, QUEUES):
        try:
            # If the code's user owns it, the code may have removed the permissions.
            os.chmod(root, 0o1777)
        except OSError:
            # It belongs to root, or does not exist.
            pass
        if os.path.isdir(root):
            _empty(root)
    os.makedirs(WORK)


def _empty(root):
    """Moves inner folders up before it removes the outer one, so that any depth works."""
    pulled = 0
    while True:
        names = os.listdir(root)
        if not names:
            return
        for name in names:
            path = os.path.join(root, name)
            if not _is_folder(path):
                os.unlink(path)
                continue
            for child in os.listdir(path):
                inner = os.path.join(path, child)
                if _is_folder(inner):
                    pulled += 1
                    os.rename(inner, os.path.join(root, ".pulled-%d-%d" % (os.getpid(), pulled)))
                else:
                    os.unlink(inner)
            os.rmdir(path)


def _is_folder(path):
    """Whether the path is a folder. Restores its permissions, which the code may have removed."""
    found = stat.S_ISDIR(os.lstat(path).st_mode)
    if found:
        os.chmod(path, 0o700)
    return found
