"""What a user is told whose profile can match no message of any source, as their schemas say.

Only where every source has a schema, and the profile is impossible under each: a source without
one may publish anything.  It is a warning, not a refusal, as sources come and go.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import cast

from formats import Schema, SchemaKind
from formats.allowed_content import read_allowed_content
from registration.catalog import SourceEntry
from yfilter.language.schema_check import SchemaCheck

# Different schemas that one profile is held against; where there are more nothing is said.
SCHEMAS_MAX = 16


def schema_warnings(text: str, sources: Collection[SourceEntry]) -> list[str]:
    """One warning for each schema, with the step that is impossible; none if one allows it.

    ``text`` is a profile that was accepted.
    """
    schemas = {(entry.schema_name, entry.schema_kind, entry.schema) for entry in sources}
    if len(schemas) > SCHEMAS_MAX or any(not data for _, _, data in schemas):
        return []
    found = []
    for name, kind, data in sorted(schemas):
        warning = _check(Schema(name, cast("SchemaKind", kind), data)).warning(text)
        if warning is None:
            return []
        found.append(f"it can match no message that follows {name}: {warning}")
    return found


@lru_cache(maxsize=SCHEMAS_MAX)
def _check(schema: Schema) -> SchemaCheck:
    return SchemaCheck(read_allowed_content(schema))
