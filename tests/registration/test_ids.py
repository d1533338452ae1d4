"""Ids cannot be guessed, and none is given twice, not even by a service that begins anew."""

from __future__ import annotations

import re
from random import Random

from overlay.link.durable import fill
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from registration.catalog import Catalog, ProfileEntry
from registration.ids import Ids, number_of


def service(seed: int) -> tuple[Ids, RowLog]:
    rows = RowLog()
    return Ids(rows, lambda: Random(seed).randbytes(32)), rows


def stored(rows: RowLog) -> StoredRows:
    return StoredRows([(put.space, put.key, getattr(put, "value", b"")) for put in rows.drain()])


def test_an_id_has_its_kind_its_number_and_eight_characters_that_follow_from_the_secret() -> None:
    ids, _ = service(1)
    names = [ids.new("p") for _ in range(1_000)]
    assert all(re.fullmatch(r"p\d+-[a-z2-7]{8}", name) for name in names)
    assert [number_of(name) for name in names] == list(range(1, 1_001))
    assert len({name.partition("-")[2] for name in names}) == 1_000
    assert ids.name("p", 17) == names[16]


def test_a_service_that_begins_anew_gives_other_ids_and_one_that_goes_on_the_next() -> None:
    ids, rows = service(1)
    first = [ids.new("s"), ids.new("p")]
    anew, _ = service(2)
    assert not {anew.new("s"), anew.new("p")} & set(first)
    again, log = service(3)
    fill(log, stored(rows))
    assert again.name("s", 1) == first[0]
    assert number_of(again.new("s")) == 2


def test_a_store_of_before_keeps_its_ids_and_their_order() -> None:
    old = RowLog()
    plain = Catalog(old)
    for number in range(1, 12):
        plain.put_profile(ProfileEntry(plain.ids.new("p"), "ann", "B1", f"/a{number}"))
    plain.flush()
    rows = [row for row in old.drain() if row.space != "id-secret"]
    log = RowLog()
    catalog = Catalog(log, lambda: b"secret")
    found = StoredRows([(row.space, row.key, getattr(row, "value", b"")) for row in rows])
    fill(log, found)
    catalog.restore(found)
    assert list(catalog.profiles) == [f"p{number}" for number in range(1, 12)]
    assert catalog.ids.new("p").startswith("p12-")
    assert catalog.ids.name("p", 11) == "p11"
