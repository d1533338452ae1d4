"""Member: a provider that holds the same as others do (backbone.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import zstandard

from formats.errors import Fault
from registration.metadata.backbone import Documents, Standing, read_backbone
from registration.metadata.change_messages import MessageMissing, read_schema_type
from registration.metadata.documents import MetadataRefused, Statement
from registration.metadata.provider import Outcome, Provider, check_name, suspending
from registration.metadata.provider_reader import BATCH_MAX, EMPTY, DocumentRow, SchemaRow, refused


class Member(Provider):
    """A member refuses nothing that another home has accepted: a document that does not conform to
    the schema is set aside, a rule is suspended."""

    def join(self, name: str) -> Standing:
        """A provider without documents becomes a member."""
        check_name("provider", name)
        member = self.backbone.members.get(name)
        if name == self.name or (member is not None and member.applied):
            raise refused("name-taken", f"there has been a member {name!r} with documents")
        with self._turn():
            self.backbone.meet((name,))
            is_first = not self.backbone.prefixes
            prefixes = self.backbone.move("", self.name, is_lost=False) if is_first else {}
            self._say(prefixes=prefixes, members=(name,))
        return self.standing()

    def joined(self, member: str, standing: Standing) -> None:
        """A member has taken this provider among them."""
        if self.revision:
            raise refused("not-empty", f"{self.name} has documents or rules, and cannot join")
        self.adopt(member, standing)

    @suspending
    def follow(self, body: bytes) -> bool:
        """Take a message of another member; False if it was taken before.  MessageMissing if it
        cannot be without the difference."""
        message = read_backbone(body)
        member = self.backbone.members.get(message.provider)
        if member is None or message.number <= member.applied:
            return False
        if self.backbone.is_missing(message):
            what = f"{message.provider} has said what has not come before {message.number}"
            raise MessageMissing(Fault("message-missing", what))
        with self._turn():
            self._hold(message.documents, message.provider)
            self._say(prefixes=self.backbone.apply(message))
        return True

    def adopt(self, member: str, standing: Standing) -> list[str]:
        """Learn what a member says of all; gives the prefixes whose documents it is to be asked
        for."""
        with self._turn():
            return self.backbone.adopt(member, standing)

    def differing(
        self, prefix: str, after: str, page: Mapping[str, bytes]
    ) -> tuple[list[str], list[str]]:
        """The documents below a prefix that differ from those of a member, and those that it does
        not have; as a page of its digests says."""
        own = dict(self._digests(prefix, after, max(page) if len(page) >= BATCH_MAX else ""))
        home = self.backbone.home
        (of, _) = home(prefix)
        wanted = [uri for uri in page if own.get(uri) != page[uri] and home(uri)[0] == of]
        return wanted, [uri for uri in own.keys() - page.keys() if home(uri)[0] == of]

    @suspending
    def hold(self, documents: Documents, home: str) -> None:
        """Documents of another home are as these."""
        with self._turn():
            self._hold(documents, home)

    def _hold(self, documents: Documents, home: str) -> None:
        home_of = self.backbone.home
        ours = {uri: row for uri, row in documents.items() if home_of(uri)[1].provider == home}
        schema = ours.pop("", None)
        if schema is not None:
            media_type, is_open = read_schema_type(schema[0])
            row = SchemaRow(zstandard.decompress(schema[1]), media_type, is_open)
            if row != (self._schema_row.now or EMPTY):
                self._change_schema(row)
        if ours:
            said: dict[str, Sequence[Statement]] = dict.fromkeys(ours, ())
            rows = ((uri, DocumentRow(*row)) for uri, row in ours.items() if row is not None)
            self._write(ours, said, self._read(rows, said))

    def settle(self, member: str, standing: Standing, prefixes: Iterable[str]) -> None:
        """The difference from a member is made up for."""
        with self._turn():
            self._say(prefixes=self.backbone.settle(member, standing.number, prefixes))

    def move(self, prefix: str, to: str, *, is_lost: bool = False) -> Outcome:
        """Another member becomes the home of the documents below a prefix; this one, where the home
        ``is_lost``."""
        if prefix and not prefix.isprintable():
            raise refused("bad-name", f"prefix {prefix!r}; expected the begin of an URI")
        if not is_lost:
            self.backbone.check_home((prefix,))
        known = (self.name, *self.backbone.members)
        if to not in known or len(known) == 1:
            reason = f"there is no member {to!r} of several"
            raise MetadataRefused(Fault("no-such-member", reason, ", ".join(known)))
        with self._turn():
            self._say(prefixes=self.backbone.move(prefix, to, is_lost=is_lost))
            return self._said()
