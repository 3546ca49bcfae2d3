"""The address of the gateway and the key of the caller."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc

Key = str | Callable[[], str]
"""An API key or a JWT, or a function that returns one and is called before each call."""


@dataclass(frozen=True)
class Tls:
    """Settings of TLS: paths of PEM files. Without `ca_file`, the well-known authorities are trusted."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        ca, key, cert = (None if path is None else Path(path).read_bytes() for path in (self.ca_file, self.key_file, self.cert_file))
        return grpc.ssl_channel_credentials(ca, key, cert)


def _home() -> Path | None:
    """The folder of a local stack: ETUDE_HOME, or ".etude" here or in a parent folder. None without such a folder."""
    given = os.environ.get("ETUDE_HOME")
    if given:
        return Path(given)
    here = Path.cwd()
    return next((one / ".etude" for one in (here, *here.parents) if (one / ".etude" / "ports.json").exists()), None)


def find_address(given: str | None) -> str:
    """The gateway's "host:port": the given address, else ETUDE_ADDRESS, else the local stack's address."""
    address = given or os.environ.get("ETUDE_ADDRESS")
    if address:
        return address
    home = _home()
    if home is None or not (home / "ports.json").exists():
        raise ValueError("no gateway: pass address, set ETUDE_ADDRESS, or start a local stack with ./etude up --detach")
    return f"127.0.0.1:{json.loads((home / 'ports.json').read_text())['grpc']}"


def is_local(given: str | None) -> bool:
    """Whether the client uses the local stack: neither `given` nor ETUDE_ADDRESS names another gateway."""
    return not given and not os.environ.get("ETUDE_ADDRESS")


def find_key(given: Key | None, *, local: bool) -> Key:
    """The given key, else ETUDE_API_KEY, else the local stack's key if the client uses that stack; "" without a key."""
    key = given or os.environ.get("ETUDE_API_KEY")
    if key:
        return key
    home = _home() if local else None
    return (home / "key").read_text().strip() if home is not None and (home / "key").exists() else ""


def metadata_of(key: Key) -> tuple[tuple[str, str], ...]:
    text = key if isinstance(key, str) else key()
    return (("authorization", f"Bearer {text}"),) if text else ()
