"""What commands on stores print with ``--json``; json_lines.py says which prints which."""

from __future__ import annotations

from onyx.cli.json_types import Line


class StoreState(Line):
    store: str
    whole: bool
    format: int
    commit: int | None
    rows: dict[str, int]
    damaged: list[dict[str, str]]
    missing: dict[str, int]
    faults: list[str]
    lost: str
    repaired: bool = False


class StoreCopied(Line):
    store: str
    file: str
    commit: int


class BackedUpStore(Line):
    node: str
    commit: int
    sha256: str


class NetworkCopy(Line):
    file: str
    network: str
    when: str
    release: str
    stores: list[BackedUpStore]


class NetworkBackup(NetworkCopy):
    bytes: int
    held_ms: float  # for so long commits waited


class NetworkRestored(NetworkCopy):
    data: str


class CatalogRebuilt(Line):
    done: bool
    former: str  # where the store of before is; "" where there was none
    said: str
