"""No message of 64 KiB takes much of its broker, in any syntax: a table, and a search for more.

The oracle counts calls and what a message becomes; ``python -m benchmarks security`` has the
milliseconds.  ``ONYX_DEAR_ROUNDS`` makes the search longer.
"""

from __future__ import annotations

import gzip
import os
from math import inf
from pathlib import Path
from random import Random

import pytest

from formats import MessageLimits, is_compiled
from formats.media_types import media_type_of, publish_format
from formats.publication import read_publication
from tests.formats.support import SHARED_DATA
from tests.fuzz.cost import TooCostly
from tests.security.dear_messages import (
    BASE,
    MEMBERS,
    SIZE_MAX,
    SYNTAXES,
    cost,
    damaged_forms,
    search,
)

TOTAL_MAX = 250_000
"""Calls, elements, attributes and declarations; before they were bounded some messages had
millions."""
ROUNDS = int(os.environ.get("ONYX_DEAR_ROUNDS", "40"))
SEED = int(os.environ.get("ONYX_DEAR_SEED", "1"))
SUFFIXES = {".xml", ".rdf", ".ttl", ".nt", ".nq", ".jsonld", ".trig", ".cap", ".gz"}

pytestmark = pytest.mark.skipif(not is_compiled(), reason="plain Python makes other calls")


@pytest.mark.parametrize("name", MEMBERS)
def test_a_message_is_refused_before_it_costs_much(name: str) -> None:
    form, payload = MEMBERS[name]
    found = cost(form, payload)
    assert len(payload) <= SIZE_MAX and found.refused
    assert found.total < TOTAL_MAX, found


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_the_dearest_message_of_a_search_costs_little(syntax: str) -> None:
    def value(form: str, payload: bytes) -> float:
        return cost(form, payload).total / len(payload)

    dearest, shape = search(syntax, Random(SEED), ROUNDS, SIZE_MAX // 8, value)
    print(f"seed {SEED}: {dearest:.1f} a byte: {shape}")
    for size in (SIZE_MAX // 8, SIZE_MAX // 2, SIZE_MAX):
        found = cost(shape.syntax.format, shape.message(size))
        assert found.total < TOTAL_MAX, (size, found, shape)


def test_damaged_binary_forms_cost_little() -> None:
    for form, payload in damaged_forms(Random(SEED), ROUNDS, SIZE_MAX // 16):
        assert cost(form, payload).total < TOTAL_MAX, (form, payload)


def test_the_search_finds_what_is_not_bounded() -> None:
    """The bounds of before: the table and the search go beyond what is allowed."""
    wide = MessageLimits(
        default_attributes_max=2_000_000,
        entity_marks_max=500_000,
        odd_elements_max=500_000,
        doctype_bytes_max=SIZE_MAX,
        names_max=20_000,
    )
    with pytest.raises(TooCostly):
        cost(*MEMBERS["900 default attributes of 1,000 elements"], wide)

    def value(form: str, payload: bytes) -> float:
        try:
            return cost(form, payload, wide).total
        except TooCostly:
            return inf

    dearest, _ = search("xml", Random(SEED), ROUNDS, SIZE_MAX // 8, value)
    assert dearest > TOTAL_MAX


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="needs the shared data")
def test_real_messages_are_within_the_bounds() -> None:
    """CAP, feeds, FpML, NewsML-G2, SIRI, reports and RDF, each as it was published."""
    files = [path for path in sorted(SHARED_DATA.rglob("*")) if path.suffix in SUFFIXES]
    taken = 0
    for path in files:
        data, name = _read(path)
        if name is None or len(data) > MessageLimits().bytes_max or path.name == "xee.cap":
            continue  # that one asks for a file, and is refused
        form = media_type_of(name)
        read_publication(data, form, base=BASE)
        taken += 1
        assert publish_format(form)
    assert taken > 500


def _read(path: Path) -> tuple[bytes, str | None]:
    data = path.read_bytes()
    name = path.name
    if path.suffix == ".gz":
        data, name = gzip.decompress(data), path.stem
    return data, name if Path(name).suffix in SUFFIXES else None
