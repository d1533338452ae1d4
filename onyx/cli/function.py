"""``onyx function pack | sign | verify | validate``: functions for queries, and trust in them."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from onyx.cli.spark_options import add_spark_arguments, open_spark
from onyx.cli.values import tell_of
from onyx.cli.verb import JSON, Subparsers, add_noun, add_verb
from onyx.errors import EXIT_DATA, UsageError, file_errors

if TYPE_CHECKING:
    from onyx.queries.functions import FunctionArchive
    from registration.queries.providers import Function

DETAILS = """\
A function is an operator of one's own that queries call (onyx query): pure Python over
pyarrow arrays, offered by a function provider, loaded by the machines that execute the
query, and run there in a sandbox. Its folder has function.json:

  {"name": "thumbnail", "kind": "scalar",
   "signature": "(image BINARY) -> BINARY", "entry": "thumbnail:small"}

entry is MODULE:NAME. A scalar function takes an array for each input and gives one array
as long. A table function takes an iterator of record batches and gives record batches;
its signature ends as in "-> (id INT, name STRING)". Types are those of Spark's DDL.

pack makes a zip of it, whose digest a catalog names. sign signs the digest with the cost
model; validate runs the function against a reference and signs a report."""

EXAMPLES = """\
  onyx function pack thumbnail --out thumbnail.zip
  onyx function sign thumbnail.zip --credentials ann.pem --seconds-per-row 1e-4
  onyx function verify thumbnail.zip --credentials ben.pem
  onyx function validate upper.zip --sql "upper(text)" --credentials ann.pem --out upper.ttl
