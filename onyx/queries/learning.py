"""Rows that a scan will give: as it gave them before, else by the archive's summaries and sample.

A file of metadata has the figures of scans beside their estimates (``q:Observation``): each run
writes it, and the next query reads it.  The seconds of fragments, over those of the cost model, say
how slow their machines are.  An archive that nobody has asked so is estimated by its
summaries, which count messages by source, and by the profile's matches in the sample that each
file has (256 messages; small files are read).  Below 1 % of matches that is an upper bound.
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
from overlay.archive_file import ArchivedMessage, files_of
from registration.queries.providers import NAMESPACE, Relation
from registration.queries.query_plan import Fragment, Scan
from registration.spark.archive_files import ArchiveFiles
from yfilter import Matcher, MatchLimitExceeded, ProfileRefused

Arguments = tuple[tuple[str, str], ...]

SAMPLE = 1024
"""Messages of all files of an archive that a profile is matched with at most."""

READ = 8_192
"""Messages of small files of an archive, which have no sample, that are read for one at most."""

_OBSERVATIONS_MAX = 10_000
_FIGURES = {
    "found": "q:found", "bytes": "q:foundBytes", "seconds": "q:foundSeconds",
    "estimated": "q:estimated", "estimated_bytes": "q:estimatedBytes",
    "estimated_seconds": "q:estimatedSeconds",
}  # fmt: skip
_LINE = re.compile(
    r"\[\] a q:Observation ; q:of <([^>]*)> ; q:arguments (\".*\") ; q:foundAt <([^>]*)> ; "
    + "".join(f"{name} ([0-9.e+-]+) ; " for name in _FIGURES.values())
    + r"q:at (\".*\") \."
)


class Observation(NamedTuple):
    """Of a whole scan: ``found`` rows, ``bytes`` that it read, and ``seconds`` of the fragment that
    it was in, each beside what was estimated, seconds by the cost model alone; these are 0 where
    the fragment has waited for others.  ``relation``: its URI; ``arguments``: JSON of those it was
    read with; ``site``: URI of the cycle provider; ``at``: the time."""

    relation: str
    arguments: str
    site: str
    found: float
    bytes: float
    seconds: float
    estimated: float
    estimated_bytes: float
    estimated_seconds: float
    at: str

    @classmethod
    def of(
        cls, fragment: Fragment, scan: Scan, rows: float, size: float, seconds: float
    ) -> Observation:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        usual = 0.0 if fragment.receives else fragment.estimate.seconds / fragment.site.slowness
        key = scan.relation.uri, _key(scan.arguments), fragment.site.uri
        estimated = scan.estimate.rows, scan.estimate.bytes_read, usual
        return cls(*key, rows, size, seconds, *estimated, at)

    def turtle(self) -> str:
        arguments, at = json.dumps(self.arguments), json.dumps(self.at)
        figures = "".join(f" {name} {getattr(self, f):.6e} ;" for f, name in _FIGURES.items())
        said = f"[] a q:Observation ; q:of <{self.relation}> ; q:arguments {arguments} ;"
        return f"{said} q:foundAt <{self.site}> ;{figures} q:at {at} .\n"


class Estimates:
    """``rows_of`` is a ``RowsOf`` of the optimiser; ``note`` keeps what a run has found.

    ``file``: Turtle, one observation a line, the latest of each scan; None: nothing is kept."""

    def __init__(self, file: Path | None = None) -> None:
        """A file that is none is begun anew with the next note: it only ever saves work."""
        self._file = file
        self._known = {(one.relation, one.arguments): one for one in _read(file)}

    def rows_of(self, relation: Relation, arguments: Arguments) -> float | None:
        known = self._known.get((relation.uri, _key(arguments)))
        if known is None:
            return _archive_rows(relation, arguments) if relation.format == "archive" else None
        folder = Path(relation.location)
        if relation.format == "archive" and known.bytes and folder.exists():
            # An archive grows, and a profile goes on to match as many of its messages.
            return known.found * ArchiveFiles.of(files_of(folder)).bytes / known.bytes
        return known.found

    def bytes_of(self, relation: Relation) -> float | None:
        """That a scan of the whole relation read, whatever its arguments."""
        sizes = (one.bytes for one in self._known.values() if one.relation == relation.uri)
        return max(sizes, default=None)

    def slowness(self, site: str) -> float:
        """Of a cycle provider, by its URI: the seconds of its runs together over those of the cost
        model; of one that nobody has seen at work, as of all others; 1 without any."""
        timed = [one for one in self._known.values() if one.seconds and one.estimated_seconds]
        seen = [one for one in timed if one.site == site] or timed
        if not seen:
            return 1.0
        return sum(one.seconds for one in seen) / sum(one.estimated_seconds for one in seen)

    def note(self, observations: Iterable[Observation]) -> None:
        """Keep figures of whole scans.  UnwritableOutput where the file cannot be written."""
        for one in observations:
            key = one.relation, one.arguments
            self._known.pop(key, None)
            self._known[key] = one
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
            uri, arguments, site, *figures, at = found.groups()
            said = uri, json.loads(arguments), site, *map(float, figures), json.loads(at)
            yield Observation._make(said)


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
    sample = [m for m in files.sample(SAMPLE, 1, READ) or () if not names or m.source in names]
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
