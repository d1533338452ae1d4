"""What ``--schema PATH`` names: a file, or several as the bundle that a source is registered with.

::

    orders.dtd                 the file, and what it refers to in its folder and below
    schemas/  schemas.zip      a folder or a zip file; the main document is the one that no other
                               refers to
    catalog.xml                an OASIS XML catalog: the documents that it names
    schemas/#cda/CDA.xsd       its main document

Only what the main document reaches is taken, and nothing from outside of the folder or zip file.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TypeAlias

from formats.dtd import read_declarations
from formats.errors import SchemaRefused
from formats.schema import Schema, kind_of, read_roots, read_schema
from formats.schema_catalog import CATALOG
from formats.schema_files import FILE_BYTES_MAX, SchemaFiles, pack
from onyx.errors import file_errors

_LOOKED_AT_MAX = 10_000  # files of a folder or zip file
_ZIP_BYTES_MAX = 256 * 1024 * 1024
_SUFFIXES = (".xsd", ".rng", ".dtd")
_CATALOG = "catalog.xml"
_NAMED_MAX = 8

_Find: TypeAlias = Callable[[str], bytes | None]  # what is at a path, of what may be read


def read_schema_path(path: str | Path) -> tuple[str, bytes]:
    """The name of the main document, and the bytes of the schema: a bundle if it has several.

    SchemaRefused; UnreadableInput.
    """
    with file_errors(path, "read"):
        files = _files_of(str(path))
        _reach(files)
    return files.main, pack(files)


def read_schema_zip(data: bytes, main: str = "") -> tuple[str, bytes]:
    """The same of the bytes of a zip file; ``main`` is the main document where that is not clear.

    SchemaRefused.
    """
    place = Path("the zip file")
    try:
        find, names = _in_zip(place, io.BytesIO(data))
    except zipfile.BadZipFile as error:
        raise SchemaRefused("malformed", f"the body is no zip file: {error}") from None
    catalog = _CATALOG if find(_CATALOG) is not None else None
    files = _with_main(place, find, main, names, catalog, "main=NAME")
    _reach(files)
    return files.main, pack(files)


def load_schema(path: str | Path) -> Schema:
    """Likewise, of whoever has no registration service read it."""
    return read_schema(*read_schema_path(path))


def _reach(files: SchemaFiles) -> None:
    """Read all that the main document refers to."""
    kind = kind_of(files)
    if kind == "dtd":
        read_declarations(files)
    else:
        read_roots(Schema(files.main, kind, files.data), files)


def _files_of(path: str) -> SchemaFiles:
    place, main = Path(path), ""
    if "#" in path and not place.exists():
        whole, _, main = path.rpartition("#")
        place = Path(whole)
    names: Iterable[str]
    if place.is_dir():
        find, names = _in_folder(place), _names_in(place)
    elif zipfile.is_zipfile(place):
        if place.stat().st_size > _ZIP_BYTES_MAX:
            most = f"at most {_ZIP_BYTES_MAX >> 20} MB are allowed"
            raise SchemaRefused("too-large", f"{place}: {most}")
        find, names = _in_zip(place, place)
    else:
        return _of_file(place, main)
    catalog = _CATALOG if find(_CATALOG) is not None else None
    return _with_main(place, find, main, names, catalog)


def _of_file(file: Path, main: str) -> SchemaFiles:
    data = file.read_bytes()
    find = _in_folder(file.parent)
    if CATALOG[1:-1].encode() not in data or not data.lstrip().startswith(b"<"):
        return SchemaFiles(file.name, find)
    named = SchemaFiles(file.name, find, file.name).catalog.paths()
    return _with_main(file, find, main, named, file.name)


def _with_main(
    place: Path,
    find: _Find,
    main: str,
    names: Iterable[str],
    catalog: str | None,
    how: str = "",
) -> SchemaFiles:
    """``how`` the main document is said, if it has to be."""
    if main and find(main) is None:
        raise SchemaRefused("unknown-schema", f"{place} has no {main}")
    how = how or f"{place}#NAME"
    return _of_several(main or _main_of(place, find, names, catalog, how), find, catalog)


def _of_several(main: str, find: _Find, catalog: str | None) -> SchemaFiles:
    """What is wrong with a document is told with its name."""
    files = SchemaFiles(main, find, catalog)
    files.is_bundle = True
    return files


def _main_of(place: Path, find: _Find, names: Iterable[str], catalog: str | None, how: str) -> str:
    """The document that no other of them refers to."""
    names = [name for name in names if name.lower().endswith(_SUFFIXES)]
    outermost = dict.fromkeys(names)
    for name in names:
        if name in outermost:
            files = _of_several(name, find, catalog)
            _reach(files)
            for other in files.read.keys() - {name}:
                outermost.pop(other, None)
    if len(outermost) == 1:
        return next(iter(outermost))
    if not names:
        raise SchemaRefused("unknown-schema", f"{place} has no {', '.join(_SUFFIXES)} file")
    candidates = sorted(outermost) or names
    shown = ", ".join(candidates[:_NAMED_MAX]) + (", …" if len(candidates) > _NAMED_MAX else "")
    raise SchemaRefused(
        "unknown-schema",
        f"which document of {place} is the main one? Say {how}; no other refers to {shown}",
    )


def _in_folder(folder: Path) -> _Find:
    inside = folder.resolve()

    def find(path: str) -> bytes | None:
        file = (inside / path).resolve()
        if not file.is_relative_to(inside) or not file.is_file():  # a link may lead outside
            return None
        with file.open("rb") as opened:
            return opened.read(FILE_BYTES_MAX + 1)

    return find


def _names_in(folder: Path) -> Iterator[str]:
    looked_at = 0
    for parent, _, names in os.walk(folder):
        for name in sorted(names):
            looked_at += 1
            if looked_at > _LOOKED_AT_MAX:
                raise SchemaRefused("too-large", f"{folder} has more than {_LOOKED_AT_MAX} files")
            yield (Path(parent) / name).relative_to(folder).as_posix()


def _in_zip(file: Path, zipped: Path | IO[bytes]) -> tuple[_Find, list[str]]:
    """``file`` is its name."""
    with zipfile.ZipFile(zipped) as opened:
        names = [entry.filename for entry in opened.infolist()[: _LOOKED_AT_MAX + 1]]
    if len(names) > _LOOKED_AT_MAX:
        raise SchemaRefused("too-large", f"{file} has more than {_LOOKED_AT_MAX} files")
    known = set(names)

    def find(path: str) -> bytes | None:
        if path not in known:
            return None
        try:
            with zipfile.ZipFile(zipped) as opened, opened.open(path) as entry:
                return entry.read(FILE_BYTES_MAX + 1)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            raise SchemaRefused("malformed", f"{file}: {path} is not read: {error}") from None

    return find, names
