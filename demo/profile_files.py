"""Profiles in files: one profile a file, whose it is said in the comment that it begins with.

::

    (: Ana near Seattle: stock news of San Francisco. :)
    $msg/nitf[head/pubdata[@edition.area = "SF"]]

    # Ben near Houston: feeds about fog.
    ASK { ?post <http://purl.org/dc/elements/1.1/subject> "fog" }

``near CITY`` may be missing: then the profile goes wherever there is room.  The comment is
XQuery's, or SPARQL's, so the whole file is the profile's text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_WHOSE = r"\s*(?P<user>\w+)(?:\s+near\s+(?P<city>[^:]+?))?:\s+"
_HEADERS = {
    ".xq": re.compile(rf"\(:{_WHOSE}(?P<interest>.+?)\s*:\)", re.DOTALL),
    ".rq": re.compile(rf"#{_WHOSE}(?P<interest>[^\n]+)"),
}


class ProfileFileError(Exception):
    """A profile file that is not as this module's docstring says; the text names the file."""


@dataclass(frozen=True, slots=True)
class DemoProfile:
    """A profile and whose it is; ``city`` is the label of a broker nearby, or "" for anywhere."""

    name: str
    user: str
    city: str
    interest: str
    text: str


def load_profiles(directory: Path) -> list[DemoProfile]:
    """All ``*.xq`` and ``*.rq`` of a directory, in the order of their names; ProfileFileError."""
    return [_load(path) for path in sorted(directory.glob("*.?q"))]


def with_header(user: str, city: str, interest: str, body: str) -> str:
    """The text of a profile file."""
    near = f" near {city}" if city else ""
    return f"(: {user}{near}: {interest} :)\n{body}\n"


def _load(path: Path) -> DemoProfile:
    text = path.read_text(encoding="utf-8")
    header = _HEADERS[path.suffix].match(text)
    if header is None:
        expected = "# user near city: interest"
        if path.suffix == ".xq":
            expected = "(: user near city: interest :)"
        raise ProfileFileError(f"{path}: expected '{expected}' at the start")
    interest = " ".join(header["interest"].split())
    return DemoProfile(path.stem, header["user"], header["city"] or "", interest, text)
