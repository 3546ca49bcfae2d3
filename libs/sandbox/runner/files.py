"""Files of a session: the `file.*` frames of docs/sandbox-protocol.md, answered by process 1 while user code may be alive.

That code has the same user and may rename, link and replace anything below /tmp at any moment. So a path is never handed
to the kernel as a whole: each folder is opened by its own name below the descriptor of the one above, following no links.
"""
import binascii
import errno
import os
from contextlib import contextmanager

from runner import folders
from runner.folders import FILE_FLAGS, FOLDER_FLAGS, Refusal
from runner.frames import Malformed, boolean, natural, text
from runner.workspace import TMP

# Beyond it the upload without a write for longest is dropped; its sender gets offset 0 and may start again.
UPLOADS_MAX = 32
FINISHED_MAX = 32
CHUNK_BYTES_MAX = 512 * 1024
ENTRIES_MAX = 1000
INTEGER_MAX = 2**53 - 1
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def _closing(fd):
    try:
        yield fd
    finally:
        os.close(fd)


class Upload:
    def __init__(self, fd, name):
        self.fd = fd
        self.name = name
        self.size = 0


class Uploads:
    """Unfinished uploads by path. Code that removes or changes a partial file harms only its own input: uploads write to
    the descriptor and count the bytes here."""

    def __init__(self, root):
        self.root = root
        self.open = {}
        self.finished = {}

    def size(self, path):
        """Bytes that have arrived; 0 where there is no upload."""
        return self.open[path].size if path in self.open else 0

    def was_finished(self, path, end):
        """Whether this repeats the last piece of a finished upload, whose sender missed the answer."""
        return path not in self.open and self.finished.get(path) == end

    def append(self, path, data):
        """Appends `data` to the upload. When it raises OSError, the upload is as it was before."""
        upload = self.open.pop(path, None) or self._start()
        # Moves it to the end, since it is written to last.
        self.open[path] = upload
        view = memoryview(data)
        try:
            while view:
                view = view[os.pwrite(upload.fd, view, upload.size + len(data) - len(view)) :]
        except OSError:
            os.ftruncate(upload.fd, upload.size)
            raise
        upload.size += len(data)

    def finish(self, path, folder, name):
        """Renames the upload to `name` in `folder`. Raises Refusal when the code took the partial file away, OSError."""
        upload = self.open[path]
        with _closing(os.open(self.root, FOLDER_FLAGS)) as root:
            try:
                there = os.path.samestat(os.stat(upload.name, dir_fd=root, follow_symlinks=False), os.fstat(upload.fd))
            except FileNotFoundError:
                there = False
            if not there:
                self.drop(path)
                raise Refusal("offset", "the upload of %r was removed by code in the sandbox; start it again" % path, size=0)
            os.rename(upload.name, name, src_dir_fd=root, dst_dir_fd=folder)
        del self.open[path]
        os.close(upload.fd)
        self.finished.pop(path, None)
        self.finished[path] = upload.size
        if len(self.finished) > FINISHED_MAX:
            del self.finished[next(iter(self.finished))]

    def drop(self, path):
        """Drops the upload. Returns whether there was one."""
        self.finished.pop(path, None)
        upload = self.open.pop(path, None)
        if upload is None:
            return False
        os.close(upload.fd)
        with _closing(os.open(self.root, FOLDER_FLAGS)) as root:
            try:
                os.unlink(upload.name, dir_fd=root)
            except OSError:
                # The code has removed it already.
                pass
        return True

    def _start(self):
        while len(self.open) >= UPLOADS_MAX:
            self.drop(next(iter(self.open)))
        with _closing(os.open(self.root, FOLDER_FLAGS)) as root:
            # A random name, which code can't take first.
            name = ".etude-upload-" + os.urandom(8).hex()
            return Upload(os.open(name, FILE_FLAGS | os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=root), name)


