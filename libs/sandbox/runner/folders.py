"""Access to a session's working directory by descriptors, which never follows a link and never waits."""
import errno
import os
import stat

PATH_CHARS_MAX = 512
# Most entries that one listing may look at, so that it takes some tenths of a second. A folder counts as FOLDER_COSTS entries.
LOOKED_AT_MAX = 100_000
FOLDER_COSTS = 10
WORK_NAME = "work"
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# O_NONBLOCK: neither a FIFO nor a lease that the code took on the file holds the opening up.
FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Refusal(Exception):
    """A refused file operation. `answer` has the `code`, `message` and optional `size` of a `file.failed`."""

    def __init__(self, code, message, **more):
        super().__init__(message)
        self.answer = dict(more, code=code, message=message)


def names_of(path):
    """The parts of a relative path. Raises Refusal."""
    if not 0 < len(path) <= PATH_CHARS_MAX or "\0" in path or not _is_unicode(path):
        raise Refusal("path", "a path has 1 to %d Unicode characters, none of them null" % PATH_CHARS_MAX)
    names = path.split("/")
    if any(name in ("", ".", "..") for name in names):
        raise Refusal("path", "the path %r is not plain and relative: no empty parts, no . and no .." % path)
    return names


def _is_unicode(name):
    try:
        name.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False


def open_folder(root, names, make=False):
    """A descriptor of the folder `names` below the working directory, which is recreated if missing. Raises OSError."""
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
    """The status of the file; None where there is none. Raises Refusal when it is not a regular file."""
    try:
        return must_be_regular(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def list_files(root, after):
    """Regular files below the working directory with paths behind `after`, as (path, status), ordered by path.

    Leaves out files that the protocol can't name: names that are not UTF-8 and paths that are too long.
    Raises Refusal when there are more entries than one listing may look at.
    """
    found = []
    left = LOOKED_AT_MAX

    def look_into(folder, prefix):
        """Closes `folder`. Recursion is bounded by the length of a path."""
        nonlocal left
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    path = prefix + entry.name
                    is_folder = entry.is_dir(follow_symlinks=False)
                    left -= FOLDER_COSTS if is_folder else 1
                    if left < 0:
                        raise Refusal("size", "the working directory holds too much to be listed: remove files, or pack them")
                    if len(path) > PATH_CHARS_MAX or not _is_unicode(entry.name):
                        continue
                    if is_folder:
                        inner = _folder_or_none(folder, entry.name) if path + "/" > after or after.startswith(path + "/") else None
                        if inner is not None:
                            look_into(inner, path + "/")
                    elif path > after and entry.is_file(follow_symlinks=False):
                        status = regular_file_or_none(folder, entry.name)
                        found.extend([(path, status)] if status else [])
        finally:
            os.close(folder)

    look_into(open_folder(root, []), "")
    return sorted(found)


def _folder_or_none(folder, name):
    """A descriptor; None when the folder is gone, changed or unreadable. Raises OSError for too many open files."""
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return None
