"""What a broker core wants archived: accepted messages of its own sources, as text."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from formats import WireFormat, encode, parse_text
from overlay.archive import ArchiveOptions
from overlay.link.frames import Publish, RoutingDelta
from overlay.topology import Topology
from tests.onyx.broker.test_broker_core import FIGURE4, Setting, message


class Archiving(Setting):
    """B4 is the root broker of s1."""

    def __init__(self, topology: Topology) -> None:
        super().__init__(topology)
        self.announce(root="B4")
        self.children_ready(root="B4")
        self.source = self.beside.peer("source", "s1")

    def publish(self, payload: bytes, form: str = "text") -> None:
        self.source.send("s1", Publish(source="s1", format=form, payload=payload))

    @property
    def texts(self) -> list[bytes]:
        return [archived.text for archived in self.beside.archived]


def with_archive(share: float) -> Topology:
    return replace(FIGURE4, archive=ArchiveOptions(directory=Path("news"), share=share))


def test_accepted_messages_are_archived_as_they_were_published() -> None:
    setting = Archiving(with_archive(1.0))
    setting.publish(b"<!-- kept --><m a='1'/>")
    setting.publish(b"<m")
    setting.publish(encode(parse_text(b'<m a="2"/>'), WireFormat.BINARY), "binary")
    found = [(one.source, one.number, one.text) for one in setting.beside.archived]
    assert found == [("s1", 1, b"<!-- kept --><m a='1'/>"), ("s1", 3, b'<m a="2"/>')]


def test_only_the_root_broker_archives() -> None:
    setting = Archiving(with_archive(1.0))
    setting.announce("s2", "B1")
    setting.brokers["B5"].send("B1", RoutingDelta(root="B1", added=["/nitf"], removed=[]))
    setting.brokers["B1"].send("B1", message())
    assert setting.texts == []


@pytest.mark.parametrize("encoding", ["UTF-8", "utf-8-sig", "UTF-16", "ISO-8859-1"])
def test_the_archive_is_unicode_text_whatever_the_encoding(encoding: str) -> None:
    setting = Archiving(with_archive(1.0))
    declared = encoding.removesuffix("-sig")
    setting.publish(f'<?xml version="1.0" encoding="{declared}"?><m>\xe4</m>'.encode(encoding))
    (text,) = setting.texts
    again = parse_text(text)
    assert again.string_value(0) == "\xe4"


def test_a_share_is_the_same_messages_every_time() -> None:
    some, again, none, off = (
        Archiving(with_archive(0.3)),
        Archiving(with_archive(0.3)),
        Archiving(with_archive(0.0)),
        Archiving(FIGURE4),
    )
    for setting in (some, again, none, off):
        for number in range(200):
            setting.publish(f"<m n='{number}'/>".encode())
    assert some.texts == again.texts
    assert 30 < len(some.texts) < 90
    assert none.texts == off.texts == []
