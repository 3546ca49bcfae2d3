"""The writable places of a sandbox, emptied between runs."""
import os
import stat
from collections import namedtuple

TMP = "/tmp"
WORK = "/tmp/work"
SHARED_MEMORY = "/dev/shm"
# Containers have it: queues can be made there as files, and outlive who made them.
QUEUES = "/dev/mqueue"


# What the writable places hold.
Space = namedtuple("Space", "used_mib full files")


def space():
    """Of now. Files without content take memory as well, which ending the code does not free."""
    disk, memory = os.statvfs(TMP), os.statvfs(SHARED_MEMORY)
    files = sum(place.f_files - place.f_ffree for place in (disk, memory))
    return Space((disk.f_blocks - disk.f_bfree) * disk.f_frsize / 1048576, disk.f_bavail == 0, files)


def empty_all():
    """Leaves an empty working directory."""
    for root in (TMP, SHARED_MEMORY, QUEUES):
        try:
            # Where it belongs to the code's user, the code may have closed it.
            os.chmod(root, 0o1777)
        except OSError:
            # It is root's, or not there.
            pass
        if os.path.isdir(root):
            _empty(root)
    os.makedirs(WORK)


def _empty(root):
    """Folders are pulled up before they are removed, so that no depth is too deep."""
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
    """Opens it, where the code has closed it."""
    found = stat.S_ISDIR(os.lstat(path).st_mode)
    if found:
        os.chmod(path, 0o700)
    return found
