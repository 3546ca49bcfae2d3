"""Builds and loads a file with the compiled runner, so that a sandbox parses no source when it starts."""
import marshal
import os
import sys

# This module is private, but the public `importlib.machinery` would import further modules.
from _frozen_importlib import ModuleSpec


class BundleFinder:
    """Finds the modules of the runner in a dict from name to code object."""

    def __init__(self, codes):
        self.codes = codes

    def find_spec(self, name, path=None, target=None):
        if name not in self.codes:
            return None
        return ModuleSpec(name, self, origin="<%s>" % name, is_package=name == "runner")

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.codes[module.__spec__.name], module.__dict__)


def install(path):
    with open(path, "rb") as file:
        sys.meta_path.insert(0, BundleFinder(marshal.load(file)))


def build(folder):
    """The runner in `folder`, compiled for this version of Python."""
    codes = {}
    for entry in sorted(os.listdir(folder)):
        name = entry[:-3]
        if not entry.endswith(".py") or name == "probe":
            continue
        with open(os.path.join(folder, entry), encoding="utf-8") as file:
            module = "runner" if name == "__init__" else "runner." + name
            codes[module] = compile(file.read(), "<%s>" % module, "exec", dont_inherit=True)
    return marshal.dumps(codes)
