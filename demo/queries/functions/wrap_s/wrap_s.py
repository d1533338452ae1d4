"""wrap_s: rows of an old system's cards: lines ``id: 7`` and ``name: ...``, ``--`` between two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string())])


def wrap(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        cards = [
            dict(line.split(": ", 1) for line in card.strip().splitlines())
            for content in batch.column("content").to_pylist()
            for card in content.decode().split("--\n")
            if card.strip()
        ]
        rows = [{"id": int(card["id"]), "name": card["name"]} for card in cards]
        yield pa.RecordBatch.from_pylist(rows, SCHEMA)
