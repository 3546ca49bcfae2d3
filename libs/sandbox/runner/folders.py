"""Ways through a session's working directory by descriptors, none of which follows a link or waits."""
import errno
import heapq
import os
import stat

PATH_CHARS_MAX = 512
# What one walk may look at, so that it takes some tenths of a second at most: entries, a folder that is opened counting ten.
LOOKED_AT_MAX = 100_000
FOLDER_COSTS = 10
WORK_NAME = "work"
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# O_NONBLOCK: neither a FIFO nor a lease that the code took on the file holds the opening up.
FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Refusal(Exception):
    """`answer` has the fields `code` and `message` of a `file.failed`, and `size` where it is told."""

    def __init__(self, code, message, **more):
        super().__init__(message)
        self.answer = dict(more, code=code, message=message)


def names_of(path):
    """The parts of a relative path. Raises Refusal."""
    if type(path) is not str or not 0 < len(path) <= PATH_CHARS_MAX or "\0" in path:
        raise Refusal("path", "a path has 1 to %d characters and no null character" % PATH_CHARS_MAX)
    names = path.split("/")
    if any(name in ("", ".", "..") for name in names):
        raise Refusal("path", "the path %r is not plain and relative: no empty parts, no . and no .." % path)
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal("path", "the path is no valid Unicode") from None
    return names


def open_folder(root, names, make=False):
    """A descriptor of the folder `names` below the working directory, which is made anew when it is gone. Raises OSError."""
    folder = os.open(root, FOLDER_FLAGS)
    for depth, name in enumerate([WORK_NAME, *names]):
        try:
            inner = _open_inner(folder, name, make or depth == 0)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _open_inner(folder, name, make):
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    try:
        os.mkdir(name, 0o755, dir_fd=folder)
    except FileExistsError:
        pass
    return os.open(name, FOLDER_FLAGS, dir_fd=folder)


def must_be_regular(status):
    if not stat.S_ISREG(status.st_mode):
        raise Refusal("path", "what is there is no regular file")
    return status


def regular_file_or_none(folder, name):
    """The status of what has that name. Raises Refusal when it is anything but a regular file."""
    try:
        return must_be_regular(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def walk(root, after):
    """Regular files below the working directory as (path, status), ordered by path, those behind `after`.

    Only what a path of the protocol can name: no names that are not UTF-8, nothing deeper than a path may be long.
    Raises Refusal when there is more to look at than one walk may.
    """
    yield from _Walk(after).files(open_folder(root, []), "")


class _Walk:
    def __init__(self, after):
        self.after = after
        self.left = LOOKED_AT_MAX

    def files(self, folder, prefix):
        """Closes `folder`. Recursion is bounded by the length of a path."""
        try:
            self.count(FOLDER_COSTS)
            for key in self.ordered_keys(folder, prefix):
                name = key[:-1] if key.endswith("/") else key
                if name is key:
                    status = _status_or_none(folder, name)
                    if status is not None:
                        yield prefix + name, status
                    continue
                inner = _folder_or_none(folder, name)
                if inner is not None:
                    yield from self.files(inner, prefix + key)
        finally:
            os.close(folder)

    def count(self, looked_at):
        self.left -= looked_at
        if self.left < 0:
            raise Refusal("size", "the working directory holds too much to be listed: remove files, or pack them")

    def ordered_keys(self, folder, prefix):
        """Names of files and of folders, these with a slash behind, so that they come in the order of whole paths."""
        keys = []
        with os.scandir(folder) as entries:
            for entry in entries:
                self.count(1)
                key = self.key_of(entry, prefix)
                if key is not None:
                    keys.append(key)
        heapq.heapify(keys)
        return _popped(keys)

    def key_of(self, entry, prefix):
        name = entry.name
        if not name.isascii() and not _is_text(name):
            return None
        path = prefix + name
        if len(path) > PATH_CHARS_MAX:
            return None
        if entry.is_dir(follow_symlinks=False):
            path += "/"
            return name + "/" if path > self.after or self.after.startswith(path) else None
        return name if path > self.after and entry.is_file(follow_symlinks=False) else None


def _popped(heap):
    """Ordered as far as somebody asks: a page of a large folder need not sort all of it."""
    while heap:
        yield heapq.heappop(heap)


def _is_text(name):
    try:
        name.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False


def _status_or_none(folder, name):
    """None when it has gone or changed since it was seen."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _folder_or_none(folder, name):
    """None when it has gone or changed, or may not be read. Too many open files is an error all the same."""
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return None
