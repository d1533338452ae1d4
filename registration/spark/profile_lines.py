"""A file with a profile a line, as all commands read it: of text, or of objects (``KEYS_HELP``)."""

from __future__ import annotations

import gzip
import sys
import zlib
from pathlib import Path
from typing import Annotated

import msgspec

from overlay.settings import Degrees, ProfileSettings
from overlay.unfit import in_words
from registration.spark.session import UnreadableData

KEYS_HELP = """\
A file named .jsonl has a JSON object a line, as onyx profile export writes, with the keys

  text                  the profile
  profile               its id, which update and remove need
  user, location, near  as the options of onyx profile add
  host                  where it was, which no command reads
  load                  how much it counts in a plan (default: 1)

A line with another key or a wrong value is told with its number. A file with a text or
an id a line has no keys. The name of a packed file ends in .gz."""

OBJECT_SUFFIXES = (".jsonl", ".json")


class ProfileLine(ProfileSettings, msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of ``.jsonl``; text and id are "" where they are missing and nobody needs them."""

    text: str = ""
    profile: str = ""
    user: str | None = None
    location: Degrees | None = None
    host: str = ""
    load: Annotated[float, msgspec.Meta(ge=0)] = 1.0


def has_objects(name: str) -> bool:
    """Whether it is a file of objects by its name."""
    return name.removesuffix(".gz").endswith(OBJECT_SUFFIXES)


def unpacked(name: str) -> str:
    """The text of a file, or of standard input ("-"); UnreadableData."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return (gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8-sig")
    except FileNotFoundError:
        raise UnreadableData(f"{name}: there is no such file or directory") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise UnreadableData(f"{name}: cannot be read: {error}") from None


def numbered(name: str) -> list[tuple[int, str]]:
    """The lines of a file that are not empty, counted from 1; UnreadableData."""
    lines = enumerate(unpacked(name).split("\n"), 1)
    return [(number, line) for number, line in lines if line.strip()]


def read_object(line: str, *needed: str) -> ProfileLine:
    """An object with the keys that are ``needed``; ValueError says the fault in words.  A key with
    null is one that is missing."""
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise ValueError(f"this is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("expected an object, as onyx profile export writes")
    said = {key: value for key, value in found.items() if value is not None}
    try:
        made = msgspec.convert(said, ProfileLine)
    except msgspec.ValidationError as error:
        fault = in_words(ProfileLine, error, said)
        hint = "; expected [latitude, longitude]" if fault.where.startswith("location") else ""
        raise ValueError(fault.reason + hint) from None
    for key in needed:
        if key not in said:
            raise ValueError(f"{key!r} is not given")
    return made
