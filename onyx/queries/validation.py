"""Validation of functions (seed 001, 2.4): generated and given data against a reference.

A validator runs a function in its sandbox over values of its types with their edges, over samples,
and over many rows; compares with a reference implementation or an SQL expression; holds the
function to its cost model; and signs a report, which a catalog gives as the function's certificate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, isnan, nan
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from onyx.errors import NotAuthenticated
from onyx.identity.signing import SignatureCheck, Signed, Signer
from onyx.queries.functions import COST_MODEL, FunctionArchive, digest_of
from overlay.link.principal import Principal
from registration.queries.providers import NAMESPACE, Function
from registration.queries.refusals import QueryRefused
from registration.queries.stopped import QueryStopped
from registration.spark.arrow_types import arrow_schema
from registration.spark.function_runner import FunctionRunner, Used

Reference = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]
"""Batches of the inputs to batches of the outputs, trusted by the validator."""

ROWS, LOAD_ROWS, BATCH_ROWS = 500, 20_000, 500
_DIFFERENCES_SHOWN = 5
_NULLS = 0.1
_ITEMS_MAX = 3
_TEXTS = (
    *("", " ", "a", "\x00", "ß", "e\u0301", "\U0001f600", "<a>&amp;</a>", "null", "-1"),
    "x" * 5_000,
)
_DOUBLES = (0.0, -0.0, 1.0, -1.0, 0.1, 1e308, 5e-324, inf, -inf, nan)
_DAYS = (date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29))


@dataclass(frozen=True, slots=True)
class Report:
    """``problems``: sentences, none where the function passed."""

    archive: FunctionArchive
    function: Function
    reference: str
    rows: int
    seed: int
    used: Used | None
    problems: tuple[str, ...]

    def claims(self, at: datetime) -> dict[str, Any]:
        claims = {
            "digest": self.archive.digest,
            "signature": self.archive.signature,
            **_model(self.function),
            "reference": self.reference,
            "rows": self.rows,
            "seed": self.seed,
            "passed": not self.problems,
            "problems": list(self.problems),
            "at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return claims if self.used is None else claims | {"measured": self.used._asdict()}


def _model(function: Function) -> dict[str, float | None]:
    """The cost model that a report is about."""
    return {name: getattr(function, name) for name in COST_MODEL if name != "price_per_row"}


class SignedReport(NamedTuple):
    """``text``: JSON of claims and signature, the value of ``q:report`` in a catalog."""

    text: str

    @classmethod
    def make(cls, report: Report, signer: Signer) -> SignedReport:
        return cls(Signed.of(report.claims(datetime.now(UTC)), signer).text())

    @property
    def uri(self) -> str:
        return f"urn:onyx:report:{digest_of(self.text.encode()).partition(':')[2]}"

    def turtle(self) -> str:
        """A document of a catalog; the function's ``q:certificate`` is this ``uri``."""
        literal = json.dumps(self.text, ensure_ascii=True)
        said = f"<{self.uri}> a q:ValidationReport ; q:report {literal} ."
        return f"@prefix q: <{NAMESPACE}> .\n\n{said}\n"

    def check(self, function: Function, by: SignatureCheck | None) -> Principal | None:
        """The validator.  QueryRefused ``not-certified`` where the report is of another function or
        cost model, says that the function failed, or is not signed as ``by`` wants it, None: as
        anybody may have."""
        try:
            signed = Signed.read(self.text)
            claims, signer = signed.claims, signed.signer(by) if by is not None else None
        except NotAuthenticated as error:
            raise _not_certified(function, f"its report is not signed: {error}") from None
        if claims.get("digest") != function.digest:
            raise _not_certified(function, f"its report is of {claims.get('digest')}")
        if claims.get("passed") is not True:
            raise _not_certified(
                function, f"its report says: {'; '.join(map(str, claims.get('problems', ())))}"
            )
        for field, model in _model(function).items():
            if (said := claims.get(field)) != model:
                reason = f"{field} is {model}, the report is about {said}"
                raise _not_certified(function, reason)
        return signer


