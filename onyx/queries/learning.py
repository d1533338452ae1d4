"""Rows that a scan will give: as it gave them before, else by the archive's summaries and sample.

A file of metadata has how many rows scans gave (``q:Observation``); ``note`` writes it, and the
next query reads it.  An archive that nobody has asked so is estimated without reading it:
its summaries count messages by source, and the profile is matched with the sample that each file
of an archive has (256 messages).  Below 1 % of matches that is an upper bound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from formats.errors import DecodeError, MessageRefused
from formats.media_types import media_type_of
from formats.publication import read_publication
from onyx.data_directory import write_atomically
from onyx.errors import file_errors
from overlay.archive_file import ArchivedMessage
from registration.queries.providers import NAMESPACE, Relation
from registration.spark.archive_files import ArchiveFiles, files_of
from yfilter import Matcher, MatchLimitExceeded, ProfileRefused

Arguments = tuple[tuple[str, str], ...]

SAMPLE = 1024
"""Messages of all files of an archive that a profile is matched with at most."""

_OBSERVATIONS_MAX = 10_000
_LINE = re.compile(
    r"\[\] a q:Observation ; q:of <([^>]*)> ; q:arguments (\".*\") ; q:found ([0-9.e+-]+) ; "
    r"q:at (\".*\") \."
)


class Observation(NamedTuple):
    """``relation``: its URI; ``arguments``: JSON of what it was read with."""

    relation: str
    arguments: str
    rows: float
    at: str

    def turtle(self) -> str:
        arguments, at = json.dumps(self.arguments), json.dumps(self.at)
        return (
            f"[] a q:Observation ; q:of <{self.relation}> ; q:arguments {arguments} ;"
            f" q:found {self.rows:.6e} ; q:at {at} .\n"
        )


class Estimates:
    """``rows_of`` is a ``RowsOf`` of the optimiser; ``note`` what a run has found.

    ``file``: Turtle, one observation a line, the latest of each scan; None: nothing is kept."""

    def __init__(self, file: Path | None = None) -> None:
        """A file that is none is begun anew with the next note: it only ever saves work."""
        self._file = file
        self._known = {(one.relation, one.arguments): one for one in _read(file)}

    def rows_of(self, relation: Relation, arguments: Arguments) -> float | None:
        known = self._known.get((relation.uri, _key(arguments)))
        if known is not None:
            return known.rows
        if relation.format == "archive":
            return _archive_rows(relation, arguments)
        return None

    def note(self, relation: Relation, arguments: Arguments, rows: float) -> None:
        """A whole scan gave so many rows.  UnwritableOutput where the file cannot be written."""
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        key = relation.uri, _key(arguments)
        self._known.pop(key, None)
        self._known[key] = Observation(*key, rows, at)
        while len(self._known) > _OBSERVATIONS_MAX:
            del self._known[next(iter(self._known))]
        if self._file is not None:
            lines = "".join(one.turtle() for one in self._known.values())
            with file_errors(self._file):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(
                    self._file, f"@prefix q: <{NAMESPACE}> .\n{lines}".encode(), mode=0o600
                )


def _key(arguments: Arguments) -> str:
    return json.dumps(sorted(arguments))


def _read(file: Path | None) -> Iterable[Observation]:
    if file is None or not file.is_file():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        found = _LINE.fullmatch(line)
        if found:
            yield Observation(found[1], json.loads(found[2]), float(found[3]), json.loads(found[4]))


def _archive_rows(relation: Relation, arguments: Arguments) -> float | None:
    """None where the files are elsewhere, or tell nothing."""
    folder = Path(relation.location)
    if not folder.exists():
        return None
    files = ArchiveFiles.of(files_of(folder))
    said = dict(relation.options) | dict(arguments)
    names = {name.strip() for name in said.get("source", "").split(",")} - {""}
    total = sum(s.messages for source, s in files.spans.items() if not names or source in names)
    profile = said.get("profile")
    if profile is None:
        return float(total)
    sample = [m for m in files.sample(SAMPLE, 1) or () if not names or m.source in names]
    if not sample:
        return None
    try:
        rows = _results(profile, sample)
    except ProfileRefused:
        return None  # the reader of archives says what is wrong with it
    return max(rows, 0.5) / len(sample) * total


def _results(profile: str, sample: Iterable[ArchivedMessage]) -> int:
    matcher = Matcher()
    matcher.add(profile, "profile")
    count = 0
    for row in sample:
        try:
            stream = read_publication(row.message, row.media_type or media_type_of(""))
            stream.accepted = row.time
            count += sum(len(made.results) for made in matcher.deliver(stream))
        except (MessageRefused, DecodeError, MatchLimitExceeded):
            continue
    return count
