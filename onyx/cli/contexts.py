"""Contexts: networks that a user goes to by a name, each with who they are there.

One file of the account, ``onyx/contexts.json`` in ``$XDG_CONFIG_HOME``, else in ``~/.config``::

    {"used": "prod", "contexts": {"prod": {"registration": "10.0.0.1:7200", "credentials": "/…"}}}

What a command line or the environment says goes first: a context is for when they say nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct, field

from onyx.data_directory import write_atomically
from onyx.errors import UnreadableInput, UnwritableOutput, UsageError
from onyx.identity.known_networks import VARIABLE as CREDENTIALS
from overlay.unfit import did_you_mean


class Context(Struct, frozen=True):
    """``registration``: "host:port", or several; ``credentials`` a file, "": what this account
    knows."""

    registration: str
    credentials: str = ""

    @property
    def credentials_file(self) -> Path | None:
        """None where there is none, or the environment says another."""
        is_said = bool(os.environ.get(CREDENTIALS))
        return Path(self.credentials) if self.credentials and not is_said else None


NO_CONTEXT = Context("")


class Contexts(Struct):
    """``used`` is the name of one, "" if none is."""

    used: str = ""
    by_name: dict[str, Context] = field(name="contexts", default_factory=dict)

    def named(self, name: str) -> Context:
        """UsageError when there is none."""
        if name not in self.by_name:
            hint = did_you_mean(name, self.by_name)
            raise UsageError(f"there is no context {name}{hint}; onyx context list has them")
        return self.by_name[name]


def contexts_file() -> Path:
    """RuntimeError when the account has no home."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config else Path.home() / ".config") / "onyx" / "contexts.json"


def read_contexts() -> Contexts:
    """None at all where there is no file; UnreadableInput where it says something else."""
    try:
        file = contexts_file()
        return msgspec.json.decode(file.read_bytes(), type=Contexts)
    except (FileNotFoundError, NotADirectoryError, RuntimeError):
        return Contexts()
    except (OSError, ValueError) as error:
        raise UnreadableInput(
            f"{file} cannot be read ({type(error).__name__}: {error}); remove it, and add the "
            "contexts again"
        ) from None


def write_contexts(contexts: Contexts) -> None:
    """UnwritableOutput."""
    text = msgspec.json.format(msgspec.json.encode(contexts, order="deterministic"), indent=1)
    try:
        file = contexts_file()
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(file, text, mode=0o600)
    except (OSError, RuntimeError) as error:
        raise UnwritableOutput(f"the contexts cannot be written: {error}") from None
