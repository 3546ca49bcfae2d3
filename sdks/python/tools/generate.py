"""Writes the generated parts of the package: messages from the proto files, and the synchronous client from the asynchronous one.

Usage: python tools/generate.py [FOLDER]; needs grpcio-tools 1.75.1. FOLDER is by default the package's `src`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
PROTO = HERE.parent.parent / "proto"
SYNC = [
    (r"import asyncio\n", ""),
    (r"from grpc import aio\n", ""),
    (r"\baio\.", "grpc."),
    (r"asyncio\.sleep", "time.sleep"),
    (r"async (def|for|with) ", r"\1 "),
    (r"await ", ""),
    (r"AsyncIterator", "Iterator"),
    (r"\bAsync([A-Z])", r"\1"),
    (r"_async\b", "_sync"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r'"""The asynchronous client.*', '"""The synchronous client."""'),
]


def write_messages(target: Path) -> None:
    from grpc_tools import protoc

    files = sorted(str(path) for path in (PROTO / "etude/v1").glob("*.proto"))
    include = Path(protoc.__file__).parent / "_proto"
    if protoc.main(["protoc", f"-I{PROTO}", f"-I{include}", f"--python_out={target}", f"--pyi_out={target}", *files]) != 0:
        raise SystemExit("protoc failed")
    (target / "etude/v1/__init__.py").write_text('"""Messages of the API, generated from the proto files."""\n')


def write_sync(target: Path) -> None:
    folder = target / "etude/_sync"
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((HERE / "src/etude/_async").glob("*.py")):
        text = source.read_text()
        for pattern, replacement in SYNC:
            text = re.sub(pattern, replacement, text)
        (folder / source.name).write_text(f"# Generated from ../_async/{source.name} by tools/generate.py; don't edit.\n{text}")


if __name__ == "__main__":
    to = Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "src")
    to.mkdir(parents=True, exist_ok=True)
    write_messages(to)
    write_sync(to)
