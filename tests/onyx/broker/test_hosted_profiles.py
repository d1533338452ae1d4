"""What a broker keeps of its profiles, and what a restart makes of it."""

from __future__ import annotations

import msgpack
import pytest

from onyx.broker.profiles import hosted_profiles
from onyx.broker.profiles.hosted_profiles import HOSTED, HostedProfile, HostedRows
from overlay.link.events import Delete, Put
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from yfilter import Matcher, ProfileMatch
from yfilter.errors import ProfileRefused
from yfilter.language.query_parser import parse_accepted, parse_profile

GRAPHS = [f'ASK {{ ?x <http://e/p> "{word}" }}' for word in "abcd"]
TEXTS = [
    "/a/b",
    '//a[@b = "x"]',
    '//a[@b = "y"]',
    "for $x in //x return $x/y",
    *GRAPHS[2:],
    "/a[b = 'it''s']",
]


class Disk:
    """The rows of one broker."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], bytes] = {}

    def apply(self, log: RowLog) -> list[Put | Delete]:
        changes = log.drain()
        for change in changes:
            if isinstance(change, Put):
                self.rows[change.space, change.key] = change.value
            else:
                del self.rows[change.space, change.key]
        return changes

    def stored(self) -> StoredRows:
        return StoredRows((space, key, value) for (space, key), value in self.rows.items())


@pytest.fixture
def disk() -> Disk:
    """All the profiles are on it, those of graphs behind others of their shape."""
    for text in GRAPHS:
        parse_profile(text)
    disk, log = Disk(), RowLog()
    kept = HostedRows(log)
    for number, text in enumerate(TEXTS):
        kept.put(HostedProfile(f"p{number}", "ann", text, 3), parse_profile(text))
    disk.apply(log)
    return disk


def no_parse(text: str) -> None:
    raise AssertionError(f"{text} is parsed")


def test_what_has_a_recipe_is_not_parsed_again(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RowLog()
    with monkeypatch.context() as patch:
        patch.setattr(hosted_profiles, "parse_accepted", no_parse)
        restored = HostedRows(log).restore(disk.stored())
        found = [next(restored) for _ in TEXTS[:-1]]
    found += restored
    assert [hosted for hosted, _ in found] == [
        HostedProfile(f"p{number}", "ann", text, 3) for number, text in enumerate(TEXTS)
    ]
    assert [parsed.body for _, parsed in found] == [parse_profile(text).body for text in TEXTS]
    assert disk.apply(log) == []


def test_a_text_that_an_earlier_release_has_accepted_is_hosted_as_before(disk: Disk) -> None:
    text = '/a[@d = xs:date("a")] | //b'
    with pytest.raises(ProfileRefused, match="FORG0001"):
        parse_profile(text)
    log = RowLog()
    HostedRows(log).put(HostedProfile("old", "ann", text, 1), parse_accepted(text))
    disk.apply(log)
    found = {
        hosted.profile: parsed for hosted, parsed in HostedRows(RowLog()).restore(disk.stored())
    }
    matcher = Matcher()
    matcher.add(found["old"], "old")
    (match,) = matcher.match(b"<b/>")
    assert isinstance(match, ProfileMatch) and match.profile_id == "old"


def test_recipes_of_another_language_are_made_anew(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = [key for space, key in disk.rows if space == "profile-shape"]
    for key in shapes:
        disk.rows["profile-shape", key] = msgpack.packb("/nothing[of = 'this']")
    disk.rows["profile-shape", "77"] = msgpack.packb("/no[longer]")
    monkeypatch.setattr(hosted_profiles, "language_digest", lambda: "another")
    for changes in (True, False):
        log = RowLog()
        found = list(HostedRows(log).restore(disk.stored()))
        assert [parsed.body for _, parsed in found] == [parse_profile(text).body for text in TEXTS]
        assert bool(disk.apply(log)) is changes
    assert ("profile-shape", "77") not in disk.rows


def test_rows_without_a_recipe_are_read_and_given_one(disk: Disk) -> None:
    for space, key in list(disk.rows):
        if space != HOSTED.space:
            del disk.rows[space, key]
            continue
        record = msgpack.unpackb(disk.rows[space, key])
        del record["recipe"]
        disk.rows[space, key] = msgpack.packb(record)
    log = RowLog()
    assert len(list(HostedRows(log).restore(disk.stored()))) == len(TEXTS)
    disk.apply(log)
    assert msgpack.unpackb(disk.rows[HOSTED.space, "p0"])["recipe"] == ["/a", "/b"]
