"""rows.json: a row of each table, the database of a store, and a file of an archive.

Each table gets a record made from the types of its fields alone, so that a field that is new, gone
or of another type shows here, and whether rows of an earlier release may lack it.
"""

from __future__ import annotations

import ast
import importlib
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from onyx.broker.archive.message_archive import MessageArchive
from overlay.archive import ArchiveOptions
from overlay.archive_file import rows_of_file
from overlay.link.events import ArchiveMessage, Delete, Put
from overlay.link.store import Store
from overlay.link.store_head import SLOT_BYTES, Mark, head_file, read_head, write_head
from overlay.link.tables import Table
from tests.golden.golden_file import as_json

ROOT = Path(__file__).parents[2]
PACKAGES = ("overlay", "registration", "onyx")
SECOND = 1_800_000_000.25  # since 1970, by the clock of the archive


def rows() -> str:
    tables = {f"{where}/{table.space}": _table(table, kind) for where, table, kind in _tables()}
    with tempfile.TemporaryDirectory() as directory:
        made = {
            "tables": dict(sorted(tables.items())),
            "store": _store(Path(directory) / "s.db"),
            "head": _head(Path(directory) / "h.db"),
            "archive": _archive(Path(directory) / "archive"),
        }
    return as_json(made)


def _tables() -> Iterator[tuple[str, Table[Any], Any]]:
    """Each table of the product, in which package it is (both the service and brokers have a
    ``plan``), and the type of its records."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                match node:
                    case ast.Assign(
                        targets=[ast.Name(name)],
                        value=ast.Call(func=ast.Name("Table"), args=[_, kind]),
                    ):
                        parts = path.relative_to(ROOT).with_suffix("").parts
                        module = importlib.import_module(".".join(parts))
                        record = eval(ast.unparse(kind), vars(module))
                        yield package, getattr(module, name), record


def _table(table: Table[Any], kind: Any) -> dict[str, object]:
    record = _sample(kind)
    packed = table.pack(record)
    (first, *_) = _names(kind) or [""]
    assert table.read(getattr(record, first, ""), packed) == record, table.space
    stored = msgspec.msgpack.decode(packed)
    fields = [(name, hint) for name, hint in _fields(kind) if name in stored]
    optional = [name for name, _ in fields if not _is_needed(kind, name)]
    return {
        "fields": {name: _said(hint) for name, hint in fields} or _said(kind),
        "may_be_missing": optional,
        "hex": packed.hex(),
    }


def _fields(kind: Any) -> list[tuple[str, Any]]:
    names = _names(kind)
    hints = get_type_hints(kind) if names else {}
    return [(name, hints[name]) for name in names]


def _names(kind: Any) -> list[str]:
    return list(getattr(kind, "__struct_fields__", getattr(kind, "_fields", ())))


def _is_needed(kind: Any, name: str) -> bool:
    if hasattr(kind, "_field_defaults"):
        return name not in kind._field_defaults
    return any(each.name == name and each.required for each in msgspec.structs.fields(kind))


def _said(hint: Any) -> str:
    """A type by its name, without the module, which is no matter of what is stored."""
    arguments = get_args(hint)
    if get_origin(hint) is Literal:
        return "str"
    if isinstance(hint, type) and not arguments:
        return hint.__name__
    if get_origin(hint) is UnionType or NoneType in arguments:
        return " | ".join("None" if each is NoneType else _said(each) for each in arguments)
    inner = ", ".join("..." if each is Ellipsis else _said(each) for each in arguments)
    origin = get_origin(hint)
    return f"{getattr(origin, '__name__', origin)}[{inner}]"


def _sample(hint: Any, name: str = "") -> Any:
    """A value of the type, which says the name of its field where it is a text."""
    origin, arguments = get_origin(hint), get_args(hint)
    if _names(hint):
        return hint(**{field: _sample(of, field) for field, of in _fields(hint)})
    if hint is object:
        return ["anything", 1]
    if origin is Literal:
        return arguments[0]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    if origin is UnionType or NoneType in arguments:
        return _sample(next(each for each in arguments if each is not NoneType), name)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(_sample(each, name) for each in arguments)
    if origin in (list, set, tuple, frozenset):
        return origin([_sample(arguments[0], name)])
    if origin in (dict, Mapping) or getattr(origin, "__name__", "") == "Mapping":
        return {name or "key": _sample(arguments[1], name)}
    scalars: dict[Any, Any] = {int: 7, float: 0.5, bool: True, str: name or "text", bytes: b"\x07"}
    return scalars[hint] if hint in scalars else hint()  # a record without a field


def _store(path: Path) -> dict[str, object]:
    """What SQLite has after a few commits; only the digests of the chain are random."""
    with Store(path) as store:
        store.commit([Put("a", "k", b"1"), Put("a", "l|2", b""), Put("b", "é", b"\x00\xff")])
        store.commit([Delete("b", "é"), Put("a", "k", b"one")])
    connection = sqlite3.connect(path)
    try:
        ask = connection.execute
        return {
            "application_id": ask("PRAGMA application_id").fetchone()[0],
            "format": ask("PRAGMA user_version").fetchone()[0],
            "schema": [sql for (sql,) in ask("SELECT sql FROM sqlite_schema ORDER BY sql") if sql],
            "rows": [
                [space, key, check_sum, value.hex()]
                for space, key, check_sum, value in ask(
                    "SELECT space, key, sum, value FROM checked_rows ORDER BY space, key"
                )
            ],
            "ledger": [list(row) for row in ask("SELECT * FROM ledger WHERE space != ''")],
            "commits": ask("SELECT count FROM ledger WHERE space = ''").fetchone()[0],
        }
    finally:
        connection.close()


def _head(path: Path) -> dict[str, object]:
    head = head_file(path)
    write_head(head, Mark(3, bytes(range(16))))
    assert read_head(head)[0].number == 3
    data = head.read_bytes()
    slot = data[:SLOT_BYTES].rstrip(b"\0")
    return {"name": head.name, "bytes": len(data), "slot": slot.hex()}


def _archive(directory: Path) -> dict[str, str]:
    archive = MessageArchive("B1", ArchiveOptions(directory), lambda: SECOND)
    archive.take(ArchiveMessage("s1", 1, "<m>é</m>".encode(), 1_795_903_200_123_456))
    archive.take(ArchiveMessage("s1", 2, b"<m/>", 0))
    archive.write_waiting()
    archive.close()
    return {
        file.name: "".join(row.line().decode() for row in rows_of_file(file))
        for file in directory.iterdir()
    }
