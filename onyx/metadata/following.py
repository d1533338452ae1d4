"""Following: a provider follows the other members of its backbone, and makes up for differences.

One profile brings the messages of all members.  A message that is missing shows by the number
before it, or where a member says that it has said more: then the member is asked for the digests of
the documents that it is the home of, and for those that differ.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import anyio

from formats.errors import Refusal
from onyx.clients import User
from onyx.errors import UserError
from onyx.metadata import requests
from onyx.metadata.client import TIMEOUT_SECONDS, MetadataClient
from onyx.metadata.one_thread import OneThread
from onyx.metadata.requests import Question
from registration.metadata.backbone import PrefixRow, Standing, not_lost, read_backbone
from registration.metadata.change_messages import NAMESPACE, MessageMissing
from registration.metadata.member import Member
from registration.metadata.provider_reader import BATCH_MAX

A = TypeVar("A")
Ask: TypeAlias = Callable[[str, Question[Any]], Awaitable[Any]]

LOOK_SECONDS = 10.0  # between two questions how far each member is
QUIET_SECONDS = 2.0  # without a message, until those that are missing are asked for
AWAY_SECONDS = 5.0  # until a member that does not answer counts as away
PROFILE = f'declare namespace m = "{NAMESPACE}"; /m:backbone'
log = logging.getLogger("onyx.metadata")


class Following:
    """``ask``: the question to a member; ``told``: called when the provider has something to
    publish."""

    def __init__(
        self, provider: Member, in_turn: OneThread, ask: Ask, told: Callable[[], None]
    ) -> None:
        self._provider = provider
        self._in_turn = in_turn
        self._ask = ask
        self._told = told
        self._one = anyio.Lock()
        self._heard = float("-inf")

    async def _members(self) -> list[str]:
        return await self._in_turn(lambda: list(self._provider.backbone.members))

    async def _home(self, prefix: str) -> tuple[str, PrefixRow]:
        return await self._in_turn(lambda: self._provider.backbone.home(prefix))

    async def join(self, member: str) -> None:
        """Become a member by asking one, if it is none yet."""
        if not await self._members():
            standing = await self._ask(member, requests.Join(name=self._provider.name))
            await self._in_turn(self._provider.joined, member, standing)

    async def claim(self, prefixes: Sequence[str]) -> None:
        """Become the home of prefixes that nobody was told to be the home of."""
        for prefix in prefixes:
            home, row = await self._home(prefix)
            if home != prefix and row.provider != self._provider.name:
                move = requests.MovePrefix(prefix=prefix, to=self._provider.name)
                with _while_away():
                    await self._ask(row.provider, move)

    async def take(self, body: bytes) -> None:
        """A message of a member."""
        self._heard = anyio.current_time()
        async with self._one:
            try:
                await self._in_turn(self._provider.follow, body)
            except MessageMissing:
                with _while_away():
                    await self._make_up(read_backbone(body).provider)
        self._told()

    async def look(self) -> None:
        """Ask all members how far they are, and make up for what has not come from them."""
        for member in await self._members():
            async with self._one:
                with _while_away():
                    await self._make_up(member)
        self._told()

    async def _make_up(self, member: str) -> None:
        standing: Standing = await self._ask(member, requests.AskStanding())
        provider = self._provider
        prefixes = await self._in_turn(provider.adopt, member, standing)
        for prefix in prefixes:
            await self._copy(member, prefix, (await self._home(prefix))[1].provider)
        await self._in_turn(provider.settle, member, standing, prefixes)

    async def _copy(self, member: str, prefix: str, home: str) -> None:
        """The documents of a home below a prefix, as a member has them."""
        provider, in_turn = self._provider, self._in_turn
        if not prefix:
            found = await self._ask(member, requests.Held(uris=[""]))
            await in_turn(provider.hold, found, home)
        after = ""
        while True:
            page = await self._ask(member, requests.Digests(prefix=prefix, after=after))
            wanted, gone = await in_turn(provider.differing, prefix, after, page)
            if gone:
                log.info("%s: %s has no %s", provider.name, member, ", ".join(gone))
                await in_turn(provider.hold, dict.fromkeys(gone), home)
            while wanted:
                found = await self._ask(member, requests.Held(uris=wanted))
                await in_turn(provider.hold, found, home)
                wanted = wanted[max(map(wanted.index, found)) + 1 :] if found else []
            if len(page) < BATCH_MAX:
                return
            after = max(page)

    async def recover(self, prefix: str) -> None:
        """Have the documents of a home that is lost as the member has them that had followed it
        furthest."""
        provider = self._provider
        async with self._one:
            of, row = await self._home(prefix)
            if row.provider == provider.name and row.is_settled:
                return
            lost = row.of if row.provider == provider.name else row.provider
            own = await self._in_turn(provider.standing)
            found = [(row.is_settled, own.applied.get(lost, 0), "")]
            for member in await self._members():
                with _while_away():
                    standing: Standing = await self._ask(member, requests.AskStanding())
                    if member == lost:
                        raise not_lost(prefix, lost)
                    await self._in_turn(provider.adopt, member, standing)
                    theirs = standing.prefixes.get(of)
                    is_settled = theirs is not None and theirs.is_settled
                    found.append((is_settled, standing.applied.get(lost, 0), member))
            row = (await self._home(prefix))[1]
            if row.provider not in (lost, provider.name):
                raise not_lost(prefix, row.provider)
            if furthest := max(found)[-1]:
                await self._copy(furthest, prefix, row.provider)

    # --- in a network ---------------------------------------------------------------------

    async def run(self, registration: str, prefixes: Sequence[str]) -> None:
        """Follow until it is cancelled; there are members."""
        async with (
            User(registration, f"metadata {self._provider.name}") as user,
            anyio.create_task_group() as tasks,
        ):
            profile = await user.add_profile(PROFILE, key=f"metadata {self._provider.name}")
            tasks.start_soon(self._look_now_and_then)
            await self.claim(prefixes)
            sources: dict[str, str] = {}  # the members' ids
            async for delivery in user.results(profile.id):
                for message in delivery.results:
                    try:
                        name = read_backbone(message).provider
                        if name not in sources and name in await self._members():
                            with _while_away():
                                async with MetadataClient(registration, name) as client:
                                    sources[name] = await client.source_id()
                        if sources.get(name) == delivery.source:
                            await self.take(message)
                    except Refusal as refusal:
                        log.warning("passed over, for it is no message of a member: %s", refusal)

    async def _look_now_and_then(self) -> None:
        while True:
            if anyio.current_time() - self._heard > QUIET_SECONDS:
                await self.look()
            await anyio.sleep(LOOK_SECONDS)


def asking(registration: str) -> Ask:
    """Asks members over a network."""

    async def ask(member: str, question: Question[Any]) -> Any:
        async with MetadataClient(registration, member) as client:
            return await client.ask(question, TIMEOUT_SECONDS if question.writes else AWAY_SECONDS)

    return ask


@contextmanager
def _while_away() -> Iterator[None]:
    """Errors that pass when the member is there again; it is asked again later."""
    try:
        yield
    except UserError as error:
        log.info("a member has not answered: %s", error)
