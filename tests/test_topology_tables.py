"""The tables of keys in docs/topologies.md are those that the records of a topology file make.

``python -m tests.test_topology_tables`` makes them anew.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from formats.limits import INTEGER_MAX
from overlay.unfit import taken_apart

DOCUMENT = Path(__file__).parents[1] / "docs" / "topologies.md"
RECORDS = (
    *("overlay.topology:Topology", "overlay.nodes:RegistrationNode", "overlay.nodes:BrokerNode"),
    *("overlay.nodes:Link", "overlay.limits:Limits", "overlay.limits:TrainingLimits"),
    *("formats.limits:MessageLimits", "overlay.link.limits:LinkLimits"),
    *("overlay.archive:ArchiveOptions", "overlay.log_options:LogOptions"),
    *("overlay.access:AccessOptions", "overlay.oidc:OidcOptions", "overlay.stores:StoreOptions"),
    *("overlay.planning:PlanningOptions", "overlay.gateway:GatewayTable"),
    *("overlay.nodes:MetadataNode", "overlay.topology:AdminOptions"),
)
UNITS = {2**50: "PiB", 2**40: "TiB", 2**30: "GiB", 2**20: "MiB", 2**10: "KiB"}


def meanings(kind: type[Struct]) -> dict[str, str]:
    """By field of a record, or of what it is made of, what stands below it in the source."""
    found = {}
    for of in (kind,) if kind.__annotations__ else kind.__mro__[1:]:
        if Struct not in of.__mro__[1:]:
            break
        (tree,) = ast.parse(inspect.getsource(of)).body
        assert isinstance(tree, ast.ClassDef)
        for line, below in itertools.pairwise(tree.body):
            if isinstance(line, ast.AnnAssign) and isinstance(below, ast.Expr):
                assert isinstance(line.target, ast.Name)
                found[line.target.id] = " ".join(ast.literal_eval(below.value).split())
    return found


def shown(value: object, key: str) -> str:
    if type(value) is tuple:
        return f"`[{', '.join(shown(each, '').strip('`') for each in value)}]`" if value else "none"
    if isinstance(value, int | float) and not isinstance(value, bool):
        for size, unit in UNITS.items() if "bytes" in key and value else ():
            if value % size == 0:
                return f"{value // size:,} {unit}".replace(",", " ")
        return f"{value:,.15g}".replace(",", " ")
    return f'`"{value}"`' if value else "none"


def values(of: FieldInfo, kind: Any, says: Mapping[str, Any]) -> str:
    if says.get("le") == INTEGER_MAX:
        return f"from {shown(says['ge'], of.name)}"
    if "ge" in says:
        return f"{shown(says['ge'], of.name)} to {shown(says['le'], of.name)}"
    if get_origin(kind) is Literal:
        return ", ".join(shown(each, "") for each in get_args(kind))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return ", ".join(shown(str(each), "") for each in kind)
    return ""


def record(name: str) -> type[Struct]:
    module, _, kind = name.partition(":")
    found = getattr(import_module(module), kind)
    assert issubclass(found, Struct)
    return found


def table(name: str) -> str:
    kind = record(name)
    meaning = meanings(kind)
    rows = [(of, *taken_apart(of.type)) for of in fields(kind)]
    rows = [(of, inner, says) for of, inner, says in rows if of.name in meaning]
    has_policy = any("policy" in says for _, _, says in rows)
    lines = [["key", "meaning", *(["policy"] if has_policy else []), "values", "default"]]
    lines.append(["---"] * len(lines[0]))
    for of, inner, says in rows:
        policy = [says.get("policy", "")] if has_policy else []
        default = says.get("shown") or (
            "required" if of.default is NODEFAULT else shown(of.default, of.name)
        )
        cells = [f"`{of.encode_name}`", meaning[of.name], *policy, values(of, inner, says), default]
        lines.append(cells)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def with_table(name: str, document: str) -> str:
    """A document with the table of a record as it is now."""
    mark = f"<!-- made of {name} -->\n\n"
    assert mark in document, f"{DOCUMENT} has no place for {name}: {mark}"
    after = rf"{re.escape(mark)}(\|.*\n)*"
    return re.sub(after, lambda found: mark + table(name), document, count=1)


@pytest.mark.parametrize("name", RECORDS)
def test_a_table_is_the_one_that_the_record_makes(name: str) -> None:
    document = DOCUMENT.read_text()
    assert with_table(name, document) == document, (
        f"the table of {name} in {DOCUMENT.name} is another; "
        "expected what python -m tests.test_topology_tables makes"
    )


@pytest.mark.parametrize("name", RECORDS)
def test_every_field_says_what_it_means(name: str) -> None:
    kind = record(name)
    tables = {"registration", "brokers", "links", "metadata"}
    for of in fields(kind):
        inner, _ = taken_apart(of.type)
        if of.name in kind.__annotations__ and Struct not in getattr(inner, "__mro__", ()):
            assert of.name in {*meanings(kind), *tables}


if __name__ == "__main__":
    written = DOCUMENT.read_text()
    for each in RECORDS:
        written = with_table(each, written)
    DOCUMENT.write_text(written)
