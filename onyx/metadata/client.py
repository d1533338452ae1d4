"""MetadataClient: a provider's verbs, asked over a network."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio

from onyx.errors import RequestFailed, UserError
from onyx.metadata import requests
from onyx.metadata.requests import Question, RuleListed
from onyx.registration_client import RegistrationClient
from registration.metadata.backbone import longest
from registration.metadata.provider import Outcome, RuleInfo

A = TypeVar("A")
P = ParamSpec("P")
TIMEOUT_SECONDS = 60.0
AGAIN_SECONDS = 0.5  # between two questions how far the members are


def _asks(
    kind: Callable[P, Question[A]],
) -> Callable[Concatenate[MetadataClient, P], Coroutine[Any, Any, A]]:
    """The method that makes a question of its arguments, and asks it."""

    def method(self: MetadataClient, /, *said: P.args, **named: P.kwargs) -> Coroutine[Any, Any, A]:
        return self.ask(kind(*said, **named))

    return method


class MetadataClient:
    """Of the provider that publishes as a source; an asynchronous context manager.  Its methods are
    those of ``MetadataProvider``; errors are RequestFailed with the fault of the provider."""

    def __init__(self, registration: str, provider: str) -> None:
        """``registration``: where the registration service is; ``provider``: the source's id or
        name."""
        self._registration = RegistrationClient(registration)
        self.provider = provider

    async def __aenter__(self) -> Self:
        await self._registration.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._registration.__aexit__(*raised)

    async def ask(
        self, question: Question[A], timeout: float = TIMEOUT_SECONDS, *, of: str = ""
    ) -> A:
        """``of``: another provider that is asked."""
        body = await self._registration.ask_source(
            of or self.provider, requests.asked(question), question.writes, timeout=timeout
        )
        return requests.read_answer(question, body)

    async def source_id(self) -> str:
        """Of the source as which the provider publishes."""
        return (await self._registration.source(self.provider)).id

    put_schema = _asks(requests.PutSchema)
    register = _asks(requests.Register)
    remove = _asks(requests.Remove)
    add_rules = _asks(requests.AddRules)
    remove_rule = _asks(requests.RemoveRule)
    explain = _asks(requests.Explain)
    browse = _asks(requests.Browse)
    repositories = _asks(requests.Repositories)
    remove_repository = _asks(requests.RemoveRepository)
    document = _asks(requests.Document)
    whole = _asks(requests.Whole)
    progress = _asks(requests.AskProgress)
    standing = _asks(requests.AskStanding)
    status = _asks(requests.Status)

    async def by_home(self, uris: Iterable[str]) -> dict[str, list[str]]:
        """URIs of documents ("": the schema) by the provider that is their home, "" where there is
        only one provider."""
        prefixes = (await self.standing()).prefixes
        found: dict[str, list[str]] = {}
        for uri in uris:
            row = prefixes.get(longest(prefixes, uri))
            found.setdefault(row.provider if row else "", []).append(uri)
        return found

    async def wait_for_all(
        self,
        uris: Iterable[str],
        told: Callable[[list[str]], object],
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        """Until all members of the backbone have what the homes of these documents have now;
        ``told`` is called with those that have not.  RequestFailed "timeout" says which."""
        numbers = {}
        missing: list[str] = []
        for home in await self.by_home(uris):
            standing = await self.ask(requests.AskStanding(), of=home)
            numbers[home] = standing.number
            missing = sorted({*standing.applied, standing.name})
        with anyio.move_on_after(timeout):
            while True:
                for member in list(missing):
                    with suppress(UserError):
                        standing = await self.ask(requests.AskStanding(), AGAIN_SECONDS, of=member)
                        known = standing.applied | {member: standing.number}
                        if all(known.get(home, -1) >= numbers[home] for home in numbers if home):
                            missing.remove(member)
                if not missing:
                    return
                told(missing)
                await anyio.sleep(AGAIN_SECONDS)
        raise RequestFailed("timeout", f"it is not known to {', '.join(missing)} yet")

    async def move(self, prefix: str, to: str, *, is_lost: bool = False) -> Outcome:
        """Make another provider the home of documents; where that of before ``is_lost``, the other
        one takes them as the members have them."""
        question = requests.MovePrefix(prefix=prefix, to=to, is_lost=is_lost)
        return await self.ask(question, of=to if is_lost else "")

    async def add_rule(
        self, repository: str, text: str, name: str = "", *, dry_run: bool = False
    ) -> RuleInfo:
        (info,) = await self.add_rules(repository, ((text, name),), dry_run=dry_run)
        return info

    async def rules(self, repository: str) -> list[RuleListed]:
        found: list[RuleListed] = []
        while page := await self.ask(
            requests.Rules(repository=repository, after=found[-1].id if found else "")
        ):
            found += page
        return found

    async def matches(self, rule: str) -> list[str]:
        found: list[str] = []
        while page := await self.ask(requests.Matches(rule=rule, after=found[-1] if found else "")):
            found += page
        return sorted(found)

    async def select(
        self, repository: str, uris: Iterable[str], *, dry_run: bool = False
    ) -> list[RuleInfo]:
        """Have a repository hold resources: a rule for each, made here, in one revision."""
        rules = []
        for uri in uris:
            seen = (await self.browse(uri, limit=1)).resource
            if seen is None or not seen.classes:
                reason = f"{uri} is no resource of a class"
                raise RequestFailed("no-such-resource", reason)
            rules.append((f"search <{seen.classes[0]}> v register v where v = <{uri}>", ""))
        return await self.add_rules(repository, rules, dry_run=dry_run)

    async def documents(self, prefix: str = "") -> dict[str, str]:
        """The digests (SHA-256, hexadecimal) of the documents whose URIs begin so, by URI."""
        return await requests.all_documents(self.ask, prefix)
