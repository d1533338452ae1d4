"""Catalog: the market in which a query is looked up (ObjectGlobe, 2.1 step 1).

::

    Catalog.read("market.ttl", "mine.ttl").market          # RDF documents
    Catalog.of(cache, "mine.ttl").market_for("SELECT …")   # a MetadataCache, which answers alone

Documents conform to ``registration/queries/providers.ttl``; of two that say one value, the later
file counts, and any file before a cache.  A catalog of files has no fault.  In a cache, where
everybody's documents are, a resource with a fault is left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote

from formats.errors import Fault, MessageRefused, about
from formats.graph.rdf_schema import RdfSchema, read_schema
from formats.graph.rdf_xml_places import place_of_statement
from formats.graph.syntaxes import GraphSyntax, by_file_name
from onyx.errors import UnreadableInput, file_errors
from registration.metadata.documents import BLANK, Statement, read_document
from registration.queries import providers
from registration.queries.market_reader import MarketFault, read_market
from registration.queries.providers import NAMESPACE, Market

if TYPE_CHECKING:
    from onyx.metadata.cache import MetadataCache

VOCABULARY = Path(providers.__file__).with_suffix(".ttl")
Layer: TypeAlias = Sequence[Statement]

_WORD = re.compile(r"`([^`]+)`|(\w+)")
_EVERYWHERE = ("CycleProvider", "Link", "Group")
_REFERENCES = ("provider", "wrapper", "column", "serverInformation", "certificate")
_RULES = ("resource", "what")
_KEPT = 64


@lru_cache(1)
def providers_schema() -> RdfSchema:
    """The vocabulary of catalogs, which documents conform to."""
    return read_schema(VOCABULARY.read_bytes(), GraphSyntax.TURTLE)


class Catalog:
    """Files, a cache, or both."""

    def __init__(self, documents: Sequence[CatalogDocument], cache: MetadataCache | None) -> None:
        self._documents = documents
        self._files = [document.statements for document in documents]
        self._cache = cache
        self._cached: _CachedStatements | None = None
        self._version = (-1, -1)
        self._kept: dict[str, tuple[Market, list[MarketFault]]] = {}

    @classmethod
    def read(cls, *files: str | Path) -> Catalog:
        """UnreadableInput; MessageRefused where a document, or all together, are none: with the
        file, and in RDF/XML with the place."""
        return cls.unchecked(*files).checked()

    @classmethod
    def unchecked(cls, *files: str | Path) -> Catalog:
        """The same with ``faults``, as a cache may have them; each document is one by itself."""
        return cls(_documents(files), None)

    @classmethod
    def of(cls, cache: MetadataCache, *files: str | Path) -> Catalog:
        """The same of files.  The catalog shows the cache as it is when the market is asked for."""
        return cls(_documents(files), cache)

    def with_text(self, file: Path, text: str) -> Catalog:
        """This catalog with a text as that file, behind the others.  MessageRefused."""
        others = [each for each in self._documents if Path(each.file).resolve() != file.resolve()]
        uri = _uri(file, [each.uri for each in others])
        found = Catalog([*others, CatalogDocument(file, uri, text.encode())], self._cache)
        return found if self._cache is not None else found.checked()

    @property
    def market(self) -> Market:
        """All that is registered."""
        return self._market("")[0]

    def market_for(self, sql: str) -> Market:
        """As far as a query may name it: a relation or a function of a name that the text has, with
        all that is said of it and the rules about it; all cycle providers, links and groups."""
        return self._market(sql)[0]

    def faults(self) -> list[Fault]:
        """Of the whole catalog, with their places."""
        return [self._placed(each).fault for each in self._market("")[1]]

    def checked(self) -> Catalog:
        """This catalog; MessageRefused for its first fault."""
        for fault in self._market("")[1]:
            raise self._placed(fault)
        return self

    def _market(self, sql: str) -> tuple[Market, list[MarketFault]]:
        if self._cache is None:
            sql = ""
        elif (version := self._cache.version()) != self._version:
            self._kept.clear()
            self._version, self._cached = version, _CachedStatements(self._cache)
        if sql not in self._kept:
            layers: list[Layer] = [*self._files]
            if (cached := self._cached) is not None:
                layers.insert(0, cached.asked(sql, self._files) if sql else cached.all())
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[sql] = read_market(layers)
        return self._kept[sql]

    def _placed(self, fault: MarketFault) -> MessageRefused:
        name = NAMESPACE + fault.property if fault.property else ""
        said = next((each for each in self._documents if each.says(fault.subject, name)), None)
        place = said.place(fault.subject, name, fault.value) if said else (0, 0)
        about_it = f"{fault.subject} {fault.property}".rstrip()
        where = f"{said.file}: {about_it}" if said else about_it
        return MessageRefused(fault.code, fault.reason, *place, where, fault.hint)


class CatalogDocument:
    """A file of RDF; relative IRIs in it are relative to ``file:///NAME``, wherever the file is."""

    def __init__(self, file: str | Path, uri: str, data: bytes | None = None) -> None:
        """``data``: of the file, None: it is read."""
        syntax = by_file_name(Path(file).name)
        if syntax is None:
            raise UnreadableInput(f"{file} is no catalog by its name: .ttl, .rdf, .jsonld, .nt")
        with file_errors(file, "read"):
            self._data = Path(file).read_bytes() if data is None else data
        self.file, self._syntax, self.uri = file, syntax, uri
        with about(str(file)):
            self.statements = read_document(uri, self._data, syntax, providers_schema())

    def says(self, subject: str, name: str) -> bool:
        return any(
            said.subject == subject and name in (said.property, "") for said in self.statements
        )

    def place(self, subject: str, name: str, value: str) -> tuple[int, int]:
        """Line and column of a statement in RDF/XML, else both 0."""
        if self._syntax is not GraphSyntax.RDF_XML:
            return 0, 0
        words = ("" if BLANK in each else each for each in (subject, name, value))
        return place_of_statement(self._data, self.uri, *words)


