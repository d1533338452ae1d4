"""SchemaCatalog: an OASIS XML catalog, which says where in a bundle a URI or identifier is.

Entries of systems and URIs are taken alike, whatever asks.  What is outside of the bundle is not
an answer; ``delegate*`` is followed as ``nextCatalog`` is.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Any

from lxml import etree

from formats.errors import SchemaRefused
from formats.names import XML_NAMESPACE
from formats.schema_document import parse_schema_document

CATALOG = "{urn:oasis:names:tc:entity:xmlns:xml:catalog}"
_CATALOGS_MAX = 16
_ENTRIES_MAX = 10_000
# By element: what it is about, and where that is.
_EXACT = {"uri": ("name", "uri"), "system": ("systemId", "uri"), "public": ("publicId", "uri")}
_STARTS = {
    "rewriteURI": ("uriStartString", "rewritePrefix"),
    "rewriteSystem": ("systemIdStartString", "rewritePrefix"),
}
_ENDS = {"uriSuffix": ("uriSuffix", "uri"), "systemSuffix": ("systemIdSuffix", "uri")}
_TABLES = _EXACT | _STARTS | _ENDS
_NEXT = ("nextCatalog", "delegateURI", "delegateSystem", "delegatePublic")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class SchemaCatalog:
    def __init__(self) -> None:
        self._exact: dict[str, str] = {}
        self._starts: list[tuple[str, str]] = []
        self._ends: list[tuple[str, str]] = []

    @classmethod
    def read(cls, path: str, get: Callable[[str], bytes | None]) -> SchemaCatalog:
        """With those that it names; SchemaRefused where one of them is not well-formed."""
        catalog, waiting, met = cls(), [path], set[str]()
        while waiting and len(met) < _CATALOGS_MAX:
            current = waiting.pop(0)
            data = None if current in met else get(current)
            met.add(current)
            if data is not None:
                waiting += catalog._add(current, parse_schema_document(data, current))
        return catalog

    def path_of(self, name: str) -> str | None:
        """The path in the bundle, which need not be there."""
        if not name:
            return None
        if name in self._exact:
            return self._exact[name]
        for start, path in self._starts:
            if name.startswith(start):
                return posixpath.normpath(path + name.removeprefix(start))
        return next((path for end, path in self._ends if name.endswith(end)), None)

    def paths(self) -> list[str]:
        """Of all that it names one by one."""
        return list(dict.fromkeys((*self._exact.values(), *(path for _, path in self._ends))))

    def _add(self, base: str, root: Any) -> list[str]:
        """The catalogs that it goes on in."""
        if root.tag != CATALOG + "catalog":
            raise SchemaRefused(
                "malformed", f"{base}: {root.tag} is not the root of a catalog", 1, 1
            )
        further: list[str] = []
        for part in root.iter(etree.Element):
            kind = str(part.tag).removeprefix(CATALOG)
            if kind in _NEXT:
                further += filter(None, [self._path(base, part, part.get("catalog", ""))])
                continue
            about, place = _TABLES.get(kind, ("", ""))
            name = part.get(about) if about else ""
            path = self._path(base, part, part.get(place, "")) if name else None
            if path is not None and kind in _EXACT:
                self._exact.setdefault(name, path)
            elif path is not None:
                (self._starts if kind in _STARTS else self._ends).append((name, path))
        self._starts.sort(key=lambda entry: -len(entry[0]))  # the longest counts
        self._ends.sort(key=lambda entry: -len(entry[0]))
        if len(self._exact) + len(self._starts) + len(self._ends) > _ENTRIES_MAX:
            raise SchemaRefused("too-large", f"{base} has more than {_ENTRIES_MAX} entries")
        return further

    @staticmethod
    def _path(base: str, part: Any, reference: str) -> str | None:
        for around in (part, *part.iterancestors()):
            reference = around.get(f"{{{XML_NAMESPACE}}}base", "") + reference
        path = None if _SCHEME.match(reference) else join(base, reference)
        return path and path + "/" if path and reference.endswith("/") else path


def join(base: str, reference: str) -> str | None:
    """The path that a relative reference names; None outside of the bundle."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(base), reference.partition("#")[0]))
    return None if path.startswith(("/", "../")) or path in ("", ".", "..") else path
