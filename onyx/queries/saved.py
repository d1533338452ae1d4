"""Queries that are saved by a name: relations of format ``query`` in a catalog (composition).

A file of saved queries has one a line, so that one is replaced when it is saved again; whatever
else is in the file stays::

    <#mine.cheap> a q:Relation ; q:name "cheap" ; … ; q:location "SELECT …" .
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from onyx.data_directory import write_atomically
from onyx.errors import UsageError, file_errors
from onyx.queries.catalog import Catalog
from registration.queries.providers import CLIENT, NAMESPACE
from registration.queries.query_graph import Output
from registration.queries.sql_reader import read_query


def save_query(name: str, sql: str, catalog: Catalog, file: Path) -> tuple[Output, ...]:
    """Make a query the relation ``PROVIDER.NAME`` of a file of Turtle, and give its columns.

    The text may name relations of the catalog and of the file.  Where neither has a data provider
    of that name, the file gets one.  UsageError for the name; QueryRefused for the text, also where
    saved queries would be made of each other; MessageRefused for a fault of the file;
    UnreadableInput, UnwritableOutput.  The file is as it was then."""
    provider, _, own = name.partition(".")
    if not (provider and own) or "." in own or "`" in name or file.suffix != ".ttl":
        raise UsageError(f"expected PROVIDER.NAME and a file .ttl, and not {name} and {file}")
    with file_errors(file, "read"):
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    owners = catalog.with_text(file, "\n".join(lines)).market.data_providers.values()
    known = {each.name: f"<{each.uri}>" for each in owners}
    owner = known.get(provider, f"<#{quote(provider)}>")
    subject = f"<#{quote(provider)}.{quote(own)}>"
    lines = [each for each in lines if not each.startswith(f"{subject} ")]
    if provider not in known:
        lines.append(_said(owner, "DataProvider", {"name": provider}))
    texts = {"name": own, "format": "query", "location": sql.strip()}
    places = {"provider": owner, "readAt": f"<{CLIENT}>"}
    lines.append(_said(subject, "Relation", texts, places))
    text = "".join(f"{line}\n" for line in lines)
    asked = f"SELECT * FROM `{provider}`.`{own}`"
    market = catalog.with_text(file, text).market_for(asked)
    columns = read_query(asked, market).graph.select
    with file_errors(file):
        write_atomically(file, text.encode(), mode=0o644)
    return columns


def _said(
    subject: str, kind: str, texts: Mapping[str, str], references: Mapping[str, str] | None = None
) -> str:
    """A resource in a line of Turtle that needs no prefixes."""
    said = [f"a <{NAMESPACE}{kind}>"]
    said += (f"<{NAMESPACE}{name}> {uri}" for name, uri in (references or {}).items())
    said += (
        f"<{NAMESPACE}{name}> {json.dumps(text, ensure_ascii=False)}"
        for name, text in texts.items()
    )
    return f"{subject} {' ; '.join(said)} ."
