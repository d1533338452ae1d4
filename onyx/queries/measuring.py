"""Statistics of relations, and of this machine, as a catalog that counts behind the one measured.

Spark reads each relation once.  Distinct values are approximate (HyperLogLog++, 2 %).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

from overlay.archive_file import files_of
from registration.queries.providers import NAMESPACE, Column, CycleProvider, Relation
from registration.queries.query_plan import Scan
from registration.spark.function_runner import Work
from registration.spark.scans import open_scan
from registration.spark.session import Session

HEAD = f"@prefix q: <{NAMESPACE}> .\n@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
_WIDTHS = {
    "boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "float": 4, "double": 8,
    "date": 4, "timestamp": 8, "timestamp_ntz": 8,
}  # fmt: skip
_LONG = ("string", "binary", "char", "varchar")
_NESTED = re.compile(r"array|map|struct|variant")
_SHOWN_MAX = 100  # characters of a least or greatest value
_MEGAHERTZ = re.compile(r"^cpu MHz\s*:\s*([0-9.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Measurement:
    """``refreshed``: when the newest of its files was written, None where it has none."""

    relation: Relation
    rows: float
    bytes: float
    refreshed: datetime | None
    columns: tuple[Column, ...]

    def turtle(self) -> str:
        lines = [f"<{self.relation.uri}> q:rows {self.rows:.0f} ; q:bytes {self.bytes:.0f}"]
        if self.refreshed is not None:
            at = self.refreshed.isoformat(timespec="seconds")
            lines.append(f'    q:refreshed "{at}"^^xsd:dateTime')
        lines += [f"    q:column [ {' ; '.join(_said(each))} ]" for each in self.columns]
        return " ;\n".join(lines) + " .\n"


def _said(column: Column) -> Iterator[str]:
    for field in fields(Column):
        value = getattr(column, field.name)
        if isinstance(value, str) and field.name != "type":
            yield f"q:{field.name} {json.dumps(value)}"
        elif isinstance(value, float):
            yield f"q:{field.name} {value:.6g}"


def measured(session: Session, relation: Relation, wrapper: Work | None = None) -> Measurement:
    """``wrapper``: of a relation that has one.  Raises as Spark does where it cannot be read."""
    scan = Scan("measured", relation, ())
    frame = open_scan(session, scan, wrapper).frame
    functions = import_module("pyspark.sql.functions")
    asked = [functions.count(functions.lit(1))]
    for column in relation.columns:
        asked += [functions.expr(text) for text in _figures(column)]
    (rows, *found) = frame.agg(*asked).first()
    width = len(_figures(relation.columns[0])) if relation.columns else 1
    parts = [found[at : at + width] for at in range(0, len(found), width)]
    columns = zip(relation.columns, parts, strict=True)
    files = [Path(unquote(urlsplit(name).path)) for name in frame.inputFiles()]
    if relation.format == "archive" and relation.location:
        files = files_of(Path(relation.location))
    found_files = [file.stat() for file in files if file.exists()]
    written = max((each.st_mtime for each in found_files), default=None)
    return Measurement(
        relation,
        float(rows),
        float(sum(each.st_size for each in found_files) or round(relation.bytes or 0)),
        None if written is None else datetime.fromtimestamp(written, UTC),
        tuple(_column(each, rows, part) for each, part in columns),
    )


def _figures(column: Column) -> tuple[str, str, str, str, str]:
    """Values, distinct values, the least, the greatest and the mean width, as Spark's SQL."""
    name = "`" + column.name.replace("`", "``") + "`"
    width = str(_WIDTHS.get(column.type, 16))
    if column.type.startswith(_LONG):
        width = f"avg(octet_length({name}))"
    if _NESTED.match(column.type):
        return f"count({name})", "NULL", "NULL", "NULL", f"avg(octet_length(to_json({name})))"
    ends = [f"CAST({end}({name}) AS STRING)" for end in ("min", "max")]
    if column.type == "binary":
        ends = ["NULL", "NULL"]
    return f"count({name})", f"approx_count_distinct({name}, 0.02)", ends[0], ends[1], width


def _column(column: Column, rows: int, found: list[object]) -> Column:
    values, distinct, low, high, width = found
    return Column(
        column.name,
        column.type,
        None if distinct is None else min(float(str(distinct)), float(str(values))),
        _text(low),
        _text(high),
        1 - float(str(values)) / rows if rows else None,
        _number(width),
    )


def _number(found: object) -> float | None:
    return None if found is None else float(str(found))


def _text(found: object) -> str | None:
    return str(found) if found is not None and len(str(found)) <= _SHOWN_MAX else None


def machine_turtle(of: CycleProvider, proc: Path = Path("/proc")) -> str:
    """This machine as that of a cycle provider: memory that is there, MHz where it is said."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20
    found: Mapping[str, float] = {"memory": memory, "cores": os.cpu_count() or 1}
    info = proc / "cpuinfo"
    if info.is_file() and (said := _MEGAHERTZ.search(info.read_text())):
        found = {**found, "cpu": float(said[1])}
    figures = " ; ".join(f"q:{name} {figure:.0f}" for name, figure in found.items())
    return f"<{of.uri}> q:serverInformation [ a q:ServerInformation ; {figures} ] .\n"
