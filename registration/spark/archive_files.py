"""Archives that brokers have written, as a frame, with what their summaries tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from importlib import import_module
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

from overlay.archive_file import (
    ArchivedMessage,
    Gap,
    Member,
    Span,
    Summary,
    add_spans,
    rank_of,
    rows_of_file,
    summary_of,
    unnoted,
)
from registration.spark.archived_message import ARCHIVED
from registration.spark.session import Batch, Frame, Session

Slice: TypeAlias = tuple[str, list[Member] | None]
Note: TypeAlias = Callable[[Gap], None]

ARCHIVED_SCHEMA = "name string, message binary, media_type string, accepted bigint"
_SLICE_BYTES = 4 * 1024 * 1024  # of a file, compressed, that a task reads
_BATCH_ROWS = 1024


@dataclass(frozen=True, slots=True)
class ArchiveFiles:
    """Finished files of brokers with their summaries, None of a damaged one and of JSON lines."""

    files: tuple[tuple[Path, Summary | None], ...]

    @classmethod
    def of(cls, paths: Iterable[Path]) -> ArchiveFiles:
        """A broker may remove its oldest file meanwhile."""
        found = []
        for path in paths:
            try:
                with path.open("rb") as file:
                    found.append((path, summary_of(file)))
            except FileNotFoundError:
                continue
        return cls(tuple(found))

    @property
    def spans(self) -> dict[str, Span]:
        """The messages by source, of files with a summary."""
        found: dict[str, Span] = {}
        for _, summary in self.files:
            if summary is not None:
                add_spans(found, summary.sources())
        return found

    @property
    def messages(self) -> int:
        """How many there are, of files with a summary."""
        return sum(span.messages for span in self.spans.values())

    @property
    def bytes(self) -> int:
        """Of all members, compressed; the whole of a file without a summary."""
        return sum(
            path.stat().st_size if summary is None else sum(one.length for one in summary.members)
            for path, summary in self.files
        )

    def within(self, most: float) -> ArchiveFiles:
        """The first files and members with so many bytes at most."""
        found: list[tuple[Path, Summary | None]] = []
        for path, summary in self.files:
            lengths = [path.stat().st_size]
            if summary is not None:
                lengths = [member.length for member in summary.members]
            count = sum(end <= most for end in accumulate(lengths))
            if summary is not None:
                found.append((path, Summary(summary.members[:count], summary.sample)))
            elif count:
                found.append((path, None))
            if count < len(lengths):
                break
            most -= sum(lengths)
        return ArchiveFiles(tuple(found))

    def sample(
        self, most: int, least: int | None = None, read: int = 0, note: Note = unnoted
    ) -> list[ArchivedMessage] | None:
        """At most so many messages, each as likely as any other; None where the summaries have
        less than ``least`` (None: than ``most``).  ``read``: of small files, which have no sample,
        so many messages may be read."""
        ranked: list[tuple[int, ArchivedMessage]] = []
        bound = 1 << 64
        for path, summary in self.files:
            if summary is None or (not summary.sample and summary.messages > read):
                return None
            if not summary.sample:
                read -= summary.messages
                ranked += ((rank_of(r.source, r.number), r) for r in rows_of_file(path, note=note))
                continue
            ranked += summary.sample
            # Messages of a higher rank may be missing.
            bound = min(bound, summary.sample[-1][0])
        known = [one for one in ranked if one[0] <= bound]
        chosen = sorted(known, key=itemgetter(0))[:most]  # a message may be in two files
        return [row for _, row in chosen] if len(chosen) >= (least or most) else None

    def read_sample(self, most: int, note: Note = unnoted) -> list[ArchivedMessage]:
        """The same of all files, read in this process."""
        rows = (row for path, _ in self.files for row in rows_of_file(path, note=note))
        return nsmallest(most, rows, key=lambda row: rank_of(row.source, row.number))

    def slices(self, wanted: Callable[[Mapping[str, Span]], bool] | None = None) -> list[Slice]:
        """Parts of files of about _SLICE_BYTES, of the members that may be ``wanted`` by their
        messages by source."""
        return [part for path, summary in self.files for part in _slices(path, summary, wanted)]

    def frame(self, session: Session, note: Note = unnoted) -> Frame:
        """ARCHIVED of all messages; a task reads some members of one file, and tells ``note`` of
        those that are damaged."""
        slices = self.slices()
        count = max(1, len(slices))
        return session.range(0, count, 1, count).mapInArrow(_reading(slices, note), ARCHIVED_SCHEMA)


def _slices(
    path: Path, summary: Summary | None, wanted: Callable[[Mapping[str, Span]], bool] | None
) -> Iterator[Slice]:
    """Of about _SLICE_BYTES each; the whole of a file without a summary."""
    name = str(path.absolute())
    if summary is None:
        yield name, None
        return
    members: list[Member] = []
    for member in summary.members:
        if wanted is not None and not wanted(member.sources):
            continue
        members.append(member)
        if sum(one.length for one in members) >= _SLICE_BYTES:
            yield name, members
            members = []
    if members:
        yield name, members


def _reading(slices: Sequence[Slice], note: Note) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            for (number,) in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                for name, members in slices[number : number + 1]:
                    yield from batches_of(name, members, note)

    return run


def batches_of(name: str, members: list[Member] | None, note: Note) -> Iterator[Batch]:
    """ARCHIVED of a file, or of some of its members."""
    rows: list[ArchivedMessage] = []
    try:
        for row in rows_of_file(Path(name), members, note):
            rows.append(row)
            if len(rows) == _BATCH_ROWS:
                yield batch_of_rows(rows)
                rows = []
    except FileNotFoundError:  # a broker has removed it meanwhile
        pass
    if rows:
        yield batch_of_rows(rows)


def batch_of_rows(rows: Sequence[ArchivedMessage]) -> Batch:
    """ARCHIVED."""
    arrow = import_module("pyarrow")
    return arrow.RecordBatch.from_arrays(
        [
            arrow.array([row.name for row in rows], arrow.string()),
            arrow.array([row.message for row in rows], arrow.binary()),
            arrow.array([row.media_type or None for row in rows], arrow.string()),
            arrow.array([row.time for row in rows], arrow.int64()),
        ],
        list(ARCHIVED),
    )
