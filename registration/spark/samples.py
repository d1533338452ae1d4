"""What sampled messages say about patterns: how often they occur, with which values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from formats.errors import DecodeError, MessageRefused
from registration.planning.exclusiveness import Pattern
from registration.planning.pattern_reader import PatternReader
from registration.planning.planner import Values
from registration.spark.archived_message import ARCHIVED, read_archived
from registration.spark.arrow_types import batch_of
from registration.spark.input_files import Rows
from registration.spark.session import Batch, Frame


def read_samples(messages: Frame | Rows, patterns: Sequence[Pattern]) -> tuple[list[Values], int]:
    """The values that each message has at the patterns, and how many messages were refused."""
    rows = messages.select(*ARCHIVED).mapInArrow(_read_values(tuple(patterns)), _VALUES).collect()
    found: dict[int, dict[Pattern, list[str]]] = {}
    refused = 0
    for number, pattern, value in rows:
        if pattern == _REFUSED:
            refused += 1
        elif pattern == _SEEN:
            found.setdefault(number, {})
        else:
            values = found.setdefault(number, {})
            values.setdefault(patterns[pattern], []).append(value)
    return [found[number] for number in sorted(found)], refused


_SEEN, _REFUSED = -1, -2
_VALUES = "message bigint, pattern int, value string"


def _read_values(
    patterns: tuple[Pattern, ...],
) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        task = import_module("pyspark").TaskContext.get()
        reader = PatternReader(patterns)
        number = {pattern: place for place, pattern in enumerate(patterns)}
        message = task.partitionId() << 40 if task else 0  # none in this process
        for batch in batches:
            rows: list[tuple[int, int, str | None]] = []
            for archived in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                message += 1
                try:
                    values = reader.values(read_archived(*archived))
                except (MessageRefused, DecodeError):
                    rows.append((message, _REFUSED, None))
                    continue
                rows.append((message, _SEEN, None))
                for pattern, texts in values.items():
                    rows += [(message, number[pattern], text) for text in texts]
            yield batch_of(_VALUES, list(zip(*rows, strict=True)) or [(), (), ()])

    return run