"""

_COST = {
    "--seconds-per-row R": "processor time of a row",
    "--megabytes R": "memory on top of the idle process",
    "--rows-per-row R": "rows that a table function makes of one",
    "--bytes-per-row R": "bytes of a row that it makes",
}
_SIGNATURE = "where the signature is (default: beside the zip, with .sig)"


def add_parser(subparsers: Subparsers) -> None:
    verbs = add_noun(subparsers, "function", details=DETAILS, examples=EXAMPLES)
    takes = {"folder DIR": "with function.json and Python files", "--out FILE!": "the zip to write"}
    add_verb(verbs, "pack", "make the zip of a function", run_pack, takes | JSON)
    takes = {
        "zip FILE": "as pack has made it",
        "--credentials FILE!": "of the signer",
        "--out FILE": _SIGNATURE,
        **_COST,
        "--price-per-row R": "money for a row",
    }
    add_verb(verbs, "sign", "sign a function with its cost model", run_sign, takes | JSON)
    takes = {
        "zip FILE": "as pack has made it",
        "--credentials FILE!": "of anybody in the network: they hold its authority's certificate",
        "--revoked FILE": "serial numbers of revoked certificates, as the authority keeps them",
        "--signature FILE": _SIGNATURE,
    }
    add_verb(verbs, "verify", "say who has signed a function", run_verify, takes | JSON)
    takes = {
        "zip FILE": "as pack has made it",
        "--reference FILE:NAME": "a function of the same form in a Python file, which is trusted",
        "--sql EXPRESSION": "or Spark SQL over the names of the inputs",
        "--samples FILE...": "Parquet files with rows to compare beside the generated ones",
        "--rows N = 500": "so many rows are generated, of the types of the signature",
        "--load-rows N = 20000": "so many are run to measure the cost",
        "--seed N = 1": "of what is generated",
        **_COST,
        "--credentials FILE": "sign the report",
        "--out FILE": "write the signed report, a document for a catalog",
        "--allow-weak-sandbox": "run it where this machine cannot enforce the whole sandbox",
    }
    parser = add_verb(
        *(verbs, "validate", "run a function against a reference", run_validate, takes | JSON),
    )
    add_spark_arguments(parser)


def run_pack(arguments: argparse.Namespace) -> None:
    from onyx.queries.functions import pack, read_archive  # noqa: PLC0415 - pyarrow

    data = pack(arguments.folder)
    with file_errors(arguments.out):
        arguments.out.write_bytes(data)
    archive = read_archive(data)
    facts = {"name": archive.name, "digest": archive.digest, "bytes": len(data)}
    tell_of(arguments, facts, f"{archive.name}{archive.signature}\n{archive.digest}")


def run_sign(arguments: argparse.Namespace) -> None:
    from onyx.identity.signing import Signer  # noqa: PLC0415
    from onyx.queries.functions import COST_MODEL, SignedFunction, read_zip  # noqa: PLC0415

    archive = read_zip(arguments.zip)
    cost = {key: value for key in COST_MODEL if (value := getattr(arguments, key)) is not None}
    signer = Signer(arguments.credentials)
    signed = SignedFunction.make(archive, cost, signer)
    out = arguments.out or Path(f"{arguments.zip}.sig")
    with file_errors(out):
        out.write_text(signed.text(), encoding="utf-8")
    facts = {"name": archive.name, "digest": archive.digest, "signer": str(signer.principal)}
    tell_of(arguments, facts | {"file": str(out)}, f"{out}: signed by {signer.principal}")


def run_verify(arguments: argparse.Namespace) -> None:
    from onyx.identity.signing import SignatureCheck  # noqa: PLC0415
    from onyx.queries.functions import SignedFunction, read_zip  # noqa: PLC0415

    archive = read_zip(arguments.zip)
    file = arguments.signature or Path(f"{arguments.zip}.sig")
    with file_errors(file, "read"):
        signed = SignedFunction.read(file.read_bytes())
    with file_errors(arguments.credentials, "read"):
        check = SignatureCheck.by(arguments.credentials, arguments.revoked)
    signer = signed.check(archive, check)
    facts = {"name": archive.name, "signer": str(signer), **signed.claims}
    tell_of(arguments, facts, f"{archive.name}: signed by {signer}\n{archive.digest}")


def run_validate(arguments: argparse.Namespace) -> int:
    from onyx.identity.signing import Signer  # noqa: PLC0415
    from onyx.queries import validation as v  # noqa: PLC0415
    from onyx.queries.functions import read_zip  # noqa: PLC0415

    if bool(arguments.out) != bool(arguments.credentials):
        raise UsageError("--out and --credentials go together: a report is signed")
    if arguments.reference and arguments.sql:
        raise UsageError("either --reference or --sql")
    archive = read_zip(arguments.zip)
    function = _with_cost(archive, arguments)
    with ExitStack() as stack:
        reference, said = None, "none"
        if arguments.reference:
            reference = v.by_python(_loaded(arguments.reference), archive)
            said = arguments.reference
        elif arguments.sql:
            spark, _ = stack.enter_context(open_spark(arguments, "validate"))
            reference, said = v.by_sql(arguments.sql, archive, spark), f"SQL {arguments.sql}"
        report = v.validate(
            *(archive, function, reference),
            said=said,
            samples=[b for file in arguments.samples or () for b in _samples(file, archive)],
            rows=arguments.rows,
            load_rows=arguments.load_rows,
            seed=arguments.seed,
            weak=arguments.allow_weak_sandbox,
            progress=lambda text: print(text, file=sys.stderr),
        )
    facts: dict[str, object] = {"name": archive.name, "passed": not report.problems}
    facts |= {"problems": list(report.problems), "digest": archive.digest}
    lines = [f"{archive.name}: {'passed' if not report.problems else 'failed'}", *report.problems]
    if report.used is not None:
        used = report.used
        facts |= {"measured": used._asdict()}
        rows = max(used.rows, 1.0)
        lines.append(
            f"{used.seconds / rows:.2e} s a row, {used.bytes_made / max(used.rows_made, 1.0):.0f} "
            f"bytes a row made, {used.megabytes:.0f} MB"
        )
    if arguments.out:
        signed = v.SignedReport.make(report, Signer(arguments.credentials))
        with file_errors(arguments.out):
            arguments.out.write_text(signed.turtle(), encoding="utf-8")
        facts |= {"report": signed.uri}
        lines.append(f"{arguments.out}: {signed.uri}")
    tell_of(arguments, facts, "\n".join(lines))
    return EXIT_DATA if report.problems else 0


def _with_cost(archive: FunctionArchive, arguments: argparse.Namespace) -> Function:
    from registration.queries.providers import Function  # noqa: PLC0415

    kept = (archive.name, archive.name, "", archive.kind, archive.inputs, archive.outputs)
    function = Function(*kept, digest=archive.digest)
    said = {key: getattr(arguments, key, None) for key in asdict(function)}
    cost: dict[str, Any] = {key: value for key, value in said.items() if isinstance(value, float)}
    return replace(function, **cost)


def _samples(file: Path, archive: FunctionArchive) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    from registration.spark.arrow_types import arrow_schema  # noqa: PLC0415

    schema = arrow_schema(archive.inputs)
    with file_errors(file, "read"):
        try:
            table = parquet.read_table(file)
            return list(table.select(schema.names).cast(schema).to_batches())
        except (pa.ArrowException, KeyError) as error:
            raise UsageError(f"{file} has no rows of {archive.signature}: {error}") from None


def _loaded(reference: str) -> Callable[..., Any]:
    file, _, name = reference.rpartition(":")
    if not (file.endswith(".py") and Path(file).is_file()):
        raise UsageError(f"--reference {reference}: expected FILE.py:NAME")
    found = runpy.run_path(file, run_name="reference")  # as it is now: no compiled file is older
    if name not in found:
        raise UsageError(f"--reference {reference}: {file} has no {name}")
    return cast("Callable[..., Any]", found[name])
