"""Modules among the files of a request, as they were given: the ones on disk may have been rewritten by the answer."""
import binascii
import os

# Private, but the only one that needs no further import.
from _frozen_importlib import ModuleSpec

from runner.workspace import WORK


def modules_of(files):
    """What a checker can import: path to content in base64."""
    return {os.path.normpath(file["path"]): file["contentBase64"] for file in files if file["path"].endswith(".py")}


class GivenModules:
    """Finder and loader. A folder is a package, with `__init__.py` or without."""

    def __init__(self, modules):
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        base = name.replace(".", "/")
        is_package = any(known.startswith(base + "/") for known in self.modules)
        file = base + ("/__init__.py" if is_package else ".py")
        if not is_package and file not in self.modules:
            return None
        spec = ModuleSpec(name, self, origin="%s/%s" % (WORK, file), is_package=is_package)
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        file = module.__spec__.origin
        source = binascii.a2b_base64(self.modules.get(file[len(WORK) + 1 :], ""))
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
