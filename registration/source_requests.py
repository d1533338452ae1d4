"""What is asked about data sources: one verb, one function; ``source.register`` is in
registration_requests.py.

=================  ===========================================================================
``source.list``     those that whoever asks may see
``source.show``     one of them, by its id or its name
``source.update``   what is said of ``location``, ``rate``, ``size``, ``schema`` and ``validate``;
                    answered when every broker has it, with the profiles that can match nothing any
                    more
``source.remove``   answered when its root broker has let go of it
=================  ===========================================================================

Whose a source is, and who may operate the network, changes and removes it; who may only publish as
it does not.  Where ``source.register`` says ``ensure``, a source of the same name and owner is
updated to what is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from msgspec import UNSET
from msgspec.structs import asdict, replace

from formats import (
    FORMS,
    Schema,
    SchemaKind,
    Validation,
    read_compression_dictionary,
)
from formats.graph.iris import find_bad_character, has_scheme
from overlay import answers, verbs
from overlay.access import Right
from overlay.link.frames import Request
from overlay.link.part import Part
from overlay.link.principal import Principal
from overlay.link.request_server import Changed, RequestRefused, RequestServer, Verb
from overlay.settings import USUAL_SOURCE, SourceSettings, settings_of
from registration.catalog import Catalog, SourceEntry
from registration.schema_reading import SchemaReading
from registration.source_changes import SourceChanges

LISTED_MAX = 10  # ids in an error


Settings: TypeAlias = dict[str, Any]
"""The settings that a source is registered with, by the names of SourceEntry."""

FOREVER = ("compression", "base")
"""The settings that cannot be changed: messages that are under way depend on them."""


class SourceRequests(Part):
    """Answers from the catalog, and has sources changed."""

    def __init__(
        self,
        catalog: Catalog,
        changes: SourceChanges,
        schemas: SchemaReading,
        server: RequestServer,
    ) -> None:
        self._catalog = catalog
        self._changes = changes
        self._schemas = schemas
        self._server = server
        self.result = changes.result
        self.verbs = (
            Verb(verbs.SourceList, self._list),
            Verb(verbs.SourceShow, self._show),
            Verb(verbs.SourceSchema, self._show_schema),
            Verb(verbs.SourceUpdate, self._update, self._meant),
            Verb(verbs.SourceRemove, self._remove, self._meant),
        )

    # --- for source.register --------------------------------------------------------------

    def settings(
        self, connection: int, request: Request, asked: verbs.SourceRegister
    ) -> Settings | None:
        """What a request says, the rest by default; None: it is handled again when its schema is
        read."""
        schema: Schema | None = None
        unread: tuple[str, ...] = ()
        if asked.schema_name:
            read = self._schemas.read(asked.schema_name, asked.schema, connection, request)
            if read is None:
                return None
            schema, unread = read
        return {
            **asdict(USUAL_SOURCE),
            **settings_of(asked, SourceSettings),
            **_with_schema(asked, Validation.OFF, schema, unread),
            "compression": _compression(asked.compression),
            "base": _base(asked.base),
        }

    def named_alike(self, asked: verbs.SourceRegister, owner: str) -> SourceEntry | None:
        """The source that a request with ``ensure`` is about, if there is one already.

        RequestRefused "ambiguous-name" where there are several.
        """
        if not asked.ensure:
            return None
        name = asked.name
        if not name or asked.key:
            raise RequestRefused("bad-argument", "'ensure' takes a 'name', and no 'key'")
        sources = self._catalog.sources.values()
        alike = [e for e in sources if (e.name, e.owner) == (name, owner) and not e.is_removed]
        return _one(name, alike) if alike else None

    def ensure(
        self, entry: SourceEntry, settings: Settings, connection: int, request: Request
    ) -> answers.SourceInfo | Changed | None:
        """A source that is there has these settings from now on."""
        wanted = replace(entry, **settings)
        fixed = [name for name in FOREVER if getattr(entry, name) != getattr(wanted, name)]
        if fixed:
            raise RequestRefused(
                "other-content",
                f"{entry.name} is there, as {entry.source}, with another {' and '.join(fixed)}, "
                f"which cannot be changed; remove {entry.source}, or register under another name",
            )
        return self._changes.update(entry, wanted, connection, request.request)

    # --- verbs ----------------------------------------------------------------------------

    def _list(self, connection: int, request: Request, asked: verbs.SourceList) -> answers.Sources:
        return answers.Sources([self.result(entry) for entry in self._seen(connection)])

    def _show(
        self, connection: int, request: Request, asked: verbs.SourceShow
    ) -> answers.SourceInfo:
        return self.result(self._named(connection, asked))

    def _show_schema(
        self, connection: int, request: Request, asked: verbs.SourceSchema
    ) -> answers.SourceSchema:
        entry = self._named(connection, asked)
        return answers.SourceSchema(entry.schema_name, entry.schema_kind, entry.schema)

    def _update(
        self, connection: int, request: Request, asked: verbs.SourceUpdate
    ) -> answers.SourceInfo | Changed | None:
        entry = self._mine(connection, asked)
        wanted = replace(entry, **settings_of(asked, SourceSettings))
        if asked.schema_name is not UNSET or asked.validate is not UNSET:
            read = self._schema_wanted(entry, connection, request, asked)
            if read is None:
                return None
            wanted = replace(wanted, **_with_schema(asked, Validation(entry.validation), *read))
        return self._changes.update(entry, wanted, connection, request.request)

    def _remove(
        self, connection: int, request: Request, asked: verbs.SourceRemove
    ) -> answers.SourceGone | Changed | None:
        removed = self._changes.removed_by(request.request)
        if removed is not None and removed not in self._catalog.sources:
            return answers.SourceGone(removed)
        entry = self._mine(connection, asked)
        return self._changes.remove(entry, connection, request.request)

    # --- helpers --------------------------------------------------------------------------

    def _seen(self, connection: int) -> Iterator[SourceEntry]:
        asker, access = self._server.principal(connection), self._server.access.now
        for entry in self._catalog.sources.values():
            if access.may(asker, Right.SUBSCRIBE, entry.source) or any(
                access.may(asker, right, entry.source, entry.owner)
                for right in (Right.PUBLISH, Right.READ_ARCHIVE)
            ):
                yield entry

    def _named(self, connection: int, asked: verbs.SourceNamed) -> SourceEntry:
        return _one(asked.source, self._called(connection, asked.source))

    def _called(self, connection: int, named: str) -> list[SourceEntry]:
        """The sources with the id that a request says, or that name; those that are being removed
        by their ids only.  RequestRefused "unknown-source" where there is none."""
        seen = [entry for entry in self._seen(connection) if named in (entry.source, entry.name)]
        found = [entry for entry in seen if entry.source == named]
        found = found or [entry for entry in seen if not entry.is_removed]
        if not found:
            raise RequestRefused("unknown-source", f"there is no source {named!r}")
        return found

    def _meant(
        self, asked: verbs.SourceUpdate | verbs.SourceRemove, asker: Principal
    ) -> Iterator[tuple[str, str]]:
        """For the table of access: those that are named, only their own if there are any."""
        named = asked.source
        every = self._catalog.sources.values()
        found = [entry for entry in every if named in (entry.source, entry.name)]
        mine = [entry for entry in found if self._may_change(asker, entry)]
        for entry in mine or found:
            yield entry.source, entry.owner

    def _mine(self, connection: int, asked: verbs.SourceUpdate | verbs.SourceRemove) -> SourceEntry:
        """One that whoever asks may change; RequestRefused "not-authorised"."""
        found = self._called(connection, asked.source)
        asker = self._server.principal(connection)
        mine = [entry for entry in found if self._may_change(asker, entry)]
        if not mine:
            entry = found[0]
            raise RequestRefused(
                "not-authorised",
                f"{asked.verb}: {asker} may not change {entry.source}, which is of "
                f"{entry.owner or 'nobody'}; its owner or an operator may",
            )
        return _one(asked.source, mine)

    def _may_change(self, asker: Principal | None, entry: SourceEntry) -> bool:
        access = self._server.access.now
        is_own = asker is None or str(asker) in (entry.owner, f"source/{entry.source}")
        return access.may(asker, Right.OPERATE) or (
            is_own and access.may(asker, Right.PUBLISH, entry.source, entry.owner)
        )

    def _schema_wanted(
        self, entry: SourceEntry, connection: int, request: Request, asked: verbs.SourceUpdate
    ) -> tuple[Schema | None, tuple[str, ...]] | None:
        """The schema that a source is to have, and what that has not; None: ask again."""
        if asked.schema_name is not UNSET:
            if not asked.schema_name:
                return None, ()
            return self._schemas.read(asked.schema_name, asked.schema, connection, request)
        if not entry.schema:
            return None, ()
        known = self._schemas.read(entry.schema_name, entry.schema, connection, request)
        if known is None:
            return None
        kind = cast("SchemaKind", entry.schema_kind)
        return Schema(entry.schema_name, kind, entry.schema), known[1]


def _one(name: str, alike: list[SourceEntry]) -> SourceEntry:
    """The only one of a name, of which there is one at least; RequestRefused "ambiguous-name"."""
    if len(alike) > 1:
        ids = ", ".join(entry.source for entry in alike[:LISTED_MAX])
        more = f" and {len(alike) - LISTED_MAX} more" if len(alike) > LISTED_MAX else ""
        raise RequestRefused(
            "ambiguous-name", f"{len(alike)} sources are called {name!r}: {ids}{more}; say the id"
        )
    return alike[0]


def _with_schema(
    asked: verbs.SourceSaid, default: Validation, schema: Schema | None, unread: tuple[str, ...]
) -> Settings:
    return Settings(
        schema_name=schema.name if schema else "",
        schema_kind=schema.kind if schema else "",
        schema=schema.data if schema else b"",
        schema_unread=unread,
        validation=_validation(asked, default, schema, unread),
    )


def _validation(
    asked: verbs.SourceSaid, default: Validation, schema: Schema | None, unread: tuple[str, ...]
) -> str:
    """``validate``: off, report or reject, which take a whole schema."""
    value = default.value if asked.validate is UNSET else asked.validate
    modes = [mode.value for mode in Validation]
    if value not in modes:
        raise RequestRefused(
            "bad-argument", f"'validate' must be one of {', '.join(modes)}, not {value!r}"
        )
    if value != Validation.OFF and (schema is None or unread):
        reason = "there is no schema" if schema is None else unread[0]
        raise RequestRefused("schema-refused", f"messages cannot be validated: {reason}")
    return value


def _base(base: str) -> str:
    """An absolute IRI, or none."""
    iri = base.encode()
    if base and (not has_scheme(iri) or find_bad_character(iri) >= 0):
        raise RequestRefused(
            "bad-argument", f"'base' must be an absolute IRI, such as http://a.example/, not {base}"
        )
    return base


def _compression(given: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """zstd dictionaries by the form that they are for, each under the version of its content."""
    forms = [form.value for form in FORMS]
    if not set(given) <= set(forms):
        expected = f"zstd dictionaries by form ({', '.join(forms)})"
        raise RequestRefused("bad-argument", f"'compression' must be {expected}")
    read = {form: read_compression_dictionary(data).data for form, data in given.items()}
    return dict(sorted(read.items()))
