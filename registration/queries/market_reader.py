"""read_market: statements of catalogs -> a Market, and the faults of resources that make no sense.

The statements conform to ``providers.ttl`` already.  Here references must lead to resources of the
catalog, texts (schemas, signatures, rights, subjects) must mean something, and a name must be one
resource's.  A market is open: a resource with a fault is left out and all others stay, so that
nobody's document stops the queries of others.  Rules stay, and forbid where they are not clear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeAlias, TypeVar

from formats.graph.vocabulary import RDF_TYPE
from registration.queries.column_types import Columns, NoType, read_columns, read_signature
from registration.queries.providers import (
    CLIENT,
    FLOWING,
    FORMATS,
    NAMESPACE,
    RIGHTS,
    WRAPPED,
    Column,
    CycleProvider,
    DataProvider,
    Flow,
    Function,
    FunctionProvider,
    Group,
    Link,
    Market,
    Permission,
    Relation,
)
from registration.queries.refusals import did_you_mean

R = TypeVar("R")
Said: TypeAlias = tuple[str, str, str, str, str]
"""Subject, property, value, datatype ("" of a reference), language."""

ARCHIVE_SCHEMA = "source STRING, number BIGINT, time TIMESTAMP, media_type STRING, message STRING"
"""Of a relation of the format ``archive`` that says none."""
_REPEATED = frozenset({"group", "member", "readAt", "option", "secret", "column"})
_SUBJECT = re.compile(r"(?:user|group)/\S+|anonymous|\*")
_NAME = re.compile(r"[^.`\x00-\x1f]{1,128}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class MarketFault:
    """A fault of the resource ``subject``; ``property`` is a local name of the vocabulary, "" where
    the fault is of the whole, ``value`` as it was said."""

    code: str
    reason: str
    subject: str
    property: str = ""
    value: str = ""
    hint: str = ""


class _Wrong(Exception):
    """``said``: a fault without its subject."""

    def __init__(
        self, code: str, reason: str, name: str = "", value: str = "", hint: str = ""
    ) -> None:
        super().__init__(reason)
        self.said = code, reason, name, value, hint


def read_market(layers: Sequence[Iterable[Said]]) -> tuple[Market, list[MarketFault]]:
    """The market that all layers say together.  Of a property with one value the last layer that
    says it counts: so a user's own statistics take the place of a provider's."""
    return _Reader(layers).market()


class _Resource:
    """All that is said of one URI: values by the local names of properties."""

    __slots__ = ("_layer", "classes", "uri", "values")

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.classes: dict[str, None] = {}
        self.values: dict[str, list[str]] = {}
        self._layer: dict[str, int] = {}

    def add(self, layer: int, name: str, value: str) -> None:
        values = self.values.setdefault(name, [])
        if name not in _REPEATED and self._layer.get(name, layer) != layer:
            values.clear()
        self._layer[name] = layer
        if value not in values:
            values.append(value)

    def all(self, name: str) -> list[str]:
        return sorted(self.values.get(name, ()))

    def text(self, name: str, usual: str | None = None) -> str:
        """The one value; ``usual``: where none is said, which else is a fault."""
        values = self.values.get(name)
        if values:
            if len(values) == 1:
                return values[0]
            reason = f"{name} has one value, and here {len(values)}"
            raise _Wrong("several-values", reason, name, values[-1])
        if usual is None:
            raise _Wrong("missing", f"it has no {name}")
        return usual

    def word(self, name: str, known: Collection[str], usual: str | None = None) -> str:
        text = self.text(name, usual)
        if text not in known and text != usual:
            reason = f"{name} {text!r} is none of {', '.join(known)}"
            raise _Wrong("unknown-word", reason, name, text, did_you_mean(text, known))
        return text

    def matching(
        self, name: str, form: re.Pattern[str], said: str, usual: str | None = None
    ) -> str:
        """A text of a form, which is as ``said``."""
        text = self.text(name, usual)
        if form.fullmatch(text) is None and text != usual:
            raise _Wrong(f"bad-{name}", f"{text!r} is no {said}", name, text)
        return text

    def name(self) -> str:
        """A name that SQL can quote, and that has no dot."""
        return self.matching("name", _NAME, "name without . and `")

    def number(self, name: str, most: float = float("inf")) -> float | None:
        """At least 0; None where it is not said."""
        text = self.text(name, "")
        try:
            number = float(text) if text else 0.0
        except ValueError:
            number = -1.0
        if not 0 <= number <= most or number == float("inf"):
            to = "" if most == float("inf") else f" to {most:g}"
            raise _Wrong("bad-number", f"{name} {text} is no number from 0{to}", name, text)
        return number if text else None

    def numbers(self, record: type) -> dict[str, Any]:
        """All numbers of a record that are said, by the names of its fields."""
        said = [(field, name) for field, name in _numbers(record) if name in self.values]
        return {field: self.number(name) for field, name in said}


@cache
def _numbers(record: type) -> list[tuple[str, str]]:
    """The fields of a record that are numbers, each with its property."""
    return [(each.name, _camel(each.name)) for each in fields(record) if "float" in each.type]


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(map(str.capitalize, more))


class _Reader:
    def __init__(self, layers: Sequence[Iterable[Said]]) -> None:
        self._said: dict[str, _Resource] = {}
        self._faults: list[MarketFault] = []
        self._client = CLIENT
        for layer, statements in enumerate(layers):
            for subject, name, value, _, _ in statements:
                if subject not in self._said:
                    self._said[subject] = _Resource(subject)
                if name == RDF_TYPE and value.startswith(NAMESPACE):
                    self._said[subject].classes[value.removeprefix(NAMESPACE)] = None
                elif name.startswith(NAMESPACE):
                    self._said[subject].add(layer, name.removeprefix(NAMESPACE), value)

    def market(self) -> tuple[Market, list[MarketFault]]:
        cycles = self._all("CycleProvider", self._cycle_provider)
        self._client = next((uri for uri, of in cycles.items() if of.port is None), CLIENT)
        cycles.setdefault(self._client, CycleProvider(CLIENT, "client"))
        data = self._all("DataProvider", lambda of: DataProvider(of.uri, of.name()))
        owners = self._all("FunctionProvider", _function_provider)
        functions = self._all("Function", lambda of: self._function(of, owners))
        found = Market(data, owners, cycles, {}, functions)
        relations = self._all("Relation", lambda of: self._relation(of, found))
        self._check_names(cycles, "serverHost")
        for uri in self._check_names(relations, "provider"):
            del relations[uri]
        links = self._all("Link", lambda of: self._link(of, cycles))
        groups = self._all(
            "Group", lambda of: Group(of.uri, of.name(), frozenset(of.all("member")))
        )
        for uri in self._check_names(groups, "name"):
            del groups[uri]
        known = {f"group/{each.name}" for each in groups.values()}
        permissions = tuple(self._permission(of, known) for of in self._of_class("Permission"))
        places = {group for each in cycles.values() for group in each.groups}
        flows = tuple(self._flow(of, cycles, places) for of in self._of_class("Flow"))
        rules = tuple(links.values()), permissions, flows, groups
        reports = self._all("ValidationReport", lambda of: of.text("report", ""))
        return Market(data, owners, cycles, relations, functions, *rules, reports), self._faults

    # --- resources ------------------------------------------------------------------------

    def _of_class(self, of_class: str) -> list[_Resource]:
        found = (said for said in self._said.values() if of_class in said.classes)
        return sorted(found, key=lambda said: said.uri)

    def _all(self, of_class: str, make: Callable[[_Resource], R]) -> dict[str, R]:
        """The records of a class in the order of URIs, without those with a fault."""
        found: dict[str, R] = {}
        for said in self._of_class(of_class):
            try:
                found[said.uri] = make(said)
            except _Wrong as wrong:
                self._note(said, wrong)
        return found

    def _note(self, of: _Resource, wrong: _Wrong) -> None:
        code, reason, *more = wrong.said
        self._faults.append(MarketFault(code, reason, of.uri, *more))

    def _check_names(self, records: Mapping[str, Any], name: str) -> list[str]:
        """The URIs of records whose name another has that comes before; ``name``: of a property
        that they have, for the place."""
        first: dict[str, str] = {}
        again = [uri for uri, of in records.items() if first.setdefault(of.name, uri) != uri]
        for uri in again:
            reason = f"{records[uri].name} is the name of {first[records[uri].name]} too"
            self._faults.append(MarketFault("ambiguous-name", reason, uri, "name"))
        return again

    def _reference(self, of: _Resource, name: str, known: Collection[str], uri: str = "") -> str:
        """The URI that a property leads to, which has to be known."""
        uri = uri or of.text(name)
        if uri == CLIENT and self._client in known:
            return self._client
        if uri not in known:
            is_there = uri in self._said and bool(self._said[uri].classes)
            said = "has a fault, or another class" if is_there else "is not in the catalog"
            hint = did_you_mean(uri, known)
            raise _Wrong("no-such-resource", f"{name} is <{uri}>, which {said}", name, uri, hint)
        return uri

    def _cycle_provider(self, of: _Resource) -> CycleProvider:
        port = of.number("serverPort", _PORT_MAX)
        machine = self._said.get(of.text("serverInformation", ""), _Resource(""))
        said = {
            "memory_megabytes": machine.number("memory"),
            "cpu_megahertz": machine.number("cpu"),
        }
        return CycleProvider(
            of.uri,
            of.name(),
            of.text("serverHost", "" if port is None else None),
            None if port is None else int(port),
            frozenset(of.all("group")),
            cores=max(1, int(machine.number("cores") or 1)),
            **of.numbers(CycleProvider),
            **{name: value for name, value in said.items() if value is not None},
        )

    def _function(self, of: _Resource, owners: Collection[str]) -> Function:
        text = of.text("signature")
        with _types("signature", text):
            inputs, outputs = read_signature(text)
        kind = of.word("kind", ("scalar", "table"))
        if (kind == "scalar") != (outputs[0][0] == ""):
            reason = f"a {kind} function does not give {text.partition('->')[2].strip()}"
            raise _Wrong("bad-signature", reason, "signature", text)
        return Function(
            of.uri,
            of.name(),
            self._reference(of, "provider", owners),
            kind,
            inputs,
            outputs,
            of.text("archive", ""),
            of.matching("digest", _DIGEST, "sha256: and 64 digits", ""),
            certificate=of.text("certificate", "") or None,
            **of.numbers(Function),
        )

    def _relation(self, of: _Resource, there: Market) -> Relation:
        provider = there.data_providers[self._reference(of, "provider", there.data_providers)]
        read_at = [
            self._reference(of, "readAt", there.cycle_providers, each) for each in of.all("readAt")
        ]
        if not read_at:
            raise _Wrong("missing", "it has no readAt: a cycle provider that can read it")
        form, wrapper, columns = of.word("format", FORMATS), None, Columns()
        if of.values.get("wrapper"):
            wrapper = there.functions[self._reference(of, "wrapper", there.functions)]
            if form != "files" or wrapper.kind != "table" or wrapper.inputs != WRAPPED:
                reason = "a wrapper is a table function of (path STRING, content BINARY) for files"
                raise _Wrong("bad-wrapper", reason, "wrapper", wrapper.uri)
            columns = wrapper.outputs
        elif form == "files":
            columns = WRAPPED
        usual = ARCHIVE_SCHEMA if form == "archive" else "" if columns or form == "query" else None
        text = of.text("schema", usual)
        with _types("schema", text):
            columns = read_columns(text) if text else columns
        options, secrets = (_pairs(of, name) for name in ("option", "secret"))
        refreshed = of.text("refreshed", "")
        return Relation(
            of.uri,
            f"{provider.name}.{of.name()}",
            provider.uri,
            tuple(dict.fromkeys(read_at)),
            form,
            of.text("location", "" if form == "archive" else None),
            self._columns(of, columns),
            refreshed=_moment(refreshed) if refreshed else None,
            options=options,
            wrapper=None if wrapper is None else wrapper.uri,
            secrets=secrets,
            **of.numbers(Relation),
        )

    def _columns(self, of: _Resource, columns: Columns) -> tuple[Column, ...]:
        """With their statistics."""
        found = {name.lower(): Column(name, form) for name, form in columns}
        for uri in of.values.get("column", ()):  # in the order of layers
            said = self._said.get(uri, _Resource(uri))
            name = said.name()
            known = found.get(name.lower())
            if known is None:
                hint = did_you_mean(name, found)
                reason = f"the schema has no column {name}"
                raise _Wrong("unknown-column", reason, "column", uri, hint)
            said.number("nulls", 1.0)
            low, high = said.text("minimum", ""), said.text("maximum", "")
            figures = said.numbers(Column)
            more = {"minimum": low or None, "maximum": high or None, **figures}
            found[name.lower()] = replace(known, **more)
        return tuple(found.values())

    def _link(self, of: _Resource, cycles: Collection[str]) -> Link:
        source, target = (self._reference(of, name, cycles) for name in ("from", "to"))
        return Link(source, target, **of.numbers(Link))

    # --- rules: one that is not clear stays, and forbids ----------------------------------

    def _permission(self, of: _Resource, groups: Collection[str]) -> Permission:
        resource, classes = self._governed(of, "resource")
        form = "user/NAME, group/NAME, anonymous or *"
        subject = self._clear(of, lambda: of.matching("subject", _SUBJECT, form))
        if subject.startswith("group/") and subject not in groups:
            reason = f"no {subject} is in the catalog"
            self._note(
                of, _Wrong("bad-subject", reason, "subject", subject, did_you_mean(subject, groups))
            )
        right = self._clear(of, lambda: of.word("right", RIGHTS))
        if right and classes and classes.isdisjoint(RIGHTS[right]):
            reason = f"{right} is a right about {' or '.join(RIGHTS[right])}"
            self._note(of, _Wrong("wrong-right", reason, "right", right))
        return Permission(of.uri, subject, right, resource)

    def _flow(self, of: _Resource, cycles: Collection[str], groups: Collection[str]) -> Flow:
        resource, classes = self._governed(of, "what")
        if classes and classes.isdisjoint(FLOWING):
            reason = f"a flow is of a {', '.join(FLOWING)}"
            self._note(of, _Wrong("wrong-flow", reason, "what", resource))
        is_to = "to" in of.values
        to = self._clear(of, lambda: self._reference(of, "to", cycles)) if is_to else ""
        group = self._clear(of, lambda: of.word("toGroup", groups, ""))
        only = self._clear(of, lambda: of.word("only", ("aggregates",), ""))
        if "only" in of.values and not only:
            to = group = ""
        return Flow(of.uri, resource, to or None, group or None, bool(only))

    def _clear(self, of: _Resource, read: Callable[[], str]) -> str:
        """A value of a rule, "" with a fault where it is wrong."""
        try:
            return read()
        except _Wrong as wrong:
            self._note(of, wrong)
            return ""

    def _governed(self, of: _Resource, name: str) -> tuple[str, set[str]]:
        """The resource that a rule is about, and its classes."""
        uri = self._clear(of, lambda: of.text(name))
        classes = {*self._said.get(uri, _Resource(uri)).classes}
        if uri and not classes:
            there = {each for each, said in self._said.items() if said.classes}
            self._clear(of, lambda: self._reference(of, name, there))
        return uri, classes


def _pairs(of: _Resource, name: str) -> tuple[tuple[str, str], ...]:
    """Of ``option`` or ``secret``: options with their values, or with the names of secrets."""
    pairs = [each.partition("=") for each in of.all(name)]
    for key, sign, value in pairs:
        if not (key and sign and (name == "option" or (value and "@" not in value))):
            said = f"{key}{sign}{value}"
            wanted = "KEY=VALUE" if name == "option" else "OPTION=NAME, a name without @"
            raise _Wrong("bad-option", f"the {name} {said!r} is not {wanted}", name, said)
    return tuple((key, value) for key, _, value in pairs)


def _function_provider(of: _Resource) -> FunctionProvider:
    return FunctionProvider(of.uri, of.name(), of.text("location", ""))


def _moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise _Wrong("bad-time", f"{text!r} is no time", "refreshed", text) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


@contextmanager
def _types(name: str, text: str) -> Iterator[None]:
    """A text of types that cannot be read in here is a fault of this property."""
    try:
        yield
    except NoType as error:
        said = error.fault
        reason = f"{name}, character {said.column}: {said.reason}, expected {said.expected}"
        raise _Wrong(f"bad-{name}", reason, name, text, said.hint) from None
