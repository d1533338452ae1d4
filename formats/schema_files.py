"""SchemaFiles: the documents that a schema consists of, and nothing else.

A schema of several documents travels as a *bundle*, one zip file: its first entry is the main
document, from which the others are reached by ``include``, ``import`` and the like.  Where it has
an OASIS XML catalog its comment is that one's path.  ::

    main.xsd  common/types.xsd  common/codes.xsd        "catalog.xml"

What a document refers to is looked for in the catalog, then at its place relative to that document,
in the bundle; never in a file or on a network.  What is not there is noted (``unread``).  All is
bounded: the files, what they unpack to, and how deep they refer to each other.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from formats.errors import SchemaRefused
from formats.schema_catalog import SchemaCatalog, join

FILES_MAX = 1_000
FILE_BYTES_MAX = 4 * 1024 * 1024
BYTES_MAX = 32 * 1024 * 1024  # of all documents, each as often as it is read
NESTING_MAX = 64
_UNREAD_MAX = 20  # references that are told, in so many characters each
_UNREAD_CHARACTERS = 240
_ZIP = b"PK\x03\x04"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Found:
    path: str
    data: bytes = field(repr=False)


class SchemaFiles:
    """``find`` gives the bytes of a path, or None; ``main`` is one that it has."""

    def __init__(
        self, main: str, find: Callable[[str], bytes | None], catalog: str | None = None
    ) -> None:
        self.main = main
        self.read: dict[str, bytes] = {}  # what was asked for and is there, the main one first
        self.unread: list[str] = []  # what was asked for and is not, and by whom
        self.found: dict[str, str] = {}  # paths, by what names them anywhere (``absolute``)
        self._find = find
        self._catalog_path = catalog
        self._bytes = 0
        self.is_bundle = catalog is not None
        self.data = self._get(main) or b""

    @classmethod
    def of(cls, name: str, data: bytes) -> SchemaFiles:
        """Of a schema as it travels: a document by itself, or a bundle.  SchemaRefused."""
        if not data.startswith(_ZIP):
            return cls(name, lambda path: data if path == name else None)
        main, files, catalog = _unpacked(name, data)
        found = cls(main, files.get, catalog if catalog in files else None)
        found.is_bundle = True
        return found

    @property
    def is_whole(self) -> bool:
        return not self.unread

    @cached_property
    def catalog(self) -> SchemaCatalog:
        if self._catalog_path is None:
            return SchemaCatalog()
        return SchemaCatalog.read(self._catalog_path, self._get)

    def open(
        self, base: str, reference: str, where: str, public_id: str = "", namespace: str = ""
    ) -> Found | None:
        """What the document at ``base`` refers to; None, and noted, where it is not there.

        ``where`` says of the reference what is noted: "siri.xsd, line 3: includes".
        """
        beside = None if _SCHEME.match(reference) or not reference else join(base, reference)
        catalog = self.catalog
        for path in (
            *map(catalog.path_of, (reference, absolute(base, reference), public_id)),
            beside,
            catalog.path_of(namespace),
        ):
            data = None if path is None else self._get(path)
            if path is not None and data is not None:
                return self._take(base, reference, path, data)
        self.note(
            f"{where} {reference or public_id or f'namespace {namespace}'}, which is not there"
        )
        return None

    def note(self, unread: str) -> None:
        unread = unread[:_UNREAD_CHARACTERS]
        if len(self.unread) < _UNREAD_MAX and unread not in self.unread:
            self.unread.append(unread)

    def _take(self, base: str, reference: str, path: str, data: bytes) -> Found:
        self._bytes += len(data)
        if self._bytes > BYTES_MAX:
            raise SchemaRefused(
                "too-large",
                f"its documents take more than {BYTES_MAX} bytes, as often as referred to",
            )
        self.found[absolute(base, reference)] = path
        return Found(path, data)

    def _get(self, path: str) -> bytes | None:
        known = self.read.get(path)
        if known is None and (known := self._find(path)) is not None:
            if len(self.read) >= FILES_MAX:
                raise SchemaRefused("too-large", f"it has more than {FILES_MAX} documents")
            if len(known) > FILE_BYTES_MAX:
                raise SchemaRefused(
                    "too-large", f"{path}: {len(known)} bytes; at most {FILE_BYTES_MAX} are allowed"
                )
            self.read[path] = known
        return known


def absolute(base: str, reference: str) -> str:
    """What a reference means wherever it stands; paths as "bundle:/main.xsd"."""
    if _SCHEME.match(reference):
        return reference
    return "bundle:/" + posixpath.normpath(posixpath.join(posixpath.dirname(base), reference))


def pack(files: SchemaFiles) -> bytes:
    """The bundle of what was read; a document by itself where that is all of it."""
    catalog = files._catalog_path
    if len(files.read) == 1:
        return files.data
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as bundle:
        for path in (files.main, *sorted(files.read.keys() - {files.main})):
            entry = zipfile.ZipInfo(path)  # of 1980, so that the same files are the same bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            bundle.writestr(entry, files.read[path])
        if catalog is not None:
            bundle.comment = catalog.encode()
    return written.getvalue()


def _unpacked(name: str, data: bytes) -> tuple[str, dict[str, bytes], str]:
    """The main document's path, all documents, and the path of a catalog."""
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as bundle:
            entries = [entry for entry in bundle.infolist() if not entry.is_dir()]
            if len(entries) > FILES_MAX:
                raise SchemaRefused("too-large", f"it has more than {FILES_MAX} files")
            left = BYTES_MAX
            for entry in entries:
                with bundle.open(entry) as unpacking:
                    files[entry.filename] = unpacking.read(min(left, FILE_BYTES_MAX) + 1)
                left -= len(files[entry.filename])
                if left < 0:
                    raise SchemaRefused("too-large", f"it unpacks to more than {BYTES_MAX} bytes")
            comment = bundle.comment.decode("utf-8", "replace")
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise SchemaRefused("malformed", f"{name} is no zip file that is read: {error}") from None
    except (NotImplementedError, RuntimeError) as error:  # a method of packing, or a password
        raise SchemaRefused("malformed", f"{name} is not read: {error}") from None
    if not files:
        raise SchemaRefused("unknown-schema", f"{name} is an empty zip file")
    return next(iter(files)), files, comment or "catalog.xml"
