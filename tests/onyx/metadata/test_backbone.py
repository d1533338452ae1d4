"""Several providers, by seeds: messages come late, twice, never, in any order between streams;
members crash between rows and filter, prefixes move, homes are lost and come back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any

import pytest

from formats.errors import Refusal
from onyx.errors import RequestFailed
from onyx.metadata import requests
from onyx.metadata.following import Following
from onyx.metadata.requests import Question
from overlay.link.events import Delete, Put
from registration.metadata.backbone import NotHome
from registration.metadata.member import Member as Provider

SCHEMA = """@prefix : <urn:s#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix m: <urn:onyx:metadata:> .
:A a rdfs:Class . :B a rdfs:Class .
:n a owl:FunctionalProperty ; rdfs:domain :A ; rdfs:range xsd:integer .
:b a owl:FunctionalProperty, m:StrongReference ; rdfs:domain :A ; rdfs:range :B .
:k a owl:FunctionalProperty ; rdfs:domain :B ; rdfs:range xsd:integer .
"""
PREFIXES = ("", "http://x/", "http://x/1", "http://y/")
RULES = (
    "search A a register a where a.n > 4",
    "search A a register a where a.b.k > 4",
    "search A a register a where a.t? = 'x'",
)


class Crash(Exception):
    pass


class Rows:
    """A store in memory, of which a commit may be the last thing that a process does."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], bytes] = {}
        self.crashes = False

    def check(self) -> None:
        pass

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        for each in changes:
            if isinstance(each, Put):
                self._kept[each.space, each.key] = each.value
            else:
                self._kept.pop((each.space, each.key), None)
        if self.crashes:
            self.crashes = False
            raise Crash

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        found = {key: value for (of, key), value in self._kept.items() if of == space}
        return tuple((key, found[key]) for key in sorted(found) if first <= key <= last)

    def load(self, spaces: Iterable[str]) -> Iterator[tuple[str, str, bytes]]:
        for of in list(spaces):
            yield from ((of, *row) for row in self.read(of, "", "\U0010ffff"))


class Member:
    def __init__(self, network: Network, name: str) -> None:
        self.name = name
        self._network = network
        self.rows = Rows()
        self._tables = sqlite3.connect(":memory:", isolation_level=None)
        self.is_up = True
        self.start()

    def start(self) -> None:
        if self._network.random.random() < 0.2:
            self._tables = sqlite3.connect(":memory:", isolation_level=None)
        self.rows.crashes = False
        self.provider = Provider(self.name, self.rows, self._tables, lambda: 0.0)
        self.following = Following(self.provider, self._in_turn, self._network.ask, lambda: None)

    async def _in_turn(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)


