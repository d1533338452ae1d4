"""What a user is told whose profile can match no message of any source, as their schemas say; and
what another schema takes from the results of profiles that still match.

Only where every source has a schema, and the profile is impossible under each: a source without
one may publish anything.  It is a warning, not a refusal, as sources come and go.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import cast

from formats import Schema, SchemaKind
from formats.allowed_content import read_allowed_content
from overlay.access import Access
from registration.catalog import Catalog, SourceEntry
from yfilter.graph.graph_query import is_graph_query
from yfilter.language.query_parser import parse_profile
from yfilter.language.schema_check import SchemaCheck
from yfilter.projection.profile_needs import needs_of

# Different schemas that one profile is held against; where there are more nothing is said.
SCHEMAS_MAX = 16
PATHS_MAX = 4_096  # of which it is remembered what schemas say: many profiles need the same


def schemas_of(sources: Collection[SourceEntry]) -> list[Schema]:
    """The schemas that profiles are held against; none if nothing can be said."""
    schemas = {(entry.schema_name, entry.schema_kind, entry.schema) for entry in sources}
    if len(schemas) > SCHEMAS_MAX or any(not data for _, _, data in schemas):
        return []
    return [Schema(name, cast("SchemaKind", kind), data) for name, kind, data in sorted(schemas)]


def schemas_seen(catalog: Catalog, access: Access, user: str) -> list[Schema]:
    """The same of the sources that a user may see."""
    return schemas_of([e for e in catalog.sources.values() if access.sees(user, e.source)])


def schema_warnings(text: str, schemas: Sequence[Schema]) -> list[str]:
    """One warning for each schema, with the step that is impossible; none if one allows it.

    ``text`` is a profile that was accepted.
    """
    found = []
    for schema in schemas:
        warning = _check(schema).warning(text)
        if warning is None:
            return []
        found.append(f"it can match no message that follows {schema.name}: {warning}")
    return found


def lost_paths(text: str, before: Sequence[Schema], now: Sequence[Schema]) -> list[str]:
    """One warning for each path that the results of a profile need, and that messages may have by
    the schemas of ``before`` and by none of ``now``."""
    if is_graph_query(text):
        return []
    paths = {path for need in needs_of(parse_profile(text)) for path in need.paths}
    return [lost for path in sorted(paths) if (lost := _lost(path, tuple(before), tuple(now)))]


@lru_cache(maxsize=PATHS_MAX)
def _lost(path: str, before: tuple[Schema, ...], now: tuple[Schema, ...]) -> str:
    """ "" where nothing is."""
    warnings = schema_warnings(path, now)
    if not warnings or schema_warnings(path, before):
        return ""
    return f"its results need {path}: {warnings[0]}"


@lru_cache(maxsize=SCHEMAS_MAX)
def _check(schema: Schema) -> SchemaCheck:
    return SchemaCheck(read_allowed_content(schema))
