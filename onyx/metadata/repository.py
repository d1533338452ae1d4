"""MetadataRepository: a cache that follows a provider over a network.

The repository has one profile for its whole life, whatever its rules are, so that a change of rules
changes no routing table.  Each delivery is applied in the transaction that stores its position.  A
message that is missing shows by the number before it: then the repository asks for the difference,
and answers meanwhile as of the revision that it has.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from math import inf
from pathlib import Path
from time import time as wall
from typing import Any, NamedTuple, Self

import anyio
from anyio.abc import TaskGroup

from onyx.background import background_tasks
from onyx.client_values import Delivery
from onyx.clients import User
from onyx.errors import UserError
from onyx.metadata.cache import MetadataCache
from onyx.metadata.client import MetadataClient
from onyx.metadata.one_thread import OneThread
from onyx.registration_client import NOT_ASKED, PERHAPS_ASKED
from registration.metadata.change_messages import NAMESPACE, MessageMissing, RuleSaid
from registration.metadata.provider import Outcome, RuleInfo
from registration.metadata.repository_cache import Answer

LOOK_SECONDS = 10.0  # between two questions whether the state is that of the provider
AGAIN_SECONDS = 0.2  # the same, for one who waits
FAREWELL_SECONDS = 10.0  # for the end of one that is temporary
QUIET_SECONDS = 2.0  # without a message, until those that are missing are asked for
_FINAL = {"other-owner"}  # what stays so, however often it is asked


class Watched(NamedTuple):
    """``event``: "came", "changed" or "left"; ``triples``: the resource with all that it strongly
    refers to, in N-Triples."""

    event: str
    resource: str
    revision: int
    triples: str


class MetadataRepository:
    """An asynchronous context manager, within which it follows the provider.  Queries are answered
    from the cache alone."""

    def __init__(
        self,
        file: Path | str,
        registration: str,
        repository: str,
        *,
        provider: str,
        is_temporary: bool = False,
    ) -> None:
        """``file`` as of a MetadataCache; ``provider``: the source's id or name, which may be
        another one than before, of several that hold the same; ``is_temporary``:
        with the block the repository ends at the provider, with its rules and its profile."""
        self.name = repository
        self._registration = registration
        self._file = file
        self.provider = provider
        self._is_temporary = is_temporary
        self._client = MetadataClient(registration, provider)
        self._user = User(registration, "" if is_temporary else repository)
        self._in_turn = OneThread()
        self._source = ""  # the provider's id
        self._stack = AsyncExitStack()
        self._news = anyio.Event()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self.cache = stack.enter_context(MetadataCache(self._file, self.name))
            await stack.enter_async_context(self._client)
            await stack.enter_async_context(self._user)
            profile = await self._user.add_profile(
                profile_text(self._client.provider, self.name),
                key=f"metadata {self._client.provider} {self.name}",
            )
            if self._is_temporary:
                stack.push_async_callback(self._remove, profile.id)
            self._asking, self._is_there = anyio.Lock(), anyio.Event()
            self._heard = anyio.current_time() if self.cache.number else float("-inf")
            tasks = await stack.enter_async_context(background_tasks(anyio.create_task_group()))
            tasks.start_soon(self._run, tasks, profile.id)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._stack.__aexit__(*raised)

    async def _remove(self, profile: str) -> None:
        """It may have had no rule, and the network may be away."""
        with anyio.move_on_after(FAREWELL_SECONDS, shield=True):
            with suppress(UserError):
                await self._client.remove_repository(self.name)
            with suppress(UserError):
                await self._user.remove_profile(profile)

    # --- the cache's verbs ----------------------------------------------------------------

    async def query(self, text: str, seconds: float = inf) -> Answer:
        return await self._in_turn(self.cache.query, text, seconds)

    async def explain(self, text: str) -> str:
        return await self._in_turn(self.cache.explain, text)

    async def resource(self, uri: str) -> str:
        return await self._in_turn(self.cache.resource, uri)

    async def rules(self) -> list[RuleSaid]:
        return await self._in_turn(self.cache.rules)

    async def register_local(self, documents: Mapping[str, bytes], media_type: str) -> None:
        await self._in_turn(self.cache.register_local, documents, media_type)

    async def revision(self) -> int:
        """Of the provider, whose state the cache shows."""
        return await self._in_turn(lambda: self.cache.revision)

    async def count(self) -> int:
        """How many resources the cache has of the provider."""
        return await self._in_turn(self.cache.count)

    def age(self) -> float:
        """Seconds since the provider had the state that the cache shows; infinite before any."""
        return wall() - self.cache.time if self.cache.time else float("inf")

    # --- rules ----------------------------------------------------------------------------

    async def add_rule(self, text: str, name: str = "", *, wait: bool = True) -> RuleInfo:
        """With ``wait`` local answers are, on return, those of the provider at the revision of the
        rule, or a later one."""
        info = await self._client.add_rule(self.name, text, name)
        if wait:
            await self.wait(info.outcome.revision)
        return info

    async def remove_rule(self, rule: str, *, wait: bool = True) -> Outcome:
        outcome = await self._client.remove_rule(self.name, rule)
        if wait:
            await self.wait(outcome.revision)
        return outcome

    async def wait(self, revision: int) -> None:
        """Until the cache shows this revision of the provider, or a later one."""
        await self._is_there.wait()
        while await self.revision() < revision:
            news = self._news
            with anyio.move_on_after(AGAIN_SECONDS):
                await news.wait()
            if await self.revision() < revision:
                await self._confirm()

    async def changed(self, revision: int) -> int:
        """The revision that the cache shows, as soon as it is not this one."""
        while True:
            news = self._news
            if (now := await self.revision()) != revision:
                return now
            await news.wait()

    async def watch(self) -> AsyncGenerator[Watched, None]:
        """What the rules match, as it comes, changes and leaves."""
        revision, before = -1, dict[str, str]()
        while True:
            revision = await self.changed(revision)
            now = await self._in_turn(self.cache.matches)
            for uri in sorted(now.keys() | before.keys()):
                if now.get(uri) != before.get(uri):
                    event = "came" if uri not in before else "changed" if uri in now else "left"
                    yield Watched(event, uri, revision, now.get(uri, ""))
            before = now

    # --- another provider -----------------------------------------------------------------

    async def _run(self, tasks: TaskGroup, profile: str) -> None:
        """Follow the provider.  Where the cache is of another one, this one is told the rules
        first, and takes its place in the transaction in which the cache takes what it says."""
        known = await self._in_turn(lambda: self.cache.provider)
        if known not in ("", self.provider):
            await self._move()
        self._is_there.set()
        tasks.start_soon(self._follow, profile)
        tasks.start_soon(self._look)
        with _while_away():
            former = await self._in_turn(lambda: self.cache.former)
            if former not in ("", self.provider):
                await self._leave(former)
            await self._in_turn(self.cache.note_provider, self.provider)

    async def _move(self) -> None:
        rules = await self._in_turn(self.cache.rules_in_order)
        number = await self._in_turn(lambda: self.cache.number)
        while True:
            try:
                there = {(each.name, each.text) for each in await self._client.rules(self.name)}
                lacking = [(each.text, each.name) for each in rules]
                lacking = [each for each in lacking if each[::-1] not in there]
                if lacking:
                    await self._client.add_rules(self.name, lacking)
                break
            except UserError as error:
                if error.code not in NOT_ASKED | PERHAPS_ASKED | {"timeout"}:
                    raise
            await anyio.sleep(AGAIN_SECONDS)
        if rules:
            await self._ask_for_all(self.provider)
        else:
            await self._in_turn(self.cache.replace, (), number, self.provider)
        self._tell_news()

    async def _leave(self, former: str) -> None:
        """The rules and the profile that it had go."""
        async with MetadataClient(self._registration, former) as client:
            if self.name in await client.repositories():
                await client.remove_repository(self.name)
        text, key = profile_text(former, self.name), f"metadata {former} {self.name}"
        profile = await self._user.add_profile(text, key=key, wait=False)
        await self._user.remove_profile(profile.id)

    # --- following ------------------------------------------------------------------------

    async def _follow(self, profile: str) -> None:
        results = self._user.results(profile, positions=lambda _: self.cache.position)
        async for delivery in results:
            await self._take(delivery)

    async def _take(self, delivery: Delivery) -> None:
        """Apply what the provider has sent; another source may publish what looks like it."""
        while not self._source:
            with _while_away():
                self._source = await self._client.source_id()
            if not self._source:
                await anyio.sleep(AGAIN_SECONDS)
        if delivery.source != self._source:
            return
        for message in delivery.results:
            try:
                await self._in_turn(self.cache.apply, message, delivery.position)
            except MessageMissing:
                await self._ask_for_all()
                with suppress(MessageMissing):  # it is of rows in whose place others were put back
                    await self._in_turn(self.cache.apply, message, delivery.position)
        self._tell_news()

    def _tell_news(self) -> None:
        self._heard = anyio.current_time()
        self._news.set()
        self._news = anyio.Event()

    async def _ask_for_all(self, provider: str | None = None) -> None:
        """As often as it takes until the provider has answered; ``provider``: it is another one.
        Where it knows of no repository of this name, the cache holds nothing."""
        number, known = -1, b""

        def look() -> tuple[int, bytes]:
            now = self.cache.number
            return now, known if now == number else self.cache.digests()

        while True:
            number, known = await self._in_turn(look)
            try:
                page = await self._client.whole(self.name, known=known)
                revision, messages = page.revision, [*page.messages]
                while page.after and page.revision == revision:
                    page = await self._client.whole(self.name, page.after, known)
                    messages += page.messages
                is_whole = page.revision == revision
            except UserError as error:
                if error.code in _FINAL:
                    raise
                messages, is_whole = [], error.code == "no-such-repository"
            if is_whole and await self._in_turn(self.cache.replace, messages, number, provider):
                return
            await anyio.sleep(AGAIN_SECONDS)

    async def _look(self) -> None:
        while True:
            with _while_away():
                await self._confirm()
            await anyio.sleep(LOOK_SECONDS)

    async def _confirm(self) -> None:
        """Ask whether the state is that of the provider now.  Where messages are missing and none
        has come for a while, none may be on its way: the profile is younger than they are, or they
        were thrown away.  Where the provider is not as far, or has said others, its rows were put
        back."""
        before = await self._in_turn(lambda: self.cache.number)
        progress = await self._client.progress(self.name)

        def confirm() -> tuple[bool, bool]:
            number = self.cache.number
            is_other = progress.number == number and progress.digest != self.cache.digest
            if progress.number == number and not is_other:
                self.cache.confirm(progress.revision, progress.time)
            return progress.number > number, is_other or progress.number < before

        async with self._asking:
            is_behind, is_other = await self._in_turn(confirm)
            is_quiet = anyio.current_time() - self._heard > QUIET_SECONDS
            if is_other or (is_behind and is_quiet):
                await self._ask_for_all()
                self._tell_news()


@contextmanager
def _while_away() -> Iterator[None]:
    """Errors that pass when the provider is there again."""
    try:
        yield
    except UserError as error:
        if error.code in _FINAL:
            raise


def profile_text(provider: str, repository: str) -> str:
    """The profile of a repository: the messages that are for it."""
    quoted = repository.replace('"', '""')
    return f'declare namespace m = "{NAMESPACE}"; /m:change[m:to/@repository = "{quoted}"]'
