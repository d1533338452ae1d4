"""What --schema PATH takes: files, folders, zip files and catalogs, and nothing outside of them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from formats import SchemaRefused
from formats.schema import what_is_unread
from onyx.cli.main import main
from onyx.errors import UnreadableInput
from onyx.schema_path import load_schema, read_schema_path
from tests.formats.test_schema_bundle import DTD, LANGUAGES, RELAXNG, XSD


def write(folder: Path, documents: dict[str, str]) -> Path:
    for path, text in documents.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def zipped(folder: Path) -> Path:
    file = folder.with_suffix(".zip")
    with zipfile.ZipFile(file, "w") as made:
        for path in folder.rglob("*"):
            made.write(path, path.relative_to(folder).as_posix())
    return file


@pytest.mark.parametrize("documents", LANGUAGES)
def test_a_folder_a_zip_file_and_its_main_document_are_the_same(
    tmp_path: Path, documents: dict[str, str]
) -> None:
    folder = write(tmp_path / "s", {**documents, "README.txt": "not read"})
    main_document = next(iter(documents))
    found = read_schema_path(folder / main_document)
    assert found[0] == main_document
    assert read_schema_path(f"{folder}#{main_document}") == found
    assert read_schema_path(f"{zipped(folder)}#{main_document}") == found
    assert what_is_unread(load_schema(folder / main_document)) == ()
    if documents is not XSD:  # there another one refers back to it
        assert read_schema_path(folder) == found
        assert read_schema_path(zipped(folder)) == found


def test_which_is_the_main_document_is_asked(tmp_path: Path) -> None:
    folder = write(tmp_path, {**DTD, **RELAXNG})
    with pytest.raises(SchemaRefused, match=r"#NAME; no other refers to main\.dtd, main\.rng"):
        read_schema_path(folder)
    with pytest.raises(SchemaRefused, match="has no other"):
        read_schema_path(f"{folder}#other.xsd")
    with pytest.raises(SchemaRefused, match="has no"):
        read_schema_path(write(tmp_path / "empty", {"a.txt": ""}))
    with pytest.raises(UnreadableInput):
        read_schema_path(tmp_path / "nowhere")


def test_a_catalog_says_where_documents_are(tmp_path: Path) -> None:
    entry = "http://www.example.org/stop.mod"
    documents = {**DTD, "main.dtd": DTD["main.dtd"].replace("parts/stop.mod", entry)}
    catalog = """<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">
      <public publicId="-//S//Stop" uri="parts/stop.mod"/><system systemId="x" uri="main.dtd"/>
    </catalog>"""
    folder = write(tmp_path / "s", {**documents, "catalog.xml": catalog})
    for path in (folder, folder / "catalog.xml", f"{folder / 'catalog.xml'}#main.dtd"):
        schema = load_schema(path)
        assert (schema.name, what_is_unread(schema)) == ("main.dtd", ())
    (unread,) = what_is_unread(load_schema(folder / "main.dtd"))
    assert unread == f"main.dtd, line 1: includes {entry}, which is not there"


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"secret.mod": "<!ELEMENT secret ANY>"})
    text = '<!ENTITY % a SYSTEM "{}">%a;<!ELEMENT a ANY>'
    folder = write(tmp_path / "s", {"up.dtd": text.format("../secret.mod")})
    (folder / "link.mod").symlink_to(tmp_path / "secret.mod")
    write(folder, {"link.dtd": text.format("link.mod")})
    write(folder, {"file.dtd": text.format((tmp_path / "secret.mod").as_uri())})
    for name in ("up", "link", "file"):
        _, data = read_schema_path(folder / f"{name}.dtd")
        assert b"secret ANY" not in data
        assert len(what_is_unread(load_schema(folder / f"{name}.dtd"))) == 1
    assert what_is_unread(load_schema(f"{tmp_path}#s/up.dtd")) == ()


def test_check_warns_by_all_documents_and_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = 'declare default element namespace "urn:m"; /visit/stop/nome'
    folder = write(tmp_path, {**RELAXNG, "p.xq": profile})
    assert main(["profile", "check", str(folder / "p.xq"), "--schema", str(folder)]) == 0
    assert "expected name" in capsys.readouterr().out
    (folder / "parts/stop.rng").unlink()
    assert main(["profile", "check", str(folder / "p.xq"), "--schema", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert "right\n" in out and "expected" not in out
    assert "main.rng, line 2: includes parts/stop.rng, which is not there" in err
