"""The writable folders of a sandbox: how full they are, how they are emptied, and how process 1 opens files without following links."""
import os
import re
import stat
from collections import namedtuple
from contextlib import contextmanager, suppress

TMP = "/tmp"
WORK = "/tmp/work"
SHARED_MEMORY = "/dev/shm"
# Exists only in containers. Message queues are files there, and outlive the processes that create them.
QUEUES = "/dev/mqueue"
PATH_CHARS_MAX = 512
# The null character, and single surrogates, with which Python represents bytes that are not UTF-8.
UNFIT = re.compile("[\0\ud800-\udfff]")
# Maximum number of entries that one listing reads, so that it takes some tenths of a second. A folder counts as FOLDER_COSTS plus its depth.
LOOKED_AT_MAX = 100_000
FOLDER_COSTS = 10
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# O_NONBLOCK: opening must not wait for a FIFO, or for a lease that the code has taken on the file.
FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


Space = namedtuple("Space", "used_mib full files")


def space():
    """How full the writable folders are. Empty files count as well, since they take memory that stays when the code ends."""
    disk, memory = os.statvfs(TMP), os.statvfs(SHARED_MEMORY)
    files = sum(place.f_files - place.f_ffree for place in (disk, memory))
    return Space((disk.f_blocks - disk.f_bfree) * disk.f_frsize / 1048576, disk.f_bavail == 0, files)


def empty_all():
    """Leaves an empty working directory."""
    for root in (TMP, SHARED_MEMORY, QUEUES):
        # The code may have removed the permissions if its user owns the folder. Fails if root owns it, or if it doesn't exist.
        with suppress(OSError):
            os.chmod(root, 0o1777)
        if os.path.isdir(root):
            _empty(root)
    os.makedirs(WORK)


def _empty(root):
    """Moves inner folders up before it removes the outer folder, so that any depth works."""
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


class Refusal(Exception):
    """A refused file operation. `answer`: the `code`, the `message` and the optional `size` of a `file.failed` frame."""

    def __init__(self, code, message, **more):
        super().__init__(message)
        self.answer = dict(more, code=code, message=message)


@contextmanager
def closing(fd):
    try:
        yield fd
    finally:
        os.close(fd)


def names_of(path):
    """The parts of a relative path. Raises Refusal for any other path."""
    names = path.split("/")
    if len(path) > PATH_CHARS_MAX or UNFIT.search(path) or any(name in ("", ".", "..") for name in names):
        what = "a relative path of at most %d Unicode characters, without empty parts, . and .." % PATH_CHARS_MAX
        raise Refusal("path", "the path %.100r is not valid. Use %s" % (path, what))
    return names


def open_folder(names, make=False):
    """Opens a folder below the working directory. Creates the working directory if it is missing, and with `make` the folder. Raises OSError."""
    folder = os.open(TMP, FOLDER_FLAGS)
    for depth, name in enumerate(["work", *names]):
        with closing(folder) as outer:
            if make or depth == 0:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=outer)
            folder = os.open(name, FOLDER_FLAGS, dir_fd=outer)
    return folder


def must_be_regular(status):
    if not stat.S_ISREG(status.st_mode):
        raise Refusal("path", "this path is not a regular file")
    return status


def regular_file_or_none(folder, name):
    """The status of the file; None if there is none. Raises Refusal if it is not a regular file."""
    try:
        return must_be_regular(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def list_files(after):
    """Regular files below the working directory whose paths sort after `after`, as (path, status), ordered by path.

    Leaves out files that the protocol can't name: names that are not UTF-8 and paths that are too long.
    Raises Refusal when there are more entries than one listing may look at.
    """
    found = []
    left = LOOKED_AT_MAX
    waiting = [[]]
    while waiting:
        names = waiting.pop()
        try:
            folder = open_folder(names)
        except OSError:
            if not names:
                raise
            # The code has removed or changed the folder, or made it unreadable.
            continue
        with closing(folder), os.scandir(folder) as entries:
            for entry in entries:
                path = "/".join([*names, entry.name])
                is_folder = entry.is_dir(follow_symlinks=False)
                left -= FOLDER_COSTS + len(names) if is_folder else 1
                if left < 0:
                    raise Refusal("size", "the working directory holds too many files to be listed. Remove some, or pack them.")
                if len(path) > PATH_CHARS_MAX or UNFIT.search(path):
                    continue
                if is_folder:
                    waiting.append([*names, entry.name])
                elif path > after and entry.is_file(follow_symlinks=False):
                    status = regular_file_or_none(folder, entry.name)
                    found.extend([(path, status)] if status else [])
    return sorted(found)
