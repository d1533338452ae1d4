"""SourceSchemas: the schemas of the catalog's sources, and which these are, by digest."""

from __future__ import annotations

from hashlib import sha256
from typing import cast

from formats.schema import Schema, SchemaKind
from registration.catalog import Catalog, SourceEntry

LOOK_AT = 32  # schemas in a look; each may have 4 MB


class SourceSchemas:
    """What is not whole counts as no schema: it does not say what a message cannot have."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._seen = -1
        self._to_do: list[SourceEntry] = []
        self._known: dict[tuple[str, int], str] = {}  # (source, version) -> digest
        self.digests: list[str] = []  # sorted, as of the last look that saw all

    def look(self) -> bool:
        """Look at some that are new; whether all have been looked at."""
        if self._seen != self._catalog.sources_changed:
            self._seen = self._catalog.sources_changed
            there = self._with_schema()
            self._known = {key: d for key, d in self._known.items() if key in there}
            self._to_do = [entry for key, entry in there.items() if key not in self._known]
        elif not self._to_do:
            return True
        for entry in self._to_do[:LOOK_AT]:
            named = f"{entry.schema_kind}\0{entry.schema_name}\0".encode()
            self._known[entry.source, entry.version] = sha256(named + entry.schema).hexdigest()[:16]
        del self._to_do[:LOOK_AT]
        self.digests = sorted(set(self._known.values()))
        return not self._to_do

    def schemas(self) -> tuple[tuple[Schema, ...], bool]:
        """Each once, and whether there are sources without."""
        there = self._with_schema()
        found = {
            Schema(entry.schema_name, cast("SchemaKind", entry.schema_kind), entry.schema): None
            for entry in there.values()
        }
        return tuple(found), len(there) < len(self._catalog.sources)

    def _with_schema(self) -> dict[tuple[str, int], SourceEntry]:
        return {
            (entry.source, entry.version): entry
            for entry in self._catalog.sources.values()
            if entry.schema and not entry.schema_unread and not entry.is_removed
        }
