"""The checker's side of the connection to the answer: sends requests and checks the replies."""
import builtins
import copy
import importlib
import itertools
import threading

from runner.frames import PeerGone
from runner.outcome import bounded_error
from runner.stub import FunctionStub, IteratorStub, LiveStub, Stub, target_of
from runner.values import Decoder, Encoder

GOODBYE_S = 1


class RemoteError(Exception):
    """An exception of the answer without a matching builtin class."""


class AnswerLine:
    """Sends requests to the answer and checks its replies. Sends nothing more after a malformed reply or the end of the answer."""

    def __init__(self, peer, namespace):
        self.peer = peer
        self.namespace = namespace
        self.setup_classes = {}
        self.exceptions = {}
        self.stubs = {}
        self.local = []
        self.last_raised = None
        # Whether objects of the answer's classes may be passed to the tests, as stand-ins (see stub.py).
        self.lives = False
        # Results of reading operations, such as `len`, since the last change. Each is requested once, so that no object can give two results.
        self.looks = {}
        self.turn = threading.RLock()

    def load(self):
        """Returns the names that the answer defines, and which of them are classes. Raises PeerGone if the answer could not be loaded."""
        message = self.peer.receive()
        failed = message.get("failed")
        if failed is not None:
            self.last_raised = (None, bounded_error(failed) or {})
            self.peer.fail("the answer failed while it was loaded")
        names, classes = message.get("ready"), message.get("classes")
        if type(names) is not list or type(classes) is not list:
            self.peer.fail("it did not send its names")
        return {name for name in names if type(name) is str}, {name for name in classes if type(name) is str}

    def borrow(self, name):
        """The answer's value of a top-level name. This process's own modules and classes replace those of the standard library."""
        value = self.ask("global", {}, (name,), {})
        return importlib.import_module(name) if isinstance(value, Stub) and name in _OWN_MODULES else value

    def ask(self, op, target, args, kwargs):
        """Has the answer perform `op`, and returns the value. Threads of the tests take turns."""
        with self.turn:
            if op in _CHANGES:
                self.looks.clear()
            if op not in _LOOKS:
                return self._ask(op, target, args, kwargs)
            look = (*target.items(), op, repr(args))
            if look not in self.looks:
                self.looks[look] = self._ask(op, target, args, kwargs)
            return self.looks[look]

    def elements(self, target):
        """The elements of an object, each requested once. The check fails if their number differs from a length that the tests have seen."""
        look = (*target.items(), "elements")
        if look not in self.looks:
            self.looks[look], _unused = itertools.tee(self._elements(target))
        return copy.copy(self.looks[look])

    def _elements(self, target):
        count = 0
        for element in self.ask("iter", target, (), {}):
            count += 1
            yield element
        if self.looks.get((*target.items(), "len", "()"), count) != count:
            self.peer.fail("an object had another number of elements than its length")

    def _ask(self, op, target, args, kwargs):
        if self.peer.broken:
            raise PeerGone(self.peer.broken)
        encoder = Encoder(self._foreign, self._shared)
        request = encoder.request(args, kwargs, op=op, lives=self.lives, **target)
        reply = self.peer.ask(request, lambda message: self.peer.send(self._callback(message)))
        return self._take(op, reply, encoder.kept)

    def goodbye(self):
        """Has the answer print the traceback of its last exception. Waits at most GOODBYE_S for each message."""
        try:
            self.peer.socket.settimeout(GOODBYE_S)
            self._ask("bye", {}, (), {})
        except (PeerGone, Exception):
            return

    def _callback(self, message):
        try:
            number = message["id"]
            function = self.local[number] if type(number) is int and number >= 0 else None
            args, kwargs = self._decoder(message["table"], ()).arguments(message)
        except Exception:
            self.peer.fail("it sent a malformed request")
        try:
            value = function(*args, **kwargs)
        except StopIteration:
            return {"kind": "stop", "table": []}
        except PeerGone:
            raise
        except BaseException as error:
            # Includes SystemExit, since no function that the answer calls may end the check.
            return {"kind": "raised", "type": type(error).__name__, "message": str(error)[:4000], "table": []}
        encoder = Encoder(self._foreign, self._shared)
        return {"kind": "value", "root": encoder.value(value), "table": encoder.table()}

    def _take(self, op, reply, sent):
        """The value of a reply. First makes the changes in our arguments that the answer made in its copies of them."""
        kind = reply.get("kind")
        if kind == "left":
            self.last_raised = (None, bounded_error(reply))
            self.peer.fail("it ended itself during a call")
        try:
            decoder = self._decoder(reply["table"], sent)
            for number, content in reply["changed"]:
                if type(number) is not int or not 0 <= number < len(sent) or type(content) is not list:
                    raise ValueError("the answer changed an object that it was not sent")
                decoder.fill(sent[number], content)
            if kind == "value":
                return decoder.value(reply["root"])
            error = self._exception(reply, decoder) if kind == "raised" else None
        except Exception:
            self.peer.fail("it sent a malformed reply")
        if kind == "stop":
            # Only `next` may raise StopIteration. From any other call it would silently end a loop of the tests.
            raise StopIteration if op == "next" else RuntimeError("the answer raised StopIteration")
        if error is None:
            self.peer.fail("it sent a malformed reply")
        self.last_raised = (error, bounded_error(reply))
        raise error

    def _exception(self, reply, decoder):
        kind = self._exception_class(reply["names"])
        try:
            return kind(*decoder.values(reply["args"]))
        except Exception:
            return RemoteError("%(type)s: %(message)s" % bounded_error(reply))

    def _exception_class(self, names):
        """Finds or makes an exception class. `names`: the class of the answer's exception, and then its base classes."""
        if type(names) is not list or not names or not all(type(name) is str for name in names):
            raise ValueError("the exception names no class")
        own = self.setup_classes.get(names[0])
        if isinstance(own, type) and issubclass(own, Exception):
            return own
        for name in names:
            base = getattr(builtins, name, None)
            if isinstance(base, type) and issubclass(base, Exception) and not issubclass(base, (StopIteration, StopAsyncIteration)):
                if name == names[0]:
                    return base
                return self.exceptions.setdefault(names[0], type(names[0], (base,), {}))
        return RemoteError

    def _decoder(self, table, known):
        return Decoder(self._resolve, self.setup_classes.get, table, known, own_code_wins=True)

    def _resolve(self, tag, body):
        if tag == "h" and type(body[1]) is int:
            if body[2] not in _STUBS or (body[2] == "object" and not self.lives):
                self.peer.fail("it sent an object that is not plain data")
            return self.stubs.setdefault(body[1], _STUBS[body[2]](self, {"on": body[1]}))
        if tag == "K":
            return self._resolve_class(*body[1:])
        if tag == "cb" and type(body[1]) is int and body[1] >= 0:
            return self.local[body[1]]
        raise ValueError("unknown tag %r" % (tag,))

    def _resolve_class(self, number, module, names):
        """This process's own class or module in place of the answer's, or else a stand-in. For modules, `module` is None."""
        if module is None and names[0] in _OWN_MODULES:
            return importlib.import_module(names[0])
        if names[0] in _OWN_CLASSES.get(module, ()):
            return getattr(importlib.import_module(module), names[0])
        if module == "solution" and names[0] in self.setup_classes:
            return self.setup_classes[names[0]]
        if "Exception" in names:
            return self._exception_class(names)
        return self._resolve("h", ["h", number, "name"])

    def _foreign(self, value):
        if isinstance(value, Stub):
            target = target_of(value)
            return ["h", target["on"]] if "on" in target else ["g", target["name"]]
        if isinstance(value, type) and self.setup_classes.get(value.__name__) is value:
            return ["C", value.__name__]
        if hasattr(value, "__next__"):
            return ["it", self._keep(value.__next__)]
        if callable(value):
            return ["cb", self._keep(value)]
        raise TypeError("a value of type %s can't be passed to the answer" % type(value).__name__)

    def _keep(self, value):
        for number, known in enumerate(self.local):
            if known is value:
                return number
        self.local.append(value)
        return len(self.local) - 1

    def _shared(self, kind):
        """The name of a class of setup or tests, whose instances are sent by value. None for any other class."""
        if self.namespace.get(kind.__name__) is kind and kind.__module__ == self.namespace.get("__name__"):
            return kind.__name__
        return None

    def remember_setup_classes(self):
        """Remembers the classes of the setup. The answer has these classes, too, so it may send instances of them by value."""
        for name, kind in self.namespace.items():
            if isinstance(kind, type) and self._shared(kind) == name:
                self.setup_classes[name] = kind


_STUBS = {"name": Stub, "function": FunctionStub, "iterator": IteratorStub, "object": LiveStub}
# Operations that may change an object, and reading operations, whose results must stay the same until such a change.
_CHANGES = frozenset(("call", "setattr", "delattr", "setitem", "delitem"))
_LOOKS = frozenset(("len", "bool", "str", "repr", "format", "getattr", "getitem", "isinstance"))
_OWN_MODULES = frozenset(("math", "cmath", "itertools", "functools", "collections", "random", "re", "string", "operator", "heapq", "bisect", "copy", "json", "datetime", "decimal", "fractions", "statistics"))
_OWN_CLASSES = {
    "collections": frozenset(("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple")),
    "decimal": frozenset(("Decimal",)),
    "fractions": frozenset(("Fraction",)),
    "datetime": frozenset(("datetime", "date", "time", "timedelta")),
}