class SessionFiles:
    """Answers one frame at a time with a bounded amount of work; never waits for user code."""

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
        except Malformed as malformed:
            answer = {"type": "file.failed", "code": "size", "message": str(malformed)}
        except OSError as error:
            answer = {"type": "file.failed", "code": _code_of(error), "message": _message_of(error)}
        answer["requestId"] = frame.get("requestId")
        return answer

    def place(self, path, content):
        """Writes a whole file; leaves nothing behind when it fails. Raises Refusal, OSError."""
        # `normpath` would end the path at a null character.
        path = path if "\0" in path else os.path.normpath(path)
        names = folders.names_of(path)
        self.uploads.drop(path)
        try:
            self.uploads.append(path, content)
            self._put_in_place(path, names)
        except (OSError, Refusal):
            self.uploads.drop(path)
            raise

    def _folder(self, names, make=False):
        return _closing(folders.open_folder(self.root, names[:-1], make))

    def _write(self, frame):
        path, names = _path_of(frame)
        offset, data, final = natural(frame, "offset", INTEGER_MAX, 0), _decode(text(frame, "data")), boolean(frame, "final")
        end = offset + len(data)
        if final and offset > 0 and self.uploads.was_finished(path, end):
            return {"type": "file.written", "size": end}
        reached = self.uploads.size(path)
        if offset != reached:
            raise Refusal("offset", "the upload of %r has reached %d bytes, not %d" % (path, reached, offset), size=reached)
        # Checked before any data is taken, since the file could not be put in place later.
        with self._folder(names, make=True) as folder:
            folders.regular_file_or_none(folder, names[-1])
        self.uploads.append(path, data)
        if final:
            self._put_in_place(path, names)
        return {"type": "file.written", "size": end}

    def _put_in_place(self, path, names):
        with self._folder(names, make=True) as folder:
            folders.regular_file_or_none(folder, names[-1])
            self.uploads.finish(path, folder, names[-1])

    def _stat(self, frame):
        path, names = _path_of(frame)
        try:
            with self._folder(names) as folder:
                status = folders.regular_file_or_none(folder, names[-1])
        except FileNotFoundError:
            status = None
        return {"type": "file.entry", "entry": status and _entry(path, status), "uploadedBytes": self.uploads.size(path)}

    def _read(self, frame):
        _path, names = _path_of(frame)
        offset, length = natural(frame, "offset", INTEGER_MAX, 0), natural(frame, "length", CHUNK_BYTES_MAX, 0)
        with self._folder(names) as folder:
            opened = os.open(names[-1], FILE_FLAGS | os.O_RDONLY, dir_fd=folder)
        with _closing(opened) as fd:
            size = folders.must_be_regular(os.fstat(fd)).st_size
            data = binascii.b2a_base64(os.pread(fd, length, offset), newline=False).decode("ascii")
        return {"type": "file.data", "data": data, "sizeBytes": min(size, INTEGER_MAX)}

    def _list(self, frame):
        limit = max(1, min(natural(frame, "limit", INTEGER_MAX, 0), ENTRIES_MAX))
        files = folders.list_files(self.root, text(frame, "after"))
        return {"type": "file.entries", "entries": [_entry(path, status) for path, status in files[:limit]], "more": len(files) > limit}

    def _delete(self, frame):
        """Also gives up an upload to that path which is not final yet."""
        path, names = _path_of(frame)
        dropped = self.uploads.drop(path)
        try:
            with self._folder(names) as folder:
                if folders.regular_file_or_none(folder, names[-1]) is None:
                    raise FileNotFoundError(errno.ENOENT, "no such file")
                os.unlink(names[-1], dir_fd=folder)
        except FileNotFoundError:
            if not dropped:
                raise
        return {"type": "file.deleted"}


def _path_of(frame):
    path = text(frame, "path")
    return path, folders.names_of(path)


def _entry(path, status):
    modified_ms = max(0, min(status.st_mtime_ns // 1_000_000, INTEGER_MAX))
    return {"path": path, "sizeBytes": min(status.st_size, INTEGER_MAX), "modifiedMs": modified_ms}


def _decode(data):
    """Decodes strict base64: a lenient reader would skip characters, and the file would miss data."""
    try:
        decoded = binascii.a2b_base64(data)
    except ValueError:
        decoded = None
    if decoded is None or len(data) != (len(decoded) + 2) // 3 * 4 or len(decoded) > CHUNK_BYTES_MAX:
        raise Refusal("size", "data must be base64 of at most %d bytes" % CHUNK_BYTES_MAX)
    return decoded


def _code_of(error):
    if error.errno in FULL:
        return "disk"
    return "not_found" if error.errno == errno.ENOENT else "path"


def _message_of(error):
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a part of the path is a link or no folder"
    return os.strerror(error.errno) if error.errno else str(error)
