"""StoreOptions: where the nodes of a network have their rows (``[stores]`` of a topology file).

By itself each has an SQLite file in the data directory.  One with a PostgreSQL server can have a
standby, a second process at an address of its own that goes on with the rows.
"""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import parse_qs, urlsplit

from msgspec import Meta, Struct

from overlay.errors import TopologyError
from overlay.toml_table import Text
from overlay.unfit import quote

SQLITE: Final = "sqlite"
TRIAL: Final = "trial"
"""A PostgreSQL server in the data directory, that whoever starts the network starts as well."""

_EXPECTED = f'"postgresql://HOST/DATABASE", "{SQLITE}" or "{TRIAL}"'
_SECRETS = ("password", "sslpassword")


class StoreOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The stores of a network."""

    url: Text = SQLITE
    """of all nodes that do not say `store`; also `"trial"`: a PostgreSQL server that is started
    with the network"""
    lease_s: Annotated[float, Meta(ge=1, le=3600)] = 2.0
    """how long a process may be silent before its standby takes its place"""

    def check(self) -> None:
        """TopologyError where there is no such place."""
        check_store("url", self.url)


def check_store(key: str, value: str) -> None:
    """TopologyError for what is no place for rows, or has a password in it."""
    if value in (SQLITE, TRIAL):
        return
    try:
        url = urlsplit(value)
        secrets = [name for name in parse_qs(url.query) if name in _SECRETS]
        is_secret = url.password is not None or bool(secrets)
    except ValueError:
        raise TopologyError("", key, f"is no URL, expected {_EXPECTED}") from None
    if url.scheme not in ("postgresql", "postgres"):
        raise TopologyError("", key, f"{quote(value)} is no store, expected {_EXPECTED}")
    if is_secret:
        raise TopologyError(
            *("", key),
            "has a password in it, expected none: name it in the file that PGPASSFILE names, in a "
            "service file, or in PGPASSWORD",
        )
