"""Compiles the runner beside this file into one bundle on stdout. Run by the controller with the sandbox's own Python."""
import marshal
import os
import sys


def build(folder):
    codes = {}
    for entry in sorted(os.listdir(folder)):
        name = entry[:-3]
        if not entry.endswith(".py") or name in ("build", "probe"):
            continue
        with open(os.path.join(folder, entry), encoding="utf-8") as file:
            module = "runner" if name == "__init__" else "runner." + name
            codes[module] = compile(file.read(), "<%s>" % module, "exec", dont_inherit=True)
    return marshal.dumps(codes)


if __name__ == "__main__":
    sys.stdout.buffer.write(build(os.path.dirname(os.path.abspath(__file__))))
