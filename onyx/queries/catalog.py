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
    from registration.metadata.statement_tables import StatementTables

VOCABULARY = Path(providers.__file__).with_suffix(".ttl")
Layer: TypeAlias = Sequence[Statement]

_WORD = re.compile(r"`([^`]+)`|(\w+)")
_EVERYWHERE = ("CycleProvider", "Link")
_OWNERS = ("provider", "wrapper", "readAt")
_PARTS = ("column", "serverInformation", "certificate")
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
        self._cache = None if cache is None else _CachedStatements(cache)
        self._kept: dict[str, tuple[Market, list[MarketFault]]] = {}
        self._version = (-1, -1)

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

    @property
    def market(self) -> Market:
        """All that is registered."""
        return self._market("")[0]

    def market_for(self, sql: str) -> Market:
        """As far as a query may name it: a relation or a function of a name that the text has, with
        all that is said of it and the rules about it; all cycle providers and links."""
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
            self._version = version
            self._kept.clear()
        if sql not in self._kept:
            layers: list[Layer] = [*self._files]
            if self._cache is not None:
                layers.insert(0, self._cache.asked(sql, self._files) if sql else self._cache.all())
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

    def __init__(self, file: str | Path, uri: str) -> None:
        syntax = by_file_name(Path(file).name)
        if syntax is None:
            raise UnreadableInput(f"{file} is no catalog by its name: .ttl, .rdf, .jsonld, .nt")
        with file_errors(file, "read"):
            self._data = Path(file).read_bytes()
        self.file, self._syntax, self._uri = file, syntax, uri
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
        return place_of_statement(self._data, self._uri, *words)


def _documents(files: Iterable[str | Path]) -> list[CatalogDocument]:
    found: dict[str, CatalogDocument] = {}
    for file in files:
        uri = f"file:///{quote(Path(file).name)}"
        if uri in found:  # blank nodes are named by their document
            uri = f"file:///{len(found)}/{quote(Path(file).name)}"
        found[uri] = CatalogDocument(file, uri)
    return list(found.values())


class _CachedStatements:
    """The statements of a cache that are about providers."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache

    def version(self) -> tuple[int, int]:
        return self._cache.version()

    def all(self) -> Layer:
        tables = self._cache.statements()
        return _said(tables, tables.below(NAMESPACE))

    def asked(self, sql: str, files: Iterable[Layer]) -> Layer:
        """As far as a text, and files, may name it."""
        tables = self._cache.statements()
        found = set(tables.of_classes([NAMESPACE + each for each in _EVERYWHERE]))
        named = (each for layer in files for said in layer for each in (said.subject, said.value))
        found.update(tables.known(list(dict.fromkeys(named))).values())
        texts, words = [sql], set[str]()
        while texts:
            words.update(one or two for text in texts for one, two in _WORD.findall(text))
            named_so = _named(tables, list(words)) - found
            found |= named_so
            texts = [text for _, text in tables.values(list(named_so), NAMESPACE + "location")]
        new = found
        while new:
            properties = [NAMESPACE + each for each in (*_OWNERS, *_PARTS)]
            ends = (tables.referred(new, each).values() for each in properties)
            new = set().union(*(end for some in ends for end in some)) - found
            found |= new
        rules = (tables.referring(found, NAMESPACE + each) for each in _RULES)
        return _said(tables, found.union(*rules))


def _said(tables: StatementTables, resources: Collection[int]) -> Layer:
    return [each for some in tables.statements(resources).values() for each in some]


def _named(tables: StatementTables, words: Sequence[str]) -> set[int]:
    """The relations whose name and whose provider's are among the words, and such functions, whose
    case does not matter."""
    names = tables.with_value(NAMESPACE + "name", words)
    relations = names.intersection(tables.of_classes([NAMESPACE + "Relation"], names))
    owners = tables.referred(relations, NAMESPACE + "provider")
    found = {each for each, owner in owners.items() if not owner.isdisjoint(names)}
    functions, folded = tables.of_classes([NAMESPACE + "Function"]), {w.lower() for w in words}
    called = tables.values(functions, NAMESPACE + "name")
    return found.union(number for number, name in called if name.lower() in folded)
