"""What is archived is read over the network by those who may, a bounded page at a time."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from onyx.broker.archive import message_archive as archive_pages
from onyx.broker.archive.message_archive import MessageArchive
from overlay.access import Rule
from overlay.archive import ArchiveOptions
from overlay.archive_file import OLD_SUFFIX, SUFFIX, rows_of_file
from overlay.link.events import ArchiveMessage, ArchiveRead, ReadArchive
from overlay.link.frames import Response
from tests.onyx.broker.test_access_rules import Guarded, refused
from tests.onyx.broker.test_archive_segments import Clock, options
from tests.onyx.broker.test_broker_core import FIGURE4

HERE = ArchiveOptions(directory=Path("news"))
BEGAN = 1_800_000_000.0


def pages(archive: MessageArchive, source: str = "s1", **bounds: float) -> list[list[int]]:
    """The numbers on each page."""
    found: list[list[int]] = []
    after = ""
    while True:
        since, until = bounds.get("since", 0.0), bounds.get("until", 1e14)
        page = archive.read(ReadArchive("1", source, since, until, after))
        found.append([json.loads(line)["number"] for line in page.lines.splitlines()])
        after = page.next
        if not after:
            return found


def read(archive: MessageArchive, source: str = "s1", **bounds: float) -> list[int]:
    """All of them."""
    return [number for page in pages(archive, source, **bounds) for number in page]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def archive(tmp_path: Path, clock: Clock) -> MessageArchive:
    """A message of each of two sources every ten seconds, a hundred times; segments of a minute."""
    archive = MessageArchive(
        "B1", options(tmp_path / "news", segment_seconds_max=60, days_max=1e4), clock
    )
    for number in range(1, 101):
        archive.take(ArchiveMessage("s1", number, b'<m n="%d"/>' % number, 0))
        archive.take(ArchiveMessage("s10", number, b"<m/>", 0))
        archive.write_waiting()
        clock.now += 10
    return archive


def test_a_source_is_read_in_order_and_once_also_what_is_being_written(
    archive: MessageArchive, tmp_path: Path
) -> None:
    assert len(list((tmp_path / "news").glob("onyx-*"))) > 10
    assert len(list((tmp_path / "news").glob(".onyx-*"))) == 1
    assert read(archive) == read(archive, "s10") == list(range(1, 101))
    assert read(archive, "s") == read(archive, "s2") == read(archive, 's1", "x') == []
    (first, *_), *_ = [archive.read(ReadArchive("7", "s1", 0, 1e14, "")).lines.splitlines()]
    assert json.loads(first)["message"] == '<m n="1"/>'


def test_pages_are_bounded_by_what_is_found_and_by_what_is_read(
    archive: MessageArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_pages, "FOUND_BYTES_MAX", 300)
    found = pages(archive)
    assert max(map(len, found)) <= 3 and read(archive) == list(range(1, 101))
    monkeypatch.setattr(archive_pages, "READ_BYTES_MAX", 100)
    assert len(pages(archive, until=BEGAN + 1000)) > 50, "however little there is"
    assert len(pages(archive, "s2")) <= 3, "what a summary lacks is not read"


def test_a_time_is_read_from_its_first_second_up_to_its_last(archive: MessageArchive) -> None:
    assert read(archive, since=BEGAN + 500) == list(range(51, 101))
    assert read(archive, until=BEGAN + 500) == list(range(1, 51))
    assert read(archive, since=BEGAN + 195, until=BEGAN + 221) == [21, 22, 23]
    assert read(archive, since=BEGAN + 9_000) == read(archive, until=BEGAN) == []


def test_what_is_gone_or_damaged_is_passed_over(archive: MessageArchive, tmp_path: Path) -> None:
    first, second, third, *_ = sorted((tmp_path / "news").glob("onyx-*"))
    first.unlink()
    second.write_bytes(b"\x28\xb5\x2f\xfd no frame")
    numbers = read(archive)
    assert numbers == list(range(numbers[0], 101)) and 10 < numbers[0] < 20
    place = f"{int(third.name.split('-')[3][:8])}:7"  # no place where a member begins
    assert archive.read(ReadArchive("1", "s1", 0, 1e14, place)).lines
    for odd in ("x", "-1:0", "99999999:0", "1:" + "9" * 15, "9" * 250):
        page = archive.read(ReadArchive("1", "s1", 0, 1e14, odd))
        assert page.lines.count(b"\n") in (0, len(numbers))


def damage(path: Path) -> None:
    """The first member is another, and no longer whole."""
    data = bytearray(path.read_bytes())
    data[20] ^= 255
    path.write_bytes(data)


def test_each_page_tells_of_the_messages_that_it_lacks(
    archive: MessageArchive, tmp_path: Path
) -> None:
    _, second, third, *_ = sorted((tmp_path / "news").glob("onyx-*"))
    (written,) = (tmp_path / "news").glob(".onyx-*.part")
    assert archive.read(ReadArchive("1", "s1", 0, 1e14, "")).damaged == ()
    damage(second)
    third.write_bytes(third.read_bytes()[:-9])
    damage(written)
    page = archive.read(ReadArchive("1", "s1", 0, 1e14, ""))
    numbers = [json.loads(line)["number"] for line in page.lines.splitlines()]
    lost = sorted(set(range(1, 101)) - set(numbers))
    assert len(lost) == 2, "one in the second, one in the file that is being written"
    in_second, in_third, in_written = page.damaged
    assert in_second == f"{second.name}: 1 messages at byte 0 are damaged"
    assert in_third.startswith(f"{third.name}: cut off or damaged behind byte ")
    assert in_written == f"{written.name}: 1 messages at byte 0 are damaged"
    assert archive.read(ReadArchive("1", "s1", 0, BEGAN + 50, "")).damaged == ()


def test_a_segment_that_is_cut_back_is_told_in_the_log(
    archive: MessageArchive, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    (written,) = (tmp_path / "news").glob(".onyx-*.part")
    size = written.stat().st_size
    with written.open("ab") as file:
        file.write(b"half a member")
    again = MessageArchive("B1", options(tmp_path / "news", days_max=1e4), clock)
    again.write_waiting()
    (said,) = caplog.messages
    assert said == f"archive: {written.name}: its last 13 bytes are half a member, or damaged"
    assert read(again) == list(range(1, 101))
    assert size


def test_segments_of_an_earlier_release_are_read_as_well(
    archive: MessageArchive, tmp_path: Path
) -> None:
    for path in sorted((tmp_path / "news").glob("onyx-*"))[:5]:
        lines = b"".join(row.line() for row in rows_of_file(path))
        path.unlink()
        path.with_name(path.name.removesuffix(SUFFIX) + OLD_SUFFIX).write_bytes(
            gzip.compress(lines)
        )
    assert read(archive) == list(range(1, 101))
    assert read(archive, since=BEGAN + 95, until=BEGAN + 121) == [11, 12, 13]


def test_a_segment_that_is_finished_meanwhile_is_read(
    archive: MessageArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = archive_pages._segments

    def then_finished(*asked: object) -> object:
        found = listed(*asked)  # type: ignore[arg-type]
        archive.close()
        return found

    monkeypatch.setattr(archive_pages, "_segments", then_finished)
    assert read(archive) == list(range(1, 101))


def test_without_the_directory_there_is_nothing(tmp_path: Path) -> None:
    assert read(MessageArchive("B1", options(tmp_path / "none"))) == []


class Kept(Guarded):
    """B4 has an archive, which is read by hand."""

    def __init__(self, archive: ArchiveOptions = HERE) -> None:
        super().__init__(replace(FIGURE4, archive=archive))

    def answer(self, lines: bytes = b"{}\n", place: str = "") -> ReadArchive:
        asked = self.beside.archive_asked.pop(0)
        self.beside.tell(ArchiveRead(asked.key, lines, place))
        return asked


def test_who_may_read_gets_pages_and_nobody_else_has_any_read() -> None:
    setting = Kept()
    ann, wire = setting.client("user/ann"), setting.client("source/wire")
    for peer in (ann, wire):
        assert refused(peer.ask("archive.read", source="s1")) == "not-authorised"
    assert not setting.beside.archive_asked
    setting.rules(Rule("user/ann", "read-archive", "s1"), Rule("source/*", "read-archive", "own"))
    for peer, source in ((ann, "s1"), (wire, "s1"), (wire, "s2")):
        assert peer.ask("archive.read", source=source, since=7, after="1:9") is None
        assert setting.answer(b'{"n": 1}\n', "2:9").source == source
        answer = peer.all(Response)[-1]
        assert answer.ok and answer.result == {"lines": b'{"n": 1}\n', "next": "2:9", "damaged": []}
    assert refused(ann.ask("archive.read", source="s2")) == "not-authorised"
    operator = setting.client("operator/root")
    assert operator.ask("archive.read", source="s1") is None
    asked = setting.answer()
    assert (asked.since, asked.until, asked.after) == (0, 1e14, "")


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"source": "s9"}, "unknown-source"),
        ({"source": 7}, "bad-argument"),
        ({}, "bad-argument"),
        ({"source": "s1", "since": "then"}, "bad-argument"),
        ({"source": "s1", "after": 7}, "bad-argument"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_refused(wrong: dict[str, object], code: str) -> None:
    setting = Kept()
    assert refused(setting.client("operator/root").ask("archive.read", **wrong)) == code


def test_without_an_archive_nothing_is_asked() -> None:
    setting = Kept(ArchiveOptions())
    assert refused(setting.client("operator/root").ask("archive.read", source="s1")) == "no-archive"


def test_few_pages_are_read_at_a_time_also_for_those_who_have_gone() -> None:
    setting = Kept()
    operator, gone = setting.client("operator/root"), setting.client("operator/gone")
    for peer in [operator, gone] * 8:
        assert peer.ask("archive.read", source="s1") is None
    assert refused(operator.ask("archive.read", source="s1")) == "busy"
    gone.disconnect()
    for _ in range(16):
        setting.answer()
    assert operator.ask("archive.read", source="s1") is None