class Network:
    """Every message goes to all others, by one stream for each pair."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.is_calm = False  # nothing goes wrong any more
        self.is_known = True  # whether ``documents`` must be those that all have
        self.members = {name: Member(self, name) for name in ("M1", "M2", "M3")}
        self.streams: dict[tuple[str, str], list[bytes]] = {}
        self.documents: dict[str, set[bytes | None]] = {}  # each text that it may have

    async def ask(self, name: str, question: Question[Any]) -> Any:
        """As Serving answers."""
        member = self.members[name]
        lost = 0.0 if self.is_calm else self.random.random()
        if not member.is_up or lost > 0.95:
            raise RequestFailed("source-away", name)
        question = requests.read_question(requests.asked(question))
        if isinstance(question, requests.MovePrefix) and question.is_lost:
            await member.following.recover(question.prefix)
        try:
            answer = question.carry_out(member.provider, "")
        except Crash:
            member.is_up = False
            raise RequestFailed("source-lost", name) from None
        except NotHome as other:
            if question.is_passed_on or other.home == name:
                raise RequestFailed(*other.said()) from None
            kind = type(question)
            said = {each: getattr(question, each) for each in kind.__struct_fields__}
            answer = await self.ask(other.home, kind(**said | {"is_passed_on": True}))
        except Refusal as refusal:
            raise RequestFailed(refusal.code, str(refusal)) from None
        if lost > 0.9:
            raise RequestFailed("source-lost", name)
        return requests.read_answer(question, requests.answered(answer))

    def up(self) -> list[Member]:
        return [member for member in self.members.values() if member.is_up]

    async def publish(self, member: Member) -> None:
        for number, body in member.provider.outbox(10):
            for other in self.members:
                if other != member.name and b"<backbone" in body:
                    self.streams.setdefault((member.name, other), []).append(body)
            member.provider.published(number)

    async def deliver(self, of: tuple[str, str]) -> None:
        member, chance = self.members[of[1]], 0.0 if self.is_calm else self.random.random()
        body = self.streams[of][0]
        if member.is_up and chance < 0.9:  # else it is lost
            await self.guarded(member, member.following.take, body)
        if chance < 0.95:
            del self.streams[of][0]

    async def guarded(self, member: Member, do: Callable[..., Any], *arguments: Any) -> None:
        try:
            await do(*arguments)
        except Crash:
            member.is_up = False

    async def step(self) -> None:
        random = self.random
        chance = random.random()
        ready = [of for of, stream in self.streams.items() if stream]
        member = random.choice([*self.members.values()])
        if not member.is_up:
            if chance < 0.6:
                member.is_up = True
                member.start()
                await self.guarded(member, member.following.look)
        elif chance < 0.35 and ready:
            await self.deliver(random.choice(ready))
        elif chance < 0.5:
            await self.guarded(member, self.publish, member)
        elif chance < 0.58:
            await self.guarded(member, member.following.look)
        elif chance < 0.6:
            member.rows.crashes = True
        elif chance < 0.62:
            member.is_up = False
        elif chance < 0.66:
            others = [*self.members]
            move = requests.MovePrefix(prefix=random.choice(PREFIXES), to=random.choice(others))
            await self.tried(member, move)
        elif chance < 0.69:
            move = requests.MovePrefix(prefix=random.choice(PREFIXES), to=member.name, is_lost=True)
            self.is_known = await self.tried(member, move) is False and self.is_known
        elif chance < 0.72:
            more = random.choice(("", ":t rdfs:domain :A .", ":n a m:X . :t rdfs:domain :B ."))
            await self.tried(member, put_schema(SCHEMA + more))
        elif chance < 0.76:
            rule = random.choice(RULES)
            await self.tried(member, requests.AddRules(repository="L", rules=[(rule, "")]))
        elif chance < 0.8:
            uri = self.uri()
            self.note({uri: None}, await self.tried(member, requests.Remove(uris=[uri])))
        else:
            said = {self.uri(): self.document() for _ in range(random.randint(1, 2))}
            self.note(said, await self.tried(member, register(said)))

    def note(self, documents: Mapping[str, bytes | None], is_done: bool | None) -> None:
        for uri, text in documents.items():
            known = self.documents.setdefault(uri, {None})
            if is_done:
                known.clear()
            if is_done is not False:
                known.add(text)

    async def tried(self, member: Member, question: Question[Any]) -> bool | None:
        """Whether it is done; None if that is not known."""
        try:
            await self.ask(member.name, question)
        except Crash:
            member.is_up = False
            return None
        except RequestFailed as error:
            return None if error.code == "source-lost" else False
        except Refusal:
            return False
        return True

    def uri(self) -> str:
        return self.random.choice(("http://x/", "http://y/")) + str(self.random.randint(1, 3))

    def document(self) -> bytes:
        """Of resources that other documents are about, too."""
        random, lines = self.random, []
        for _ in range(random.randint(1, 3)):
            a, b = (f"<urn:{random.randint(1, 4)}{each}>" for each in "ab")
            said = f"a :A ; :n {random.randint(0, 9)} ; :b {b}"
            if random.random() < 0.3:
                said += " ; :t 'x'"
            if random.random() < 0.3:
                lines.append(f"{b} a :B ; :k {random.randint(0, 9)} .")
            lines.append(f"{a} {said} .")
        return f"@prefix : <urn:s#> .\n{' '.join(lines)}".encode()

    async def calm(self) -> None:
        """All are there, and all that was said comes."""
        self.is_calm = True
        for member in self.members.values():
            member.is_up = True
            member.start()
        for _ in range(6):
            for member in self.members.values():
                await self.publish(member)
            for of, stream in self.streams.items():
                while stream:
                    await self.deliver(of)
            for member in self.members.values():
                await member.following.look()


def put_schema(text: str) -> requests.PutSchema:
    return requests.PutSchema(data=text.encode(), media_type="text/turtle")


def register(documents: dict[str, bytes]) -> requests.Register:
    return requests.Register(documents=documents, media_type="text/turtle")


async def started(seed: int) -> Network:
    network = Network(seed)
    for name in ("M2", "M3"):
        network.is_calm = True
        await network.members[name].following.join(network.random.choice(["M1", "M1", "M2"][:2]))
        await network.members[name].following.look()
    await network.ask("M1", put_schema(SCHEMA))
    network.is_calm = False
    return network


async def test_a_document_of_another_home_is_set_aside_until_it_is_mended() -> None:
    network = await started(0)
    network.is_calm = True
    one, other = network.members["M1"], network.members["M2"]
    await network.ask("M1", requests.MovePrefix(prefix="http://x/", to="M2"))
    await network.calm()
    said = b"@prefix : <urn:s#> . <urn:a> a :A ; :n 1 ."
    await network.ask("M1", register({"http://x/1": said}))  # passed on
    await network.ask("M1", put_schema(SCHEMA.replace(":n a", ":m a")))  # before it has come there
    await network.calm()
    for member in (one, other):
        (why,) = member.provider.set_aside().values()
        assert (
            why
            == "http://x/1: urn:a urn:s#n: the schema has no property urn:s#n [unknown-property]"
        )
    await network.ask("M2", register({"http://x/1": said.replace(b":n", b":m")}))
    await network.calm()
    assert one.provider.set_aside() == other.provider.set_aside() == {}


def shown(provider: Provider) -> dict[str, Any]:
    standing = provider.standing()
    uris = [*provider.digests("")]
    return {
        "documents": provider.digests(""),
        "texts": {uri: provider.document(uri) for uri in uris},
        "schema": provider.held([""]),
        "prefixes": standing.prefixes,
        "set aside": {w: why for w, why in provider.set_aside().items() if "rule r" not in w},
    }


async def run(seed: int) -> Network:
    network = await started(seed)
    for _ in range(200):
        await network.step()
    await network.calm()
    first, *others = (member.provider for member in network.members.values())
    for other in others:
        assert shown(other) == shown(first)
    for provider in (first, *others):
        with sqlite3.connect(":memory:", isolation_level=None) as tables:
            assert provider.verify(tables) == []
    if network.is_known:
        texts = {uri: text for uri, (_, text) in shown(first)["texts"].items()}
        assert texts.keys() <= network.documents.keys()
        assert all(texts.get(uri) in known for uri, known in network.documents.items())
    return network


@pytest.mark.parametrize("seed", range(20))
async def test_all_come_to_the_same(seed: int) -> None:
    await run(seed)
