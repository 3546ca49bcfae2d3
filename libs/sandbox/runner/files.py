"""Files of a session: the `file.*` frames of docs/sandbox-protocol.md, answered by process 1 while user code may be alive.

That code has the same user and may rename, link and replace anything below /tmp at any moment. So a path is never handed
to the kernel as a whole: each folder is opened by its own name below the descriptor of the one above, following no links.
"""
import binascii
import errno
import itertools
import os

from runner import folders
from runner.folders import Refusal
from runner.uploads import Uploads
from runner.workspace import TMP

CHUNK_BYTES_MAX = 512 * 1024
ENTRIES_MAX = 1000
INTEGER_MAX = 2**53 - 1
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class SessionFiles:
    """Answers one frame at a time with a bounded amount of work; never waits for user code, never raises."""

    def __init__(self, root=TMP):
        self.root = root
        self.uploads = Uploads(root)
        self.operations = {
            "file.write": self._write,
            "file.stat": self._stat,
            "file.read": self._read,
            "file.list": self._list,
            "file.delete": self._delete,
        }

    def handle(self, frame):
        """The answer to a `file.*` frame, as a dict."""
        try:
            answer = self.operations[frame["type"]](frame)
        except Refusal as refusal:
            answer = dict(refusal.answer, type="file.failed")
        except OSError as error:
            answer = {"type": "file.failed", "code": _code_of(error), "message": _message_of(error)}
        except Exception as error:
            # Whatever a caller sends: process 1 goes on.
            answer = {"type": "file.failed", "code": "path", "message": "the request is malformed: %s" % type(error).__name__}
        answer["requestId"] = frame.get("requestId") if isinstance(frame, dict) else None
        return answer

    def place(self, path, content):
        """Writes a whole file, for the files of an execution that keeps what is there. Raises Refusal, OSError."""
        names = folders.names_of(path)
        self.uploads.drop(path)
        self.uploads.append(path, 0, content)
        self._put_in_place(path, names)

    def _write(self, frame):
        path = frame["path"]
        names = folders.names_of(path)
        offset, data = _count(frame, "offset"), _decode(frame["data"])
        if self.uploads.was_finished(path, offset, len(data), frame["final"]):
            return {"type": "file.written", "size": offset + len(data)}
        reached = self.uploads.size(path)
        if offset != reached:
            raise Refusal("offset", "the upload of %r has reached %d bytes, not %d" % (path, reached, offset), size=reached)
        # Before anything is taken: what can't be put in place later is refused now.
        self._check_target(names)
        size = self.uploads.append(path, offset, data)
        if frame["final"] is True:
            self._put_in_place(path, names)
        return {"type": "file.written", "size": size}

    def _check_target(self, names):
        folder = folders.open_folder(self.root, names[:-1], make=True)
        try:
            folders.regular_file_or_none(folder, names[-1])
        finally:
            os.close(folder)

    def _put_in_place(self, path, names):
        folder = folders.open_folder(self.root, names[:-1], make=True)
        try:
            folders.regular_file_or_none(folder, names[-1])
            self.uploads.finish(path, folder, names[-1])
        finally:
            os.close(folder)

    def _stat(self, frame):
        path = frame["path"]
        names = folders.names_of(path)
        uploaded = self.uploads.size(path)
        try:
            folder = folders.open_folder(self.root, names[:-1])
        except FileNotFoundError:
            return {"type": "file.entry", "entry": None, "uploadedBytes": uploaded}
        try:
            status = folders.regular_file_or_none(folder, names[-1])
        finally:
            os.close(folder)
        return {"type": "file.entry", "entry": status and _entry(path, status), "uploadedBytes": uploaded}

    def _read(self, frame):
        offset, length = _count(frame, "offset"), _count(frame, "length")
        if length > CHUNK_BYTES_MAX:
            raise Refusal("size", "length %d is over the limit of %d bytes" % (length, CHUNK_BYTES_MAX))
        names = folders.names_of(frame["path"])
        folder = folders.open_folder(self.root, names[:-1])
        try:
            fd = os.open(names[-1], folders.FILE_FLAGS | os.O_RDONLY, dir_fd=folder)
        finally:
            os.close(folder)
        try:
            status = folders.must_be_regular(os.fstat(fd))
            data = os.pread(fd, length, offset)
        finally:
            os.close(fd)
        text = binascii.b2a_base64(data, newline=False).decode("ascii")
        return {"type": "file.data", "data": text, "sizeBytes": min(status.st_size, INTEGER_MAX)}

    def _list(self, frame):
        limit = max(1, min(_count(frame, "limit"), ENTRIES_MAX))
        files = folders.walk(self.root, frame["after"])
        try:
            entries = [_entry(path, status) for path, status in itertools.islice(files, limit)]
            more = next(files, None) is not None
        finally:
            files.close()
        return {"type": "file.entries", "entries": entries, "more": more}

    def _delete(self, frame):
        """Also gives up an upload to that path which is not final yet."""
        names = folders.names_of(frame["path"])
        dropped = self.uploads.drop(frame["path"])
        try:
            folder = folders.open_folder(self.root, names[:-1])
            try:
                if folders.regular_file_or_none(folder, names[-1]) is None:
                    raise FileNotFoundError(errno.ENOENT, "no such file")
                os.unlink(names[-1], dir_fd=folder)
            finally:
                os.close(folder)
        except FileNotFoundError:
            if not dropped:
                raise
        return {"type": "file.deleted"}


def _entry(path, status):
    modified_ms = max(0, min(status.st_mtime_ns // 1_000_000, INTEGER_MAX))
    return {"path": path, "sizeBytes": min(status.st_size, INTEGER_MAX), "modifiedMs": modified_ms}


def _count(frame, field):
    value = frame[field]
    if type(value) is not int or not 0 <= value <= INTEGER_MAX:
        raise Refusal("size", "%s must be a whole number from 0 to 2^53 - 1" % field)
    return value


def _decode(text):
    """Base64 without anything else in it: what a lenient reader skips would be missing from the file."""
    if type(text) is not str or len(text) > CHUNK_BYTES_MAX * 4 // 3 + 4:
        raise Refusal("size", "data must be base64 of at most %d bytes" % CHUNK_BYTES_MAX)
    try:
        data = binascii.a2b_base64(text)
    except ValueError:
        data = None
    if data is None or len(text) != (len(data) + 2) // 3 * 4:
        raise Refusal("size", "data is no base64")
    if len(data) > CHUNK_BYTES_MAX:
        raise Refusal("size", "data must be at most %d bytes" % CHUNK_BYTES_MAX)
    return data


def _code_of(error):
    if error.errno in FULL:
        return "disk"
    return "not_found" if error.errno == errno.ENOENT else "path"


def _message_of(error):
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a part of the path is a link or no folder"
    return os.strerror(error.errno) if error.errno else str(error)
