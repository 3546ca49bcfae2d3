"""The writable places of a sandbox: emptied between runs, filled with the request's files before each."""
import binascii
import os
import stat

TMP = "/tmp"
WORK = "/tmp/work"
SHARED_MEMORY = "/dev/shm"
# Containers have it: queues can be made there as files, and outlive who made them.
QUEUES = "/dev/mqueue"


def place_files(files):
    """Raises ValueError for a path that leaves the working directory."""
    os.makedirs(WORK, exist_ok=True)
    for file in files:
        path = os.path.normpath(file["path"])
        if os.path.isabs(path) or path.split(os.sep)[0] == ".." or path == "." or "\0" in path:
            raise ValueError("the file path %r leaves the working directory" % file["path"])
        target = os.path.join(WORK, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as out:
            out.write(binascii.a2b_base64(file["contentBase64"]))


class Space:
    """What the writable places hold."""

    def __init__(self, used_mib, full, files):
        self.used_mib = used_mib
        self.full = full
        self.files = files


def space():
    """Of now. Files without content take memory as well, which ending the code does not free."""
    disk, memory = os.statvfs(TMP), os.statvfs(SHARED_MEMORY)
    files = sum(place.f_files - place.f_ffree for place in (disk, memory))
    return Space((disk.f_blocks - disk.f_bfree) * disk.f_frsize / 1048576, disk.f_bavail == 0, files)


def empty_all():
    for root in (TMP, SHARED_MEMORY, QUEUES):
        empty(root)


def empty(root):
    """Removes everything below `root`. Folders are pulled up before they are removed, so that no depth is too deep."""
    try:
        # Where it belongs to the code's user, the code may have closed it.
        os.chmod(root, 0o1777)
    except OSError:
        # It is root's, or not there.
        pass
    pulled = 0
    while True:
        try:
            names = os.listdir(root)
        except FileNotFoundError:
            return
        if not names:
            return
        for name in names:
            path = os.path.join(root, name)
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                os.unlink(path)
                continue
            os.chmod(path, 0o700)
            for child in os.listdir(path):
                inner = os.path.join(path, child)
                if stat.S_ISDIR(os.lstat(inner).st_mode):
                    os.chmod(inner, 0o700)
                    pulled += 1
                    os.rename(inner, os.path.join(root, ".pulled-%d-%d" % (os.getpid(), pulled)))
                else:
                    os.unlink(inner)
            os.rmdir(path)
