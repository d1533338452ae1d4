"""Backbone: several providers that hold the same documents and schema (MDV, section 2.1).

The home of a document is the provider with the longest prefix of its URI; the schema has the URI
"".  A home puts each change into its stream of messages, and the other members follow::

    M1: put d (3)   M1: http://m2/ to M2 (4)      M2, which has applied 4: http://m2/ is mine (1)
                    M1 is not its home any more       M2: put e (2)

A message names the one before it, so that a gap shows.  Then a member asks for the difference: it
compares digests, and fetches the documents that differ.  A prefix that a member has learnt of
otherwise than from the stream of its former home is not settled: the member asks its home for the
difference.  So all members come to the same, in whatever order the streams arrive.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import msgspec

from formats.errors import Fault, MessageRefused
from formats.text import parse_text
from overlay.link.durable import StoredMap
from overlay.link.row_log import RowLog
from overlay.link.tables import Row, Table
from registration.metadata.change_messages import NAMESPACE
from registration.metadata.documents import MetadataRefused

PART_LENGTH = 1024 * 1024  # of documents in one message
Documents: TypeAlias = Mapping[str, tuple[str, bytes] | None]
"""Media types and compressed texts by URI; None: it is gone."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


class MemberRow(Row, frozen=True):
    """``applied``: the number of its last message that has been applied here."""

    applied: int = 0


class PrefixRow(Row, frozen=True):
    """``epoch`` counts the moves of the prefix, of two rows the later one holds, of two that are
    equally late the one that took it; ``of``: the home that gave it, "" where it was lost.
    ``is_settled``: the documents that this member has are those of the home, as far as its stream
    has been applied."""

    provider: str
    epoch: int = 1
    of: str = ""
    is_settled: bool = True

    def is_later(self, other: PrefixRow | None) -> bool:
        return other is None or self._order() > other._order()

    def _order(self) -> tuple[object, ...]:
        return self.epoch, not self.of, self.provider, self.of


MEMBERS = Table("metadata-member", MemberRow)
PREFIXES = Table("metadata-prefix", PrefixRow)


class Standing(NamedTuple):
    """``number``: of the last message of a member; ``applied``: those of the other members that it
    has applied."""

    name: str
    number: int
    applied: dict[str, int]
    prefixes: dict[str, PrefixRow]


class BackboneMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``after``: the number of the message before it of the same provider."""

    provider: str
    number: int
    after: int
    documents: dict[str, tuple[str, bytes] | None] = {}
    prefixes: dict[str, PrefixRow] = {}
    members: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        body = b64encode(msgspec.msgpack.encode(self)).decode()
        return f'<backbone xmlns="{NAMESPACE}">{body}</backbone>'.encode()


def read_backbone(data: bytes) -> BackboneMessage:
    """MessageRefused ``not-a-change``."""
    try:
        body = b64decode(parse_text(data).string_value(0))
        return msgspec.msgpack.decode(body, type=BackboneMessage)
    except (ValueError, msgspec.MsgspecError) as error:
        raise MessageRefused("not-a-change", f"no message of the backbone: {error}") from None


def longest(prefixes: Iterable[str], uri: str) -> str:
    return max(filter(uri.startswith, prefixes), key=len, default="")


def parts(documents: Documents) -> Iterator[dict[str, tuple[str, bytes] | None]]:
    """Documents, for messages that are not too long."""
    part: dict[str, tuple[str, bytes] | None] = {}
    length = 0
    for uri, each in documents.items():
        part[uri] = each
        length += len(uri) + (len(each[1]) if each else 0)
        if length > PART_LENGTH:
            yield part
            part, length = {}, 0
    if part:
        yield part


class NotHome(MetadataRefused):
    """``home``: the provider to ask."""

    def __init__(self, home: str, uri: str) -> None:
        what = f"documents {uri!r}" if uri else "the schema"
        super().__init__(Fault("not-home", f"the home of {what} is {home}"))
        self.home = home


def not_lost(prefix: str, home: str) -> MetadataRefused:
    reason = f"{home}, the home of {prefix!r}, is there"
    return MetadataRefused(Fault("not-lost", reason, "a move without --lost"))


class Backbone:
    """A member's knowledge of the others: rows, changed within the turn of its provider."""

    def __init__(self, log: RowLog, name: str) -> None:
        self.name = name
        self.members = StoredMap(log, MEMBERS)
        self.prefixes = StoredMap(log, PREFIXES)

    def home(self, uri: str) -> tuple[str, PrefixRow]:
        """The longest prefix of a URI, and whose it is."""
        prefix = longest(self.prefixes, uri)
        return prefix, self.prefixes.get(prefix) or PrefixRow(self.name)

    def check_home(self, uris: Iterable[str]) -> None:
        """NotHome where another provider is the home of these documents; MetadataRefused
        ``several-homes``."""
        if not self.prefixes:  # PERF: a provider that is alone
            return
        found = {uri: self.home(uri)[1] for uri in uris}
        homes = {row.provider: uri for uri, row in found.items()}
        if len(homes) > 1:
            said = ", ".join(f"{home} of {uri!r}" for home, uri in homes.items())
            wanted = "documents of one home in a batch"
            raise MetadataRefused(Fault("several-homes", f"the homes are {said}", wanted))
        for uri, row in found.items():
            if row.provider != self.name or not row.is_settled:
                raise NotHome(row.provider, uri)

    def meet(self, names: Iterable[str]) -> None:
        for name in names:
            if name != self.name and name not in self.members:
                self.members[name] = MemberRow()

    def adopt(self, member: str, standing: Standing) -> list[str]:
        """Learn what a member says; gives the prefixes whose documents it is to be asked for."""
        self.meet((member, *standing.applied))
        is_behind = standing.number != self.members[member].applied  # or its rows were put back
        found = []
        for prefix, row in standing.prefixes.items():
            mine = self.prefixes.get(prefix)
            if row.is_later(mine):
                mine = self.prefixes[prefix] = msgspec.structs.replace(row, is_settled=False)
            if mine is None or mine.is_later(row) or not row.is_settled:
                continue
            is_given = mine.provider == self.name and mine.of == member
            is_unknown = not mine.is_settled and (mine.provider == member or is_given)
            if is_unknown or (is_behind and mine.provider == member):
                found.append(prefix)
        return sorted(found)

    def settle(self, member: str, number: int, prefixes: Iterable[str]) -> dict[str, PrefixRow]:
        """The documents under these prefixes are as the member had them at a message or later;
        gives the prefixes of which this one has become the home."""
        if number != self.members[member].applied:
            self.members[member] = MemberRow(number)
        settled = {}
        for prefix in prefixes:
            row = self.prefixes[prefix]
            if not row.is_settled and row.provider in (member, self.name):
                settled[prefix] = msgspec.structs.replace(row, is_settled=True)
                self.prefixes[prefix] = settled[prefix]
        return {prefix: row for prefix, row in settled.items() if row.provider == self.name}

    def is_missing(self, message: BackboneMessage) -> bool:
        """Whether it cannot be applied: one before it has not been, or it says that its provider is
        the home of documents that this member does not have from there."""
        if message.after != self.members[message.provider].applied:
            return True
        claimed = {
            p: row for p, row in message.prefixes.items() if row.provider == message.provider
        }
        known = [self.prefixes.get(prefix, row) for prefix, row in claimed.items()]
        return not claimed.keys() <= self.prefixes.keys() or any(
            row.is_later(mine) or not (mine.is_settled or mine.is_later(row))
            for row, mine in zip(claimed.values(), known, strict=True)
        )

    def apply(self, message: BackboneMessage) -> dict[str, PrefixRow]:
        """Take in a message but for its documents; gives the prefixes of which this one has
        become the home."""
        self.members[message.provider] = MemberRow(message.number)
        self.meet(message.members)
        mine = {}
        for prefix, row in message.prefixes.items():
            if row.is_later(self.prefixes.get(prefix)):
                home = self.home(prefix)[1]
                is_settled = home.is_settled and home.provider == message.provider
                self.prefixes[prefix] = msgspec.structs.replace(row, is_settled=is_settled)
                if is_settled and row.provider == self.name:
                    mine[prefix] = row
        return mine

    def move(self, prefix: str, to: str, *, is_lost: bool) -> dict[str, PrefixRow]:
        row = self.prefixes.get(prefix)
        of = "" if is_lost else self.name
        row = PrefixRow(to, 1 if row is None else row.epoch + 1, of)
        self.prefixes[prefix] = row
        return {prefix: row}
