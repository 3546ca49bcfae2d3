"""Uploads that are not final yet: partial files beside the working directory, written by descriptor."""
import errno
import os

from runner.folders import FILE_FLAGS, FOLDER_FLAGS, Refusal

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
