"""The market of ObjectGlobe: records of what providers have registered (seed 001, 2 and 2.2).

A catalog of RDF documents (vocabulary ``providers.ttl``) is read to one ``Market``.  Names of SQL
are ``PROVIDER.RELATION`` and the plain names of functions; everything else is known by its URI.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

NAMESPACE = "urn:onyx:query:1#"
CLIENT = "urn:onyx:query:client"
"""The asking process as a cycle provider, where no catalog describes it."""
FORMATS = ("parquet", "csv", "json", "jdbc", "archive", "files", "query")
"""Of relations; the location of a ``query`` is its text."""
WRAPPED = (("path", "string"), ("content", "binary"))
"""The columns of a ``files`` relation, which its wrapper takes."""
RIGHTS: Mapping[str, tuple[str, ...]] = {
    "read": ("Relation", "DataProvider"),
    "execute": ("Function", "FunctionProvider"),
    "load": ("Function", "FunctionProvider", "CycleProvider"),
    "use": ("CycleProvider",),
}
"""The classes of the resources that each right is about."""
FLOWING = ("Relation", "DataProvider", "Function", "FunctionProvider")
"""The classes of the resources whose rows or code flow."""


class Secret(str):
    """The value of an option that nobody is told: no text that shows its record has a letter of
    it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True, slots=True)
class Column:
    """``type``: as Spark's DDL.  Statistics are None where nobody has said or measured them:
    ``distinct`` values, ``nulls`` a share from 0 to 1, ``width`` bytes a row."""

    name: str
    type: str
    distinct: float | None = None
    minimum: str | None = None
    maximum: str | None = None
    nulls: float | None = None
    width: float | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """``name``: as in SQL, ``PROVIDER.RELATION``.  ``read_at``: URIs of cycle providers that can
    scan it.  ``wrapper``: URI of a table function that makes rows of a ``files`` relation.
    ``secrets``: options whose values users have, each with the name of the secret."""

    uri: str
    name: str
    provider: str
    read_at: tuple[str, ...]
    format: str
    location: str
    columns: tuple[Column, ...]
    rows: float | None = None
    bytes: float | None = None
    refreshed: datetime | None = None
    price_per_megabyte: float = 0.0
    options: tuple[tuple[str, str], ...] = ()
    wrapper: str | None = None
    secrets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a function provider: the seed's external operator, and its cost model.

    ``inputs``: names and types; ``outputs``: one column named "" for a scalar, the table's columns
    otherwise.  ``archive``: where the zip is (within the provider's location)."""

    uri: str
    name: str
    provider: str
    kind: str  # scalar, table
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    archive: str = ""
    digest: str = ""
    seconds_per_row: float = 1e-5
    megabytes: float = 64.0
    rows_per_row: float = 1.0
    bytes_per_row: float | None = None
    price_per_row: float = 0.0
    certificate: str | None = None


@dataclass(frozen=True, slots=True)
class DataProvider:
    uri: str
    name: str


@dataclass(frozen=True, slots=True)
class FunctionProvider:
    """``location``: a folder or an https address, under which archives of functions are."""

    uri: str
    name: str
    location: str = ""


@dataclass(frozen=True, slots=True)
class CycleProvider:
    """A machine that executes fragments; without a port it is the asking process itself.
    ``slowness``: so many times the seconds of the cost model it takes, as runs have shown."""

    uri: str
    name: str
    host: str = ""
    port: int | None = None
    groups: frozenset[str] = frozenset()
    price_per_second: float = 0.0
    memory_megabytes: float = 1024.0
    cpu_megahertz: float = 1000.0
    cores: int = 1
    slowness: float = 1.0


@dataclass(frozen=True, slots=True)
class Link:
    """``source`` to ``target``: URIs of cycle providers; ``seconds``: latency."""

    source: str
    target: str
    bytes_per_second: float = 12.5e6
    seconds: float = 0.02
    price_per_megabyte: float = 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """``members``: names of users, as their certificates say them."""

    uri: str
    name: str
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class Permission:
    """``subject``: ``user/NAME``, ``group/NAME``, ``*`` (all who have shown who they are) or
    ``anonymous`` (all).  A resource that some permission names for a right is open to the subjects
    named so, any other to everybody.  One that was not clear has "" for its subject, which nobody
    is, or for its right, which is then each of RIGHTS."""

    uri: str
    subject: str
    right: str
    resource: str


@dataclass(frozen=True, slots=True)
class Flow:
    """Where rows (or code) may go: to one cycle provider, or to all of a group.  A resource that no
    flow names may go anywhere; any other to the places named and where it is read.

    ``aggregates_only``: rows may go there after a partial aggregate alone."""

    uri: str
    resource: str
    to: str | None = None
    to_group: str | None = None
    aggregates_only: bool = False


@dataclass(frozen=True, slots=True)
class Market:
    """All that a catalog holds, by URI; ``relation`` and ``functions_named`` by names in SQL.
    ``reports``: the texts of validation reports, to which ``Function.certificate`` leads."""

    data_providers: Mapping[str, DataProvider]
    function_providers: Mapping[str, FunctionProvider]
    cycle_providers: Mapping[str, CycleProvider]
    relations: Mapping[str, Relation]
    functions: Mapping[str, Function]
    links: tuple[Link, ...] = ()
    permissions: tuple[Permission, ...] = ()
    flows: tuple[Flow, ...] = ()
    groups: Mapping[str, Group] = field(default_factory=dict)
    reports: Mapping[str, str] = field(default_factory=dict)

    @property
    def sites(self) -> tuple[CycleProvider, ...]:
        """All cycle providers in the order of their URIs, the asking process among them."""
        found = {each.uri: each for each in (*self.cycle_providers.values(), self.client)}
        return tuple(found[uri] for uri in sorted(found))

    @property
    def client(self) -> CycleProvider:
        """The asking process: the cycle provider without a port whose URI is the first."""
        own = (each for each in self.cycle_providers.values() if each.port is None)
        return min(own, key=lambda each: each.uri, default=CycleProvider(CLIENT, "client"))

    def relation(self, name: str) -> Relation | None:
        """By its name in SQL; case as registered."""
        return next((r for r in self.relations.values() if r.name == name), None)

    def functions_named(self, name: str) -> tuple[Function, ...]:
        """All of that name (several providers may offer it), without regard to case."""
        return tuple(f for f in self.functions.values() if f.name.lower() == name.lower())
