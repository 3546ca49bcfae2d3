"""Files of a session: the `file.*` frames of docs/sandbox-protocol.md, answered by process 1 while user code may be alive.

That code may rename, link and replace anything below /tmp at any moment. So the kernel never gets a whole path: each folder
is opened by name, relative to its parent's descriptor, following no links.
"""
import binascii
import errno
import os
from contextlib import suppress

from runner import workspace
from runner.frames import Malformed, boolean, natural, text, write_all
from runner.workspace import FILE_FLAGS, TMP, Refusal, closing

CHUNK_BYTES_MAX = 512 * 1024
ENTRIES_MAX = 1000
SEARCH_CHARS_MAX = 1000
SEARCHED_FILE_BYTES_MAX = 1024 * 1024
# Maximum number of bytes that one search reads, so that it takes some tenths of a second.
SEARCHED_BYTES_MAX = 128 * 1024 * 1024
LINE_CHARS_MAX = 300
INTEGER_MAX = 2**53 - 1
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class SessionFiles:
    """Answers one frame at a time with a bounded amount of work; never waits for user code."""

    def __init__(self):
        # Unfinished uploads, by path: the name and the size of a partial file in TMP.
        self.uploads = {}
        # Sizes of finished uploads, by path. A sender that missed the last answer may repeat its last piece.
        self.finished = {}
        self.operations = {
            "file.write": self._write,
            "file.stat": self._stat,
            "file.read": self._read,
            "file.list": self._list,
            "file.delete": self._delete,
            "file.search": self._search,
        }

    def handle(self, frame):
        try:
            answer = self.operations[frame["type"]](frame)
        except Refusal as refusal:
            answer = dict(refusal.answer, type="file.failed")
        except ValueError as error:
            answer = {"type": "file.failed", "code": "size", "message": str(error)}
        except OSError as error:
            code = "disk" if error.errno in FULL else "not_found" if error.errno == errno.ENOENT else "path"
            answer = {"type": "file.failed", "code": code, "message": error.strerror}
        answer["requestId"] = frame.get("requestId")
        return answer

    def place(self, path, content):
        """Writes a whole file; leaves nothing behind when it fails. Raises Refusal, OSError."""
        # `normpath` would end the path at a null character.
        path = path if "\0" in path else os.path.normpath(path)
        names = workspace.names_of(path)
        self._drop(path)
        try:
            self._append(path, content)
            self._finish(path, names)
        except (OSError, Refusal):
            self._drop(path)
            raise

    def _folder(self, names, make=False):
        return closing(workspace.open_folder(names[:-1], make))

    def _size(self, path):
        """Received bytes of an unfinished upload; 0 if there is none."""
        return self.uploads[path][1] if path in self.uploads else 0

    def _write(self, frame):
        path, names = _path_of(frame)
        offset, data, final = natural(frame, "offset", INTEGER_MAX, 0), binascii.a2b_base64(text(frame, "data")), boolean(frame, "final")
        if len(data) > CHUNK_BYTES_MAX:
            raise Malformed("data must be base64 of at most %d bytes" % CHUNK_BYTES_MAX)
        end = offset + len(data)
        if final and offset > 0 and path not in self.uploads and self.finished.get(path) == end:
            return {"type": "file.written", "size": end}
        reached = self._size(path)
        if offset != reached:
            raise Refusal("offset", "the upload of %r has %d bytes so far, so it can't continue at %d" % (path, reached, offset), size=reached)
        # Fails at once if the path can't take a file.
        with self._folder(names, make=True) as folder:
            workspace.regular_file_or_none(folder, names[-1])
        self._append(path, data)
        if final:
            self._finish(path, names)
        return {"type": "file.written", "size": end}

    def _append(self, path, data):
        """Appends `data` to the upload. When it raises OSError, the upload is as it was before."""
        is_new = path not in self.uploads
        # A random name, so that code can't have created a file of that name.
        name, size = (".etude-upload-" + os.urandom(8).hex(), 0) if is_new else self.uploads[path]
        try:
            opened = os.open(os.path.join(TMP, name), FILE_FLAGS | os.O_WRONLY | (os.O_CREAT | os.O_EXCL if is_new else 0), 0o644)
        except OSError as error:
            if is_new:
                raise
            self._drop(path)
            raise Refusal("offset", "the upload of %r was removed by code in the sandbox; start it again" % path, size=0) from error
        with closing(opened) as fd:
            self.uploads[path] = (name, size)
            try:
                os.lseek(fd, size, os.SEEK_SET)
                write_all(fd, data)
            except OSError:
                os.ftruncate(fd, size)
                raise
        self.uploads[path] = (name, size + len(data))

    def _finish(self, path, names):
        with self._folder(names, make=True) as folder:
            workspace.regular_file_or_none(folder, names[-1])
            os.rename(os.path.join(TMP, self.uploads[path][0]), names[-1], dst_dir_fd=folder)
        self.finished[path] = self.uploads.pop(path)[1]

    def _drop(self, path):
        """Drops the upload. Returns whether there was one."""
        self.finished.pop(path, None)
        if path not in self.uploads:
            return False
        # The code may have removed the partial file already.
        with suppress(OSError):
            os.unlink(os.path.join(TMP, self.uploads.pop(path)[0]))
        return True

    def _stat(self, frame):
        path, names = _path_of(frame)
        try:
            with self._folder(names) as folder:
                status = workspace.regular_file_or_none(folder, names[-1])
        except FileNotFoundError:
            status = None
        return {"type": "file.entry", "entry": status and _entry(path, status), "uploadedBytes": self._size(path)}

    def _read(self, frame):
        _path, names = _path_of(frame)
        offset, length = natural(frame, "offset", INTEGER_MAX, 0), natural(frame, "length", CHUNK_BYTES_MAX, 0)
        with self._folder(names) as folder:
            opened = os.open(names[-1], FILE_FLAGS | os.O_RDONLY, dir_fd=folder)
        with closing(opened) as fd:
            size = workspace.must_be_regular(os.fstat(fd)).st_size
            data = binascii.b2a_base64(os.pread(fd, length, offset), newline=False).decode("ascii")
        return {"type": "file.data", "data": data, "sizeBytes": size}

    def _list(self, frame):
        limit = min(natural(frame, "limit"), ENTRIES_MAX)
        files = workspace.list_files(text(frame, "after"))
        return {"type": "file.entries", "entries": [_entry(path, status) for path, status in files[:limit]], "more": len(files) > limit}

    def _search(self, frame):
        """Lines that contain a text, ordered by path. Leaves out binary and large files."""
        limit, needle = min(natural(frame, "limit"), ENTRIES_MAX), text(frame, "text", SEARCH_CHARS_MAX)
        lines, total, left = [], 0, SEARCHED_BYTES_MAX
        for path, status in workspace.list_files(""):
            left -= status.st_size if status.st_size <= SEARCHED_FILE_BYTES_MAX else 0
            if left < 0:
                raise Refusal("size", "the working directory holds too much data to be searched. Remove files.")
            for number, line in self._lines_with(needle, path, status):
                total += 1
                if len(lines) < limit:
                    lines.append({"path": path, "line": number, "text": line[:LINE_CHARS_MAX]})
        return {"type": "file.found", "lines": lines, "total": total}

    def _lines_with(self, needle, path, status):
        try:
            if status.st_size > SEARCHED_FILE_BYTES_MAX:
                return []
            names = path.split("/")
            with self._folder(names) as folder:
                opened = os.open(names[-1], FILE_FLAGS | os.O_RDONLY, dir_fd=folder)
            with closing(opened) as fd:
                workspace.must_be_regular(os.fstat(fd))
                data = os.pread(fd, SEARCHED_FILE_BYTES_MAX, 0)
            if needle.encode("utf-8", "replace") not in data or b"\0" in data:
                return []
            return [(number, line) for number, line in enumerate(data.decode("utf-8").split("\n"), 1) if needle in line]
        except (OSError, UnicodeDecodeError, Refusal):
            # The file was removed or changed meanwhile, can't be read, or is no text.
            return []

    def _delete(self, frame):
        path, names = _path_of(frame)
        dropped = self._drop(path)
        try:
            with self._folder(names) as folder:
                workspace.regular_file_or_none(folder, names[-1])
                os.unlink(names[-1], dir_fd=folder)
        except FileNotFoundError:
            if not dropped:
                raise
        return {"type": "file.deleted"}


def _path_of(frame):
    path = text(frame, "path")
    return path, workspace.names_of(path)


def _entry(path, status):
    """The modification time is bounded, since code can set it to any value."""
    modified_ms = max(0, min(status.st_mtime_ns // 1_000_000, INTEGER_MAX))
    return {"path": path, "sizeBytes": status.st_size, "modifiedMs": modified_ms}
