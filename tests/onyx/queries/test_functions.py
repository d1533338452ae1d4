"""Functions are packed, signed, fetched by digest and validated; everything else is refused."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from onyx.cli.main import main
from onyx.errors import EXIT_DATA, EXIT_OK
from onyx.identity.authority import Authority
from onyx.identity.signing import SignatureCheck, Signer
from onyx.queries.functions import (
    FunctionStore,
    SignedFunction,
    digest_of,
    pack,
    read_archive,
    read_zip,
)
from onyx.queries.provider_process import plug_in
from onyx.queries.validation import Report, SignedReport, by_python, generated, validate
from overlay.link.principal import Principal
from registration.queries.providers import CycleProvider, Function, FunctionProvider, Market
from registration.queries.query_plan import Fragment, Plug
from registration.queries.refusals import QueryRefused
from registration.spark.arrow_types import arrow_schema
from registration.spark.sandbox import missing

UPPER = """\
import pyarrow as pa
def upper(texts):
    return pa.array([t if t is None else t.upper() for t in texts.to_pylist()], pa.string())
"""
DESCRIPTION = {
    "name": "upper",
    "kind": "scalar",
    "signature": "(text STRING) -> STRING",
    "entry": "upper:upper",
}
needs_sandbox = pytest.mark.skipif(bool(missing()), reason=f"this machine lacks {missing()}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "upper"
    made.mkdir()
    (made / "upper.py").write_text(UPPER)
    (made / "function.json").write_text(json.dumps(DESCRIPTION))
    return made


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    path = tmp_path / "ann.pem"
    authority = Authority.make(tmp_path / "identity", "figure1")
    path.write_bytes(authority.issue(Principal("user", "ann")))
    return path


def _function(data: bytes, **changes: Any) -> Function:
    archive = read_archive(data)
    shape = ("scalar", archive.inputs, archive.outputs)
    function = Function("urn:f", "upper", "urn:p", *shape, "upper.zip", archive.digest)
    return replace(function, seconds_per_row=1e-4, bytes_per_row=2_000.0, **changes)


def test_equal_folders_have_equal_zips(folder: Path, tmp_path: Path) -> None:
    data = pack(folder)
    (folder / "upper.py").touch()
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "upper.pyc").write_bytes(b"x")
    assert pack(folder) == data
    archive = read_archive(data)
    assert (archive.name, archive.inputs) == ("upper", (("text", "string"),))
    assert archive.digest == digest_of(data)


def _zip(members: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


def _with(**changes: str) -> dict[str, str]:
    return {"function.json": json.dumps(DESCRIPTION | changes), "upper.py": UPPER}


BAD: Mapping[str, tuple[bytes, str]] = {
    "no zip": (b"PK", "no zip of a function"),
    "without description": (_zip({"upper.py": UPPER}), "function.json is missing"),
    "no JSON": (_zip({"function.json": "{", "upper.py": UPPER}), "Expecting property name"),
    "another field": (_zip(_with(more="x")), "expected the texts name, kind, signature, entry"),
    "another kind": (_zip(_with(kind="vector")), "'vector'; expected scalar or table"),
    "no type": (_zip(_with(signature="(text STRNG) -> STRING")), "signature"),
    "a table of a scalar": (_zip(_with(signature="(a INT) -> (b INT)")), "does not give that"),
    "no module": (_zip(_with(entry="lower:upper")), "expected MODULE:NAME of a file in the zip"),
    "no name": (_zip(_with(entry="upper:lower")), "upper.py defines no 'lower'"),
    "no Python": (_zip(_with() | {"upper.py": "def upper(:"}), "upper.py: invalid syntax"),
    "a library": (_zip(_with() | {"fast.so": "x"}), "'fast.so': expected function.json and Python"),
    "outside": (_zip(_with() | {"../a.py": ""}), "'../a.py'"),
    "absolute": (_zip(_with() | {"/a.py": ""}), "'/a.py'"),
    "a bomb": (_zip(_with() | {"z.py": "#" * (33 << 20)}), "bytes unpacked"),
    "too long": (bytes((8 << 20) + 1), "more than 8,388,608 bytes"),
}


@pytest.mark.parametrize("case", BAD)
def test_other_zips_are_refused(case: str) -> None:
    data, said = BAD[case]
    with pytest.raises(QueryRefused) as caught:
        read_archive(data)
    assert said in str(caught.value)


@pytest.mark.parametrize("seed", range(3))
def test_changed_zips_are_read_or_refused(folder: Path, seed: int) -> None:
    random, data = Random(seed), pack(folder)
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(random.randint(1, 4)):
            changed[random.randrange(len(changed))] = random.randrange(256)
        try:
            assert read_archive(bytes(changed[: random.choice((None, 100, 300))])).name
        except QueryRefused as error:
            assert error.fault.code == "syntax"


def test_signatures_are_of_a_zip_and_a_cost_model(folder: Path, credentials: Path) -> None:
    archive = read_archive(pack(folder))
    signed = SignedFunction.make(archive, {"seconds_per_row": 1e-4}, Signer(credentials))
    check = SignatureCheck.by(credentials)
    assert str(SignedFunction.read(signed.text()).check(archive, check)) == "user/ann"
    cheaper = signed._replace(claims=signed.claims | {"seconds_per_row": 1e-5})
    with pytest.raises(QueryRefused, match="another text") as caught:
        cheaper.check(archive, check)
    assert caught.value.fault.code == "bad-signature"
    (folder / "upper.py").write_text(UPPER + "\n")
    with pytest.raises(QueryRefused, match="the zip has the digest") as caught:
        signed.check(read_archive(pack(folder)), check)
    assert caught.value.fault.code == "bad-digest"


def test_a_store_fetches_by_digest_and_once(folder: Path, tmp_path: Path) -> None:
    data = pack(folder)
    (tmp_path / "upper.zip").write_bytes(data)
    function, provider = _function(data), FunctionProvider("urn:p", "P", str(tmp_path))
    store = FunctionStore(tmp_path / "kept")
    assert store.load(function, provider).data == data
    (tmp_path / "upper.zip").write_bytes(data + b" ")
    assert store.load(function, provider).data == data
    refusals = {
        "bad-digest": (function, provider, FunctionStore(tmp_path / "anew")),
        "provider-away": (
            *(function, FunctionProvider("urn:p", "P", str(tmp_path / "no"))),
            FunctionStore(tmp_path / "anew"),
        ),
    }
    for code, (what, of, kept) in refusals.items():
        with pytest.raises(QueryRefused) as caught:
            kept.load(what, of)
        assert caught.value.fault.code == code
    for archive in ("../upper.zip", "/etc/passwd", ""):
        with pytest.raises(QueryRefused, match="not within P"):
            FunctionStore(tmp_path / "anew").load(replace(function, archive=archive), provider)
    (tmp_path / "offered").mkdir()
    (tmp_path / "offered" / "upper.zip").symlink_to(tmp_path / "upper.zip")
    elsewhere = FunctionProvider("urn:p", "P", str(tmp_path / "offered"))
    with pytest.raises(QueryRefused, match="a link elsewhere"):
        FunctionStore(tmp_path / "anew").load(function, elsewhere)


TYPES = (
    *("boolean", "tinyint", "bigint", "float", "double", "string", "binary", "date", "timestamp"),
    *("decimal(10,2)", "array<int>", "map<string,double>", "struct<a:int,b:array<string>>"),
)


def test_values_of_every_type_are_generated_with_edges() -> None:
    schema = arrow_schema((f"c{n}", ddl) for n, ddl in enumerate(TYPES))
    table = pa.Table.from_batches(generated(schema, 400, Random(1)))
    assert table.num_rows == 400
    for column in table.columns:
        assert 0 < column.null_count < 200
    again = pa.Table.from_batches(generated(schema, 400, Random(1)))
    assert str(table.to_pylist()) == str(again.to_pylist())
    assert {"", "ß"} <= set(table.column("c5").to_pylist())


def _same(texts: pa.Array) -> pa.Array:
    return pa.array([t if t is None else t.upper() for t in texts.to_pylist()], pa.string())


def _ascii(texts: pa.Array) -> pa.Array:
    return pa.array([t if t is None or not t.isascii() else t.upper() for t in texts.to_pylist()])


@needs_sandbox
def test_a_function_is_held_to_its_reference_and_cost(folder: Path, credentials: Path) -> None:
    data = pack(folder)
    archive, function = read_archive(data), _function(data)
    good = validate(archive, function, by_python(_same, archive), rows=200, load_rows=400)
    assert good.problems == ()
    signed, check = SignedReport.make(good, Signer(credentials)), SignatureCheck.by(credentials)
    assert str(signed.check(function, check)) == "user/ann"
    for changed, said in (
        (replace(function, digest="sha256:0"), "its report is of sha256"),
        (replace(function, seconds_per_row=1.0), "seconds_per_row is 1.0, the report is about"),
    ):
        with pytest.raises(QueryRefused, match=said):
            signed.check(changed, check)
    other = validate(archive, function, by_python(_ascii, archive), rows=200, load_rows=0)
    assert "the reference gives" in other.problems[0]
    with pytest.raises(QueryRefused, match="its report says: row") as caught:
        SignedReport.make(other, Signer(credentials)).check(function, check)
    assert caught.value.fault.code == "not-certified"
    dear = validate(archive, replace(function, bytes_per_row=1.0), None, rows=50, load_rows=100)
    assert "bytes_per_row" in dear.problems[0]


@needs_sandbox
def test_the_commands(folder: Path, credentials: Path, tmp_path: Path, capsys: Any) -> None:
    zipped, report = str(tmp_path / "upper.zip"), tmp_path / "upper.ttl"
    assert main(["function", "pack", str(folder), "--out", zipped]) == EXIT_OK
    digest = read_zip(Path(zipped)).digest
    assert digest in capsys.readouterr().out
    by = ["--credentials", str(credentials)]
    assert main(["function", "sign", zipped, *by, "--seconds-per-row", "1e-4"]) == EXIT_OK
    assert main(["function", "verify", zipped, *by, "--json"]) == EXIT_OK
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["signer"], told["digest"], told["seconds_per_row"]) == ("user/ann", digest, 1e-4)
    (tmp_path / "reference.py").write_text(UPPER)
    reference = ["--reference", f"{tmp_path / 'reference.py'}:upper", "--rows", "50"]
    cost = ["--seconds-per-row", "1e-3", "--load-rows", "100", *by, "--out", str(report)]
    assert main(["function", "validate", zipped, *reference, *cost]) == EXIT_OK
    assert "a q:ValidationReport" in report.read_text()
    (tmp_path / "reference.py").write_text(UPPER.replace("upper()", "lower()"))
    assert main(["function", "validate", zipped, *reference, *cost]) == EXIT_DATA
    assert "the reference gives" in capsys.readouterr().out


def test_a_certified_plan_takes_functions_with_a_good_report_alone(
    folder: Path, tmp_path: Path, credentials: Path
) -> None:
    data = pack(folder)
    (tmp_path / "upper.zip").write_bytes(data)
    function = _function(data, certificate="urn:report")
    passed = Report(read_archive(data), function, "sql", 9, 1, None, ())
    (tmp_path / "elsewhere").mkdir()
    stranger = tmp_path / "elsewhere" / "eve.pem"
    authority = Authority.make(tmp_path / "elsewhere" / "identity", "figure1")
    stranger.write_bytes(authority.issue(Principal("user", "eve")))
    good = SignedReport.make(passed, Signer(credentials)).text
    reports = {
        "": good,
        "is of another authority": SignedReport.make(passed, Signer(stranger)).text,
        "is not signed": "",
        "its report says: it fell": SignedReport.make(
            replace(passed, problems=("it fell",)), Signer(credentials)
        ).text,
    }
    site = CycleProvider("urn:a", "A")
    fragment = Fragment(0, site, (), (), (Plug("f0_upper", function),), "SELECT 1 AS n")
    store, check = FunctionStore(tmp_path / "kept"), SignatureCheck.by(credentials)
    for said, report in reports.items():
        provider = FunctionProvider("urn:p", "P", str(tmp_path))
        market = Market({}, {"urn:p": provider}, {}, {}, {}, reports={"urn:report": report})
        works = plug_in(market, store, check)
        assert list(works(fragment, False)) == ["f0_upper"], "nobody has asked for a report"
        if not said:
            assert list(works(fragment, True)) == ["f0_upper"]
            continue
        with pytest.raises(QueryRefused, match=said) as caught:
            works(fragment, True)
        assert (caught.value.code, caught.value.rule) == ("not-certified", "urn:report")
