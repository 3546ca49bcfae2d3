"""Files of a session: the `file.*` frames of docs/sandbox-protocol.md, answered by process 1 while user code may be alive.

That code has the same user and may rename, link and replace anything below /tmp at any moment. So a path is never handed
to the kernel as a whole: each folder is opened by its own name below the descriptor of the one above, following no links.
"""
import binascii
import errno
import itertools
import os

from runner import folders
from runner.folders import FILE_FLAGS, FOLDER_FLAGS, Refusal
from runner.workspace import TMP

# The one that was not written to for longest gives way; its sender is told offset 0 and may start again.
UPLOADS_MAX = 32
FINISHED_MAX = 32


class Upload:
    def __init__(self, fd, name):
        self.fd = fd
        self.name = name
        self.size = 0


class Uploads:
    """By path. Code that takes a partial file away or writes to it harms only what it was to be given anyway: what is
    written to is the descriptor, and what counts as arrived is counted here."""

    def __init__(self, root):
        self.root = root
        self.open = {}
        self.finished = {}

    def size(self, path):
        """Bytes that have arrived; 0 where there is no upload."""
        upload = self.open.get(path)
        return upload.size if upload else 0

    def was_finished(self, path, offset, length, final):
        """Whether this is the last piece of an upload once more, whose sender missed the answer."""
        return final is True and offset > 0 and path not in self.open and self.finished.get(path) == offset + length

    def append(self, path, offset, data):
        """Answers the size reached. Raises OSError with the upload as it was before."""
        upload = self.open.pop(path, None) or self._start()
        # Behind the others: it was written to last.
        self.open[path] = upload
        view = memoryview(data)
        try:
            while view:
                view = view[os.pwrite(upload.fd, view, offset + len(data) - len(view)) :]
        except OSError:
            os.ftruncate(upload.fd, upload.size)
            raise
        upload.size += len(data)
        return upload.size

    def finish(self, path, folder, name):
        """Renames the upload to `name` in `folder`. Raises Refusal when the code took the partial file away, OSError."""
        upload = self.open[path]
        root = os.open(self.root, FOLDER_FLAGS)
        try:
            if not self._is_there(upload, root):
                self.drop(path)
                raise Refusal("offset", "the upload of %r was removed by code in the sandbox; start it again" % path, size=0)
            os.rename(upload.name, name, src_dir_fd=root, dst_dir_fd=folder)
        finally:
            os.close(root)
        del self.open[path]
        os.close(upload.fd)
        self.finished.pop(path, None)
        self.finished[path] = upload.size
        if len(self.finished) > FINISHED_MAX:
            del self.finished[next(iter(self.finished))]

    def drop(self, path):
        """Whether there was one."""
        self.finished.pop(path, None)
        upload = self.open.pop(path, None)
        if upload is None:
            return False
        os.close(upload.fd)
        root = os.open(self.root, FOLDER_FLAGS)
        try:
            os.unlink(upload.name, dir_fd=root)
        except OSError:
            # The code had it already.
            pass
        finally:
            os.close(root)
        return True

    def _start(self):
        while len(self.open) >= UPLOADS_MAX:
            self.drop(next(iter(self.open)))
        root = os.open(self.root, FOLDER_FLAGS)
        try:
            # A name that no code can take beforehand.
            name = ".etude-upload-" + os.urandom(8).hex()
            return Upload(os.open(name, FILE_FLAGS | os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=root), name)
        finally:
            os.close(root)

    def _is_there(self, upload, root):
        try:
            named = os.stat(upload.name, dir_fd=root, follow_symlinks=False)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return False
            raise
        return os.path.samestat(named, os.fstat(upload.fd))


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