def _not_certified(function: Function, reason: str) -> QueryRefused:
    return QueryRefused(
        "not-certified", f"{function.name}: {reason}", function.certificate or function.uri
    )


def validate(
    archive: FunctionArchive,
    function: Function,
    reference: Reference | None,
    *,
    said: str = "",
    samples: Sequence[pa.RecordBatch] = (),
    rows: int = ROWS,
    load_rows: int = LOAD_ROWS,
    seed: int = 1,
    weak: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run the function over ``rows`` generated rows and the ``samples``; then over ``load_rows``
    rows of the same for its cost model.  ``said``: the reference, as the report names it."""
    schema = arrow_schema(archive.inputs)
    given = [*generated(schema, rows, Random(seed)), *samples]
    problems: list[str] = []
    used = None
    try:
        with FunctionRunner(archive.work(function, weak=weak)) as runner:
            progress(f"{sum(b.num_rows for b in given):,} rows are compared")
            made = _rows(runner.run(given))
            if reference is not None:
                problems += _differences(given, made, _rows(reference(given)), archive.kind)
        with FunctionRunner(archive.work(function, weak=weak)) as runner:
            progress(f"{load_rows:,} rows are run for the cost model")
            for _ in runner.run(_load(given, load_rows)):
                pass
            used = runner.used()
            problems += _over_model(function, used)
    except QueryStopped as error:
        problems.append(f"[{error.code}] {error.reason}")
    count = sum(batch.num_rows for batch in given)
    return Report(archive, function, said, count, seed, used, tuple(problems))


def _load(given: Sequence[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    done = 0
    while given and done < rows:
        for batch in given:
            done += batch.num_rows
            yield batch
        if not done:
            return


def _rows(batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def _differences(
    given: Sequence[pa.RecordBatch],
    made: Sequence[tuple[Any, ...]],
    expected: Sequence[tuple[Any, ...]],
    kind: str,
) -> Iterator[str]:
    if len(made) != len(expected):
        yield f"{len(made)} rows came back, the reference gives {len(expected)}"
        return
    wrong = [n for n, pair in enumerate(zip(made, expected, strict=True)) if not _same(*pair)]
    inputs = _rows(given) if kind == "scalar" else None
    for n in wrong[:_DIFFERENCES_SHOWN]:
        of = "" if inputs is None else f" of {_short(inputs[n])}"
        yield f"row {n}{of}: {_short(made[n])}, the reference gives {_short(expected[n])}"
    if len(wrong) > _DIFFERENCES_SHOWN:
        yield f"{len(wrong)} rows differ in all"


def _same(one: Any, other: Any) -> bool:
    """Equal by value and type; not-a-number equals itself, and the zeros differ."""
    if isinstance(one, float) and isinstance(other, float):
        return (isnan(one) and isnan(other)) or (one == other and str(one) == str(other))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    return type(one) is type(other) and bool(one == other)


def _short(value: object) -> str:
    text = repr(value[0] if isinstance(value, tuple) and len(value) == 1 else value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _over_model(function: Function, used: Used) -> Iterator[str]:
    rows = max(used.rows, 1.0)
    measured = {
        "seconds_per_row": used.seconds / rows,
        "bytes_per_row": used.bytes_made / max(used.rows_made, 1.0),
        "megabytes": used.megabytes,
    }
    for field, found in measured.items():
        model = getattr(function, field)
        if model is not None and found > model:
            yield f"{field}: {found:.3g} measured, the cost model says {model:.3g}"


# --- generated data -------------------------------------------------------------------------------


def generated(schema: pa.Schema, rows: int, random: Random) -> Iterator[pa.RecordBatch]:
    """Batches of values of the schema's types: edges, random ones, nulls."""
    for first in range(0, rows, BATCH_ROWS):
        count = min(BATCH_ROWS, rows - first)
        columns = [
            pa.array([_value(field.type, random) for _ in range(count)], field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _value(of: pa.DataType, random: Random) -> Any:
    if random.random() < _NULLS:
        return None
    for holds, make in _MAKERS.items():
        if holds(of):
            return make(of, random)
    raise QueryRefused("syntax", f"no values are generated of {of}")


def _decimal(of: pa.DataType, random: Random) -> Decimal:
    most = 10**of.precision - 1
    number = random.choice((0, 1, -1, most, -most, random.randint(-most, most)))
    return Decimal(number).scaleb(-of.scale)


def _integer(of: pa.DataType, random: Random) -> int:
    most = (1 << (of.bit_width - 1)) - 1
    return random.choice((0, 1, -1, most, -most - 1, random.randint(-99, 99)))


def _double(of: pa.DataType, random: Random) -> float:
    value = random.choice((*_DOUBLES, random.uniform(-1e6, 1e6)))
    return value if of.bit_width == 64 or isnan(value) or abs(value) < 1e30 else inf


def _text(_: pa.DataType, random: Random) -> str:
    letters = "".join(random.choices("abc XYZ09äß\n", k=random.randint(0, 40)))
    return random.choice((*_TEXTS, letters, letters, letters))


def _bytes(of: pa.DataType, random: Random) -> bytes:
    return random.choice((b"", b"\x00", random.randbytes(64), _text(of, random).encode()))


def _day(_: pa.DataType, random: Random) -> date:
    return random.choice((*_DAYS, date.fromordinal(random.randint(700_000, 750_000))))


def _time(of: pa.DataType, random: Random) -> datetime:
    since = timedelta(seconds=random.randint(-(10**9), 4 * 10**9))
    return datetime(1970, 1, 1, tzinfo=UTC if of.tz else None) + since


def _struct(of: pa.DataType, random: Random) -> dict[str, Any]:
    return {part.name: _value(part.type, random) for part in of}


def _list(of: pa.DataType, random: Random) -> list[Any]:
    return [_value(of.value_type, random) for _ in range(random.randint(0, _ITEMS_MAX))]


def _map(of: pa.DataType, random: Random) -> list[tuple[Any, Any]]:
    keys = (_value(of.key_type, random) for _ in range(random.randint(0, _ITEMS_MAX)))
    return [(key, _value(of.item_type, random)) for key in dict.fromkeys(keys) if key is not None]


_MAKERS: Mapping[Callable[[pa.DataType], bool], Callable[[pa.DataType, Random], Any]] = {
    pa.types.is_boolean: lambda _, random: random.random() < 0.5,
    pa.types.is_integer: _integer, pa.types.is_floating: _double, pa.types.is_string: _text,
    pa.types.is_binary: _bytes, pa.types.is_date: _day, pa.types.is_timestamp: _time,
    pa.types.is_decimal: _decimal, pa.types.is_struct: _struct, pa.types.is_map: _map,
    pa.types.is_list: _list,
}  # fmt: skip


# --- references -----------------------------------------------------------------------------------


def by_python(function: Callable[..., Any], archive: FunctionArchive) -> Reference:
    """A trusted implementation of the same form as the function itself, in this process."""
    made = arrow_schema(archive.outputs)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if archive.kind == "table":
            yield from function(iter(batches))
            return
        for batch in batches:
            column = function(*batch.columns)
            yield pa.RecordBatch.from_arrays([column.cast(made.field(0).type)], schema=made)

    return run


def by_sql(expression: str, archive: FunctionArchive, spark: Any) -> Reference:
    """An SQL expression over the names of the inputs, evaluated by a session of Spark."""
    if archive.kind != "scalar":
        raise QueryRefused("syntax", "an SQL expression is the reference of scalar functions alone")
    names, made = [name for name, _ in archive.inputs], arrow_schema(archive.outputs)
    ordinal = "_ordinal"

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(batches)
        numbered = table.append_column(ordinal, pa.array(range(table.num_rows), pa.int64()))
        frame = spark.createDataFrame(numbered).toDF(*names, ordinal)
        rows = frame.selectExpr(ordinal, f"({expression}) AS value").orderBy(ordinal).toArrow()
        column = rows.column("value").combine_chunks().cast(made.field(0).type)
        yield pa.RecordBatch.from_arrays([column], schema=made)

    return run
