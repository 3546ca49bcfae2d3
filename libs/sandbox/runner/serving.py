"""The answer's side of a check: loads the answer and serves the checker's requests."""
import builtins
import copy
import sys
import traceback
import types

from runner.answer import FILE, describe, execute, flush, leave, new_module, own_traceback, report_exception
from runner.frames import Peer, PeerGone, TooLarge
from runner.values import Decoder, Encoder

SETUP_FILE = "setup.py"


def run_answer(payload, sock):
    server = AnswerServer(Peer(sock), new_module("solution").__dict__)
    try:
        code = server.load(payload["setup"], payload["code"])
        if code == 0:
            server.serve()
    except BaseException as error:
        code = report_exception(error)
    leave(code)


class NotPlain(TypeError):
    """A value that can't be sent to the checker, because it is neither plain data nor an allowed kind of object."""


class Callback:
    """A function of the checker."""

    def __init__(self, server, number):
        self._server = server
        self._number = number

    def __call__(self, *args, **kwargs):
        return self._server.ask({"op": "callback", "id": self._number}, args, kwargs)


class AnswerServer:
    def __init__(self, peer, namespace):
        self.peer = peer
        self.namespace = namespace
        self.shared_names = set()
        self.made = {}
        self.handles = []
        self.numbers = {}
        self.callbacks = {}
        self.last_traceback = ""
        self.lives = False

    def load(self, setup, code):
        """Runs setup and answer, then sends the names that the answer defined, or how it failed. Returns an exit status."""
        pending = self._setup(setup)
        try:
            execute(code, FILE, self.namespace)
            if pending:
                self._setup(setup)
        except BaseException as error:
            # The error is printed before it is sent, since the checker may stop this process as soon as it receives the error.
            code = report_exception(error) or 1
            flush()
            self.peer.send({"failed": describe(error)})
            return code
        flush()
        names = [name for name in self.namespace if type(name) is str and not name.startswith("__")]
        self.peer.send({"ready": names, "classes": [name for name in names if isinstance(self.namespace[name], type)]})
        return 0

    def _setup(self, setup):
        """Runs the setup. Returns True if it needs names of the answer, so that it must run again after the answer."""
        if not setup:
            return False
        before = dict(self.namespace)
        try:
            execute(setup, SETUP_FILE, self.namespace)
        except NameError:
            return True
        finally:
            self.shared_names = {
                name
                for name, value in self.namespace.items()
                if isinstance(value, type) and value.__module__ == "solution" and before.get(name) is not value
            }
        return False

    def serve(self):
        while True:
            try:
                request = self.peer.receive()
            except PeerGone:
                return
            self.answer(request)

    def answer(self, request):
        """Carries out a request. Sends one reply: a value or an exception, and the changes in the arguments."""
        self.lives = request["lives"]
        decoder = Decoder(self._resolve, self._class_of, request["table"])
        known = list(decoder.objects)
        try:
            args, kwargs = decoder.arguments(request)
            value, kind = self._perform(request, args, kwargs), "value"
        except PeerGone:
            raise
        except StopIteration:
            value, kind = None, "stop"
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            flush()
            self.peer.send(dict(describe(error), kind="left"))
            raise
        except Exception as error:
            self.last_traceback = "".join(traceback.format_exception(type(error), error, own_traceback(error.__traceback__)))
            value, kind = error, "raised"
        flush()
        try:
            self.peer.send(self._reply(kind, value, known, request["table"]))
        except (TooLarge, NotPlain) as error:
            self.peer.send(self._reply("raised", error, [], []))

    def _reply(self, kind, value, known, before):
        encoder = Encoder(self._foreign, self._shared, known)
        reply = {"kind": kind}
        if kind == "raised":
            reply.update(describe(value), names=[c.__name__ for c in type(value).__mro__])
            reply["args"] = _encode_args(encoder, value)
        elif kind == "value":
            reply["root"] = encoder.value(value)
        # Sends back only those arguments whose contents have changed.
        contents = [(number, encoder.content(item)) for number, item in enumerate(known)]
        reply["changed"] = [[n, content] for n, content in contents if content != before[n]]
        reply["table"] = encoder.table()
        return reply

    def _perform(self, request, args, kwargs):
        op = request["op"]
        if op == "bye":
            sys.stderr.write(self.last_traceback)
            return None
        if op == "global":
            return self.namespace[args[0]]
        if "name" not in request:
            target = self.handles[request["on"]]
        elif request["name"] in self.namespace:
            target = self.namespace[request["name"]]
        else:
            raise NameError("the answer defines no %s" % request["name"])
        return _OPERATIONS[op](target, *args, **kwargs)

    def ask(self, message, args, kwargs):
        """Has the checker call one of its own functions. Meanwhile serves the checker's requests."""
        reply = self.peer.ask(Encoder(self._foreign, self._shared).request(args, kwargs, **message), self.answer)
        decoder = Decoder(self._resolve, self._class_of, reply["table"])
        if reply["kind"] == "value":
            return decoder.value(reply["root"])
        if reply["kind"] == "stop":
            raise StopIteration
        raise _builtin_exception(reply["type"])(reply["message"])

    def _resolve(self, tag, body):
        if tag == "h":
            return self.handles[body[1]]
        if tag == "g":
            return self.namespace[body[1]]
        if tag == "C":
            return self._class_of(body[1])
        if tag == "cb":
            return self.callbacks.setdefault(body[1], Callback(self, body[1]))
        if tag == "it":
            # This iterator ends when the call raises StopIteration.
            return iter(Callback(self, body[1]), object())
        raise ValueError("unknown tag %r" % tag)

    def _class_of(self, name):
        """The class of this name in the setup or the answer. For a class that only the tests define: an empty class of this name."""
        kind = self.namespace.get(name)
        if isinstance(kind, type):
            return kind
        self.shared_names.add(name)
        return self.made.setdefault(name, type(name, (), {"__module__": "solution"}))

    def _shared(self, kind):
        known = kind.__module__ == "solution" and kind.__name__ in self.shared_names
        return kind.__name__ if known else None

    def _foreign(self, value):
        if isinstance(value, Callback):
            return ["cb", value._number]
        number = self.numbers.get(id(value))
        if number is None:
            number = len(self.handles)
            self.handles.append(value)
            self.numbers[id(value)] = number
        if isinstance(value, (type, types.ModuleType)):
            bases = getattr(value, "__mro__", [value])
            return ["K", number, getattr(value, "__module__", None), [base.__name__ for base in bases]]
        return ["h", number, self._kind(value)]

    def _kind(self, value):
        """The kind of stand-in (see stub.py) that the checker gets for this value. Raises NotPlain."""
        kind = type(value)
        if callable(value) and kind.__module__ in ("builtins", "functools"):
            return "function"
        if hasattr(kind, "__next__"):
            return "iterator"
        if self.lives:
            return "object"
        raise NotPlain("the answer gave a %s, which is not plain data; no class of the answer is named in the tests" % kind.__name__)


def _encode_args(encoder, error):
    try:
        return encoder.values(error.args)
    except Exception:
        return [str(error)]


def _builtin_exception(name):
    kind = getattr(builtins, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError


_OPERATIONS = {
    "call": lambda target, *args, **kwargs: target(*args, **kwargs),
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "getitem": lambda target, key: target[key],
    "setitem": lambda target, key, value: target.__setitem__(key, value),
    "delitem": lambda target, key: target.__delitem__(key),
    "len": len,
    "bool": bool,
    "iter": iter,
    "next": next,
    "str": str,
    "repr": repr,
    "format": format,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "isinstance": lambda target, value: isinstance(value, target),
}
