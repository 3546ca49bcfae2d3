"""Tools in a session's cells: functions whose calls the caller of the cell answers. User code runs in this process."""
import json
import keyword
import os
import select
import threading

from runner.frames import encode_frame
from runner.kernel import receive_fds
from runner.outcome import ALL_ARGUMENTS_BYTES_MAX, ARGUMENTS_BYTES_MAX, ARGUMENTS_DEPTH_MAX, CALLS_MAX, document

# How often a thread that waits for an answer checks whether its cell has ended.
WAKE_MS = 50


class ToolError(Exception):
    """A tool failed, or could not be called."""


# Makes tracebacks show the name without the runner's module.
ToolError.__module__ = "builtins"


class Tools:
    """The object `tools` in cells, which calls tools by name."""

    def __init__(self, calls, names):
        self._calls = calls
        self._names = names

    def list(self):
        return list(self._names)

    def call(self, name, arguments=None, /, **named):
        """Calls any tool, such as "notes/search", with keywords or a dict."""
        if name not in self._names:
            raise ToolError("there is no tool %r, only %s" % (name, ", ".join(self._names)))
        return self._calls.call(name, {**(arguments or {}), **named})


def tool_names(calls, specs):
    """The names that a cell with these tools gets: `tools`, `ToolError`, and a function for each tool whose name is an identifier."""
    if not specs:
        return {}
    named = [spec for spec in specs if spec["name"].isidentifier() and not keyword.iskeyword(spec["name"])]
    functions = {spec["name"]: _function(calls, **spec) for spec in named}
    return {**functions, "tools": Tools(calls, [spec["name"] for spec in specs]), "ToolError": ToolError}


def _function(calls, name, parameters, description):
    def tool(*values, **named):
        if len(values) > len(parameters):
            raise TypeError("%s() takes %d arguments: %s" % (name, len(parameters), ", ".join(parameters)))
        given = dict(zip(parameters, values))
        for key in named:
            if key in given or key not in parameters:
                what = "two values for" if key in given else "an unexpected keyword"
                raise TypeError("%s() got %s %r; its parameters: %s" % (name, what, key, ", ".join(parameters)))
        return calls.call(name, {**given, **named})

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = description
    return tool


class Calls:
    """Sends calls to process 1, one at a time, and waits for their answers."""

    def __init__(self, control, send):
        self.control = control
        self.send = send
        self.pid = os.getpid()
        self.turn = threading.Lock()
        # Held while reading from the socket, so that no thread of an ended cell reads the next cell's message.
        self.reading = threading.Lock()
        self.cell = None

    def begin(self, cell):
        self.number = 0
        self.bytes = 0
        self.cell = cell

    def end(self):
        with self.reading:
            self.cell = None

    def call(self, name, arguments):
        if os.getpid() != self.pid:
            raise ToolError("a process that the cell started can't call tools")
        cell = self.cell
        frame = _encoded(cell, name, arguments)
        with self.turn:
            if cell is None or self.cell != cell:
                raise ToolError("the cell has ended")
            if self.number == CALLS_MAX:
                raise ToolError("a cell may call tools %d times" % CALLS_MAX)
            body = encode_frame({**frame, "number": self.number + 1})
            if self.bytes + len(body) > ALL_ARGUMENTS_BYTES_MAX:
                raise ToolError("a cell may send arguments of %d bytes together" % ALL_ARGUMENTS_BYTES_MAX)
            self.bytes += len(body)
            number = self.number = self.number + 1
            self.send(body)
            answer = self._await(cell, number)
        if "error" in answer:
            raise ToolError(answer["error"])
        return answer["result"]

    def _await(self, cell, number):
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        while True:
            poller.poll(WAKE_MS)
            with self.reading:
                if self.cell != cell:
                    raise ToolError("the cell has ended")
                answer = read_message(self.control) if poller.poll(0) else {}
            # After an interrupt, the answer to an earlier call may still come.
            if answer.get("cell") == cell and answer.get("answers") == number:
                return answer


def read_message(control):
    """The next message of process 1: a cell, or the answer to a tool call. Ends this process when process 1 is gone."""
    message, fds = receive_fds(control, 1)
    if not message or not fds:
        os._exit(0)
    with open(fds[0], "rb") as file:
        return json.loads(file.read())


def _encoded(cell, name, arguments):
    """The frame of a call. Raises ToolError for arguments that are no plain data, or too large."""
    try:
        body = json.dumps(arguments, allow_nan=False, default=_plain)
        if len(body) > ARGUMENTS_BYTES_MAX:
            raise ValueError("they have %d bytes as JSON, over the limit of %d" % (len(body), ARGUMENTS_BYTES_MAX))
        return {"type": "tool_call", "cell": cell, "tool": name, "arguments": document(body, ARGUMENTS_DEPTH_MAX)}
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError("the arguments of %s can't be sent: %s" % (name, error)) from None


def _plain(value):
    """Plain data for numbers and arrays of numpy and similar libraries."""
    if not hasattr(value, "tolist"):
        raise TypeError("%s is no plain data" % type(value).__name__)
    return value.tolist()
