"""What a publisher has to publish is on its own disk until its outcome is known."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgpack
import pytest
import trio

from onyx.errors import JournalFull, StoreUnusable
from onyx.publisher_journal import ENTRIES, PublisherJournal
from overlay.link.errors import DiskFull
from overlay.link.events import Delete, Put
from overlay.link.store import Store


def journal(path: Path, bytes_max: int = 10_000) -> PublisherJournal:
    return PublisherJournal(path / "journal", "s1", bytes_max)


def died(found: PublisherJournal) -> None:
    """The process is gone: nothing more is written."""
    found._store.close()


def left(found: PublisherJournal) -> list[tuple[int, bytes | None]]:
    return [(number, entry.data) for number, entry in found.take_left()]


async def test_what_was_added_and_not_settled_is_there_in_the_next_run(tmp_path: Path) -> None:
    first = journal(tmp_path)
    assert await first.add(b"a", "application/xml", "k") == (1, "k")
    number, key = await first.add(b"b", "application/xml", "")
    assert number == 2
    assert key
    first.settle(1)
    assert (await first.add(b"c", "text/turtle", ""))[0] == 3  # which commits that as well
    died(first)
    second = journal(tmp_path)
    assert (second.count, left(second)) == (3, [(2, b"b"), (3, b"c")])
    second.settle(2)
    second.settle(3)
    second.close()
    third = journal(tmp_path)
    assert (third.count, left(third)) == (3, [])  # numbers go on
    assert (await third.add(b"d", "", ""))[0] == 4
    third.close()
    fourth = journal(tmp_path)
    assert (fourth.count, left(fourth)) == (4, [(4, b"d")])
    fourth.close()


async def test_headers_are_kept_and_a_journal_of_before_has_none(tmp_path: Path) -> None:
    first = journal(tmp_path)
    await first.add(b"a", "application/xml", "k")
    await first.add(b"b", "application/xml", "l", {"traceparent": "00-1"})
    died(first)
    with Store(tmp_path / "journal") as store:
        ((key, row), *_) = [(key, row) for space, key, row in store.rows()]
        entry = msgpack.unpackb(row)
        assert entry.pop("headers") == {}  # which the release before did not know
        store.commit([Put(ENTRIES.space, key, msgpack.packb(entry))])
    second = journal(tmp_path)
    assert [entry.headers for _, entry in second.take_left()] == [{}, {"traceparent": "00-1"}]
    second.close()


async def test_publishes_that_wait_together_share_a_commit(tmp_path: Path) -> None:
    found = journal(tmp_path, bytes_max=100_000)
    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(found.add, b"x", "", "")
    commits = found._store.counted.commits
    assert isinstance(commits, int) and commits <= 3
    found.close()
    assert len(left(journal(tmp_path))) == 100


async def test_a_full_journal_says_what_waits(tmp_path: Path) -> None:
    found = journal(tmp_path, bytes_max=700)
    await found.add(bytes(200), "", "")
    number, _ = await found.add(bytes(100), "", "")
    with pytest.raises(JournalFull, match=r"2 messages of 700 bytes wait .* is the root broker"):
        await found.add(b"x", "", "")
    found.settle(number)
    await found.add(b"x", "", "")
    found.close()


async def test_what_could_not_be_written_is_said_and_written_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = journal(tmp_path)

    def fails(changes: Iterable[Put | Delete]) -> None:
        raise DiskFull("database or disk is full")

    with monkeypatch.context() as context:
        context.setattr(found._store, "commit", fails)
        with pytest.raises(StoreUnusable, match="cannot be written: database or disk is full"):
            await found.add(b"a", "", "")
    await found.add(b"b", "", "")
    died(found)
    assert left(journal(tmp_path)) == [(1, b"a"), (2, b"b")]


async def test_a_journal_is_of_one_source(tmp_path: Path) -> None:
    found = journal(tmp_path)
    await found.add(b"a", "", "")
    found.close()
    with pytest.raises(StoreUnusable, match="is the journal of source 's1'; expected 's2'"):
        PublisherJournal(tmp_path / "journal", "s2")