def _documents(files: Iterable[str | Path]) -> list[CatalogDocument]:
    found: dict[str, CatalogDocument] = {}
    for file in files:
        uri = _uri(file, found)
        found[uri] = CatalogDocument(file, uri)
    return list(found.values())


def _uri(file: str | Path, others: Collection[str]) -> str:
    """That of a document beside others, as blank nodes are named by their document."""
    uri = f"file:///{quote(Path(file).name)}"
    return f"file:///{len(others)}/{quote(Path(file).name)}" if uri in others else uri


class _CachedStatements:
    """The statements of a cache that are about providers, as they are at one version of it."""

    def __init__(self, cache: MetadataCache) -> None:
        self._tables = tables = cache.statements()
        self._everywhere = self._with_parts(
            set(tables.of_classes([NAMESPACE + each for each in _EVERYWHERE]))
        )
        self._said_everywhere = self._said(self._everywhere)
        self._functions: dict[str, list[int]] = {}
        functions = tables.of_classes([NAMESPACE + "Function"])
        for number, name in tables.values(functions, NAMESPACE + "name"):
            self._functions.setdefault(name.lower(), []).append(number)

    def all(self) -> Layer:
        return self._said(self._tables.below(NAMESPACE))

    def asked(self, sql: str, files: Collection[Layer]) -> Layer:
        """As far as a text, and files, may name it."""
        tables = self._tables
        named = (each for layer in files for said in layer for each in (said.subject, said.value))
        found = set(tables.known(list(dict.fromkeys(named))).values())
        location = NAMESPACE + "location"
        saved = (said.value for layer in files for said in layer if said.property == location)
        texts, words = [sql, *saved], set[str]()
        while texts:
            words.update(one or two for text in texts for one, two in _WORD.findall(text))
            new = self._named(words) - found
            found |= new
            texts = [text for _, text in tables.values(list(new), location)]
        found = self._with_parts(found) | self._everywhere
        rules = (tables.referring(found, NAMESPACE + each) for each in _RULES)
        return self._said_everywhere + self._said(found.union(*rules) - self._everywhere)

    def _named(self, words: Collection[str]) -> set[int]:
        """The relations whose name and whose provider's are among the words, and the functions
        whose name is, in any case."""
        tables, name = self._tables, NAMESPACE + "name"
        owners = tables.with_value(name, words, NAMESPACE + "DataProvider")
        relations = tables.referring(owners, NAMESPACE + "provider")
        called = tables.values(list(relations), name)
        found = {number for number, each in called if each in words}
        return found.union(*(self._functions.get(word.lower(), ()) for word in words))

    def _with_parts(self, found: set[int]) -> set[int]:
        """These, with all that they refer to and that a market needs of them."""
        new = found
        while new:
            ends = (self._tables.referred(new, NAMESPACE + each).values() for each in _REFERENCES)
            new = set().union(*(end for some in ends for end in some)) - found
            found = found | new
        return found

    def _said(self, resources: Collection[int]) -> list[Statement]:
        return [each for some in self._tables.statements(resources).values() for each in some]
