"""Files of results are whole or not there, and hold what pyarrow reads of them."""

from __future__ import annotations

import csv
import json
from base64 import b64decode
from datetime import UTC, datetime
from decimal import Decimal
from math import inf
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onyx.errors import UnwritableOutput, UsageError
from onyx.queries.result_files import SUFFIXES, result_file

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
TABLE = pa.table(
    {
        "n": pa.array([1, None], pa.int64()),
        "x": pa.array([0.5, inf], pa.float64()),
        "t": pa.array(['ä, "b"\n', ""], pa.string()),
        "b": pa.array([b"\x00\xff", b""], pa.binary()),
        "d": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "w": pa.array([NOON, None], pa.timestamp("us", tz="UTC")),
        "l": pa.array([[{"k": "a"}], []], pa.list_(pa.struct([("k", pa.string())]))),
    }
)


def written(file: Path) -> Path:
    with result_file(file, TABLE.schema) as write:
        for batch in TABLE.to_batches(max_chunksize=1):
            write(batch)
    return file


def test_parquet_and_arrow_hold_the_table(tmp_path: Path) -> None:
    assert pq.read_table(written(tmp_path / "rows.parquet")).equals(TABLE)
    with pa.ipc.open_file(written(tmp_path / "rows.arrow")) as file:
        assert file.read_all().equals(TABLE)


def test_json_lines_and_csv_say_each_value_as_text(tmp_path: Path) -> None:
    lines = written(tmp_path / "rows.jsonl").read_text().splitlines()
    first, second = map(json.loads, lines)
    assert (first["n"], first["t"], first["d"], first["l"]) == (1, 'ä, "b"\n', "1.50", [{"k": "a"}])
    assert (b64decode(first["b"]), first["w"]) == (b"\x00\xff", "2026-11-30T12:00:00+00:00")
    assert (second["n"], second["x"], second["l"]) == (None, None, [])
    with written(tmp_path / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["t"], json.loads(rows[0]["l"])) == ('ä, "b"\n', [{"k": "a"}])
    assert b64decode(rows[0]["b"]) == b"\x00\xff"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_not_finished_is_not_there(tmp_path: Path, suffix: str) -> None:
    file = written(tmp_path / f"rows{suffix}")
    before = file.read_bytes()
    with pytest.raises(KeyError), result_file(file, TABLE.schema) as write:
        write(TABLE.to_batches()[0])
        raise KeyError
    assert file.read_bytes() == before, "the file of an earlier run stays as it was"
    assert list(tmp_path.iterdir()) == [file]


def test_other_names_and_places_are_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="expected a name with"),
        result_file(tmp_path / "rows.xml", TABLE.schema),
    ):
        pass
    with pytest.raises(UnwritableOutput), result_file(tmp_path / "no" / "rows.csv", TABLE.schema):
        pass
