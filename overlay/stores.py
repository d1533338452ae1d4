"""StoreOptions: where the nodes of a network have their rows (``[stores]`` of a topology file).

By itself each has an SQLite file in the data directory.  One with a PostgreSQL server can have a
standby, a second process at an address of its own that goes on with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final
from urllib.parse import parse_qs, urlsplit

from overlay.toml_table import TomlTable, quote, toml_text

SQLITE: Final = "sqlite"
TRIAL: Final = "trial"
"""A PostgreSQL server in the data directory, that whoever starts the network starts as well."""

_EXPECTED = f'"postgresql://HOST/DATABASE", "{SQLITE}" or "{TRIAL}"'
_SECRETS = ("password", "sslpassword")


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The stores of a network.

    url        of all nodes that do not say ``store``: of a PostgreSQL server, SQLITE or TRIAL
    lease_s    how long a process may be silent before its standby goes on with its rows
    """

    url: str = SQLITE
    lease_s: float = 2.0


def read_stores(top: TomlTable) -> StoreOptions:
    """``[stores]`` of a topology file; TopologyError for what is wrong in it."""
    table = top.table("stores", [field.name for field in fields(StoreOptions)])
    default = StoreOptions()
    return StoreOptions(
        url=read_store(table, "url", default.url),
        lease_s=table.number("lease_s", 1, 3600, default.lease_s),
    )


def read_store(table: TomlTable, key: str, default: str) -> str:
    """Where rows are; TopologyError for what is no such place, or has a password in it."""
    value = table.text(key, default)
    if value == TRIAL and key in table and table.path != "stores":
        raise table.refusal(key, f'"{TRIAL}" is of all nodes: say it as url in [stores]')
    if value in (SQLITE, TRIAL):
        return value
    try:
        url = urlsplit(value)
        secrets = [name for name in parse_qs(url.query) if name in _SECRETS]
        is_secret = url.password is not None or bool(secrets)
    except ValueError:
        raise table.refusal(key, f"is no URL, expected {_EXPECTED}") from None
    if url.scheme not in ("postgresql", "postgres"):
        raise table.refusal(key, f"{quote(value)} is no store, expected {_EXPECTED}")
    if is_secret:
        raise table.refusal(
            key,
            "has a password in it, expected none: name it in the file that PGPASSFILE names, in a "
            "service file, or in PGPASSWORD",
        )
    return value


def stores_to_toml(options: StoreOptions) -> Iterator[str]:
    """The lines of ``[stores]``, if they say something."""
    if options == StoreOptions():
        return
    yield from ("", "[stores]", f"url = {toml_text(options.url)}", f"lease_s = {options.lease_s!r}")
