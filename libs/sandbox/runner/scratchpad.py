"""The scratchpad of a session: values, observations and failed approaches that outlive cells and interpreters.

User code runs in this process and may replace anything, so the controller checks the reports.
"""
import binascii
import keyword
import os

# Limits of `Scratchpad` in libs/contracts: of stored values, and of notes (observations and failed approaches).
STORED_MAX = 200
NAME_CHARS_MAX = 60
SHOWN_CHARS_MAX = 100
PICKLED_BYTES_MAX = 64 * 1024
ALL_PICKLED_BYTES_MAX = 512 * 1024
NOTES_MAX = 200
NOTE_CHARS_MAX = 1000
FUNCTIONS = ("store", "recall", "observe", "fail")
RESERVED = (*FUNCTIONS, "memory", "tools")


class Lost:
    """Stands for a value that could not be restored."""

    def __init__(self, why):
        self.why = why


class Memory:
    """The object `memory` in cells. Each stored value is also a variable. An assignment to that variable changes the stored value."""

    def __init__(self, namespace):
        self._namespace = namespace
        self._folder = os.getcwd()
        self._values = {}
        # Names of the cell's tools, by which no value can be stored.
        self._tools = ()
        self._observations = []
        self._failed = []

    def store(self, name, value):
        name = _checked(name)
        if name in self._tools:
            raise ValueError("%r is a tool of this cell: store the value by another name" % name)
        if name not in self._values and len(self._values) == STORED_MAX:
            raise ValueError("the scratchpad is full: %d values; store several in one dict" % STORED_MAX)
        self._values[name] = self._namespace[name] = value

    def recall(self, name, default=None):
        value = self._current(name) if name in self._values else default
        return default if isinstance(value, Lost) else value

    def observe(self, text):
        _note(self._observations, text)

    def fail(self, text):
        _note(self._failed, text)

    @property
    def variables(self):
        return {name: self._current(name) for name in self._values if not isinstance(self._current(name), Lost)}

    @property
    def observations(self):
        return list(self._observations)

    @property
    def failed_approaches(self):
        return list(self._failed)

    def _current(self, name):
        value = self._values[name]
        return value if name in self._tools else self._namespace.get(name, value)

    def _provide(self, tools):
        """Restores names that an earlier cell has replaced or deleted. `tools`: the names of the cell's tools."""
        self._tools = tools
        self._namespace.update({name: getattr(self, name) for name in FUNCTIONS}, memory=self)
        for name, value in self._values.items():
            if not isinstance(value, Lost):
                self._namespace.setdefault(name, value)

    def _restore(self, state):
        for value in state["values"]:
            try:
                name = _checked(value["name"])
            except ValueError:
                continue
            found = self._values[name] = self._restored(value)
            if not isinstance(found, Lost):
                self._namespace[name] = found
        self._observations[:] = state["observations"]
        self._failed[:] = state["failedApproaches"]

    def _restored(self, value):
        # Imported only here, since the import would slow down the start of each session.
        import _pickle

        try:
            if "pickled" in value:
                return _pickle.loads(binascii.a2b_base64(value["pickled"]))
            if "file" not in value:
                return Lost(value.get("lost", "it can't be pickled, and its interpreter has ended"))
            with open(os.path.join(self._folder, value["file"]), "rb") as file:
                return _pickle.load(file)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Lost(("%s: %s" % (type(error).__name__, _text(str, error)))[:NOTE_CHARS_MAX // 4])

    def _state(self):
        """The report to process 1 at the end of a cell: a `Scratchpad` as in libs/contracts."""
        self._values = {name: self._current(name) for name in self._values}
        room = ALL_PICKLED_BYTES_MAX
        values = []
        for name, value in self._values.items():
            told, size = self._told(name, value, min(PICKLED_BYTES_MAX, room))
            room -= size
            values.append({"name": name, **told})
        return {"values": values, "observations": self._observations, "failedApproaches": self._failed}

    def _told(self, name, value, room):
        """The form of the value in the report, and how many bytes of `room` it takes."""
        if isinstance(value, Lost):
            return {"shown": "", "lost": value.why}, 0
        kept, size = self._pickled(name, value, room)
        return {"shown": _text(repr, value), **kept}, size

    def _pickled(self, name, value, room):
        """The pickled value for the report, and its size there. ({}, 0) for a value that can't be pickled, which exists in this process only."""
        import _pickle

        sink = Sink(os.path.join(self._folder, pickle_file(name)), room)
        try:
            _pickle.Pickler(sink, 5).dump(value)
            return sink.kept(name)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return {}, 0
        finally:
            sink.close()


def pickle_file(name):
    """The path, relative to the working directory, of the file for a value that is too large for the report."""
    return ".scratchpad/%s.pickle" % name


class Sink:
    """Takes a pickled value: up to `room` bytes in memory, more in a file."""

    def __init__(self, path, room):
        self.path = path
        self.room = room
        self.data = bytearray()
        self.file = None

    def write(self, data):
        if self.file:
            return self.file.write(data)
        self.data += data
        if len(self.data) > self.room:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            self.file = open(self.path + ".part", "wb")
            self.file.write(self.data)
        return len(data)

    def kept(self, name):
        if not self.file:
            return {"pickled": binascii.b2a_base64(self.data, newline=False).decode("ascii")}, len(self.data)
        self.close()
        os.replace(self.path + ".part", self.path)
        return {"file": pickle_file(name)}, 0

    def close(self):
        if self.file:
            self.file.close()


def _checked(name):
    """Checks the name and returns it as Python would read it. Raises ValueError."""
    if isinstance(name, str) and not name.isascii():
        name = __import__("unicodedata").normalize("NFKC", name)
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or len(name) > NAME_CHARS_MAX:
        what = "an identifier such as \"best_score\", of at most %d characters, that is not a Python keyword" % NAME_CHARS_MAX
        raise ValueError("%.80r can't be the name of a stored value: use %s" % (name, what))
    if name in RESERVED or name.startswith("__"):
        raise ValueError("%r can't be stored, since it would hide a name that every cell needs: use another name" % name)
    return name


def _note(notes, text):
    notes.append(str.__str__(str(text))[:NOTE_CHARS_MAX].encode("utf-8", "replace").decode("utf-8"))
    del notes[:-NOTES_MAX]


def _text(show, value):
    try:
        text = str.__str__(show(value))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return "<%s without a repr: %s>" % (type(value).__name__, type(error).__name__)
    return text[:SHOWN_CHARS_MAX] + "..." if len(text) > SHOWN_CHARS_MAX else text
