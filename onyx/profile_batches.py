"""Many profiles at a time: requests of a thousand each, some under way at once, answered in order.

::

    texts ──cut──> request 1, 2, 3, ... ──at most UNDER_WAY──> the network
    for batch  <──────────────────────── in order ────────────

Where a request is cut off it is asked again, with the same id; so it takes effect once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Self, TypeAlias, TypeVar

import anyio
import anyio.lowlevel
from msgspec import UNSET, Struct, UnsetType

from onyx.errors import ProfilesNotAccepted
from onyx.registration_client import ASK_AGAIN, PATIENCE_SECONDS, NetworkClient
from onyx.results import MOVED
from overlay import verbs
from overlay.answers import Location, ProfilesChanged, ProfileVersion
from overlay.settings import ProfileSettings, settings_of

BATCH_PROFILES = 1_000
BATCH_CHARACTERS = 256 * 1024
UNDER_WAY = 4  # requests; the next ones are on their way while one is carried out

_T = TypeVar("_T")

AskHost: TypeAlias = Callable[[str, verbs.ProfileLive], Awaitable[tuple[object, ProfileVersion]]]
"""Of a profile, by a verb with arguments."""


class NewProfile(ProfileSettings, Struct, frozen=True):
    """A profile to be added; ``user`` None: whoever adds it."""

    text: str
    user: str | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class ProfileBatch:
    """What became of the profiles from place ``first`` on, places counted from 0.

    ``ids``: of each, "" for one that is refused; ``refused`` says why, by place.  ``warnings``, by
    place: that no message can match, as the schemas of the sources say.  ``missing``: the brokers
    at which not all of them are live, where the time to wait was over.
    """

    first: int
    ids: Sequence[str]
    refused: Mapping[int, str] = field(default_factory=dict)
    warnings: Mapping[int, Sequence[str]] = field(default_factory=dict)
    missing: Sequence[str] = ()


class Patience:
    """How long somebody waits, from the first time that they ask."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._until: float | None = None

    def timeout(self) -> float | UnsetType:
        """Of a request, in seconds; UNSET: for good."""
        if self._seconds is None:
            return UNSET
        if self._until is None:
            self._until = anyio.current_time() + self._seconds
        return max(0.0, self._until - anyio.current_time())


class How(NamedTuple):
    """``skip_refused``: the others of a batch go ahead; ``wait``: until they are live."""

    skip_refused: bool
    wait: bool
    patience: Patience


class ProfileBatches(Generic[_T]):
    """An asynchronous iterator over ProfileBatch, which may be left in the middle.

    ProfilesNotAccepted where some are refused that may not be left out: then nothing of their
    batch was done, whatever was done of those before and of the UNDER_WAY - 1 behind it.
    """

    def __init__(
        self,
        start_soon: Callable[..., None],
        ask: Callable[[int, int, list[_T]], Awaitable[ProfileBatch]],
        items: Iterator[list[_T]],
        skip_refused: bool,
    ) -> None:
        """``ask`` is given the number of the request, the place of its first item, the items."""
        self._start_soon = start_soon
        self._ask = ask
        self._items = items
        self._skip_refused = skip_refused
        self._number = self._first = 0
        self._open: deque[_Answer] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ProfileBatch:
        while len(self._open) < UNDER_WAY and (items := next(self._items, None)) is not None:
            answer = _Answer()
            self._open.append(answer)
            self._start_soon(self._fill, answer, self._number, self._first, items)
            self._number += 1
            self._first += len(items)
            for _ in range(2):  # it has asked by then, so that requests leave in their order
                await anyio.lowlevel.checkpoint()
        if not self._open:
            raise StopAsyncIteration
        answer = self._open.popleft()
        await answer.is_there.wait()
        if isinstance(batch := answer.found, Exception):
            raise batch
        assert batch is not None
        if batch.refused and not self._skip_refused:
            raise ProfilesNotAccepted(batch.refused)
        return batch

    async def _fill(self, answer: _Answer, number: int, first: int, items: list[_T]) -> None:
        try:
            answer.found = await self._ask(number, first, items)
        except Exception as error:  # raised where the answer is waited for
            answer.found = error
        answer.is_there.set()


def cut(
    items: Iterable[_T],
    size: Callable[[_T], int],
    kind: Callable[[_T], object] = lambda item: None,
) -> Iterator[list[_T]]:
    """Lists of at most BATCH_PROFILES and about BATCH_CHARACTERS, each of one ``kind``."""
    batch: list[_T] = []
    characters, same = 0, None
    for item in items:
        if batch and (
            len(batch) >= BATCH_PROFILES
            or characters + size(item) > BATCH_CHARACTERS
            or kind(item) != same
        ):
            yield batch
            batch, characters = [], 0
        batch.append(item)
        characters += size(item)
        same = kind(item)
    if batch:
        yield batch


async def add_many(
    registration: NetworkClient,
    ask_host: AskHost,
    user: str,
    first: int,
    request: str,
    profiles: Sequence[NewProfile],
    how: How,
) -> ProfileBatch:
    """Add profiles of one place, by a request of this id; ``ask_host`` asks the host broker of a
    profile, ``user`` has those that name nobody."""
    until = how.patience.timeout()
    users = [user if each.user is None else each.user for each in profiles]
    is_one = len(set(users)) == 1
    asked = verbs.ProfileAddMany(
        texts=[profile.text for profile in profiles],
        user=users[0] if is_one else "",
        users=UNSET if is_one else users,
        location=profiles[0].location,
        **settings_of(profiles[0], ProfileSettings),
        wait=how.wait and until is UNSET,
        skip_refused=how.skip_refused,
    )
    result = await registration.ask(asked, request=request)
    refused = {first + place: why for place, _, why in result.refused}
    left = iter(result.profiles)
    places = range(first, first + len(profiles))
    ids = ["" if place in refused else next(left, "") for place in places]
    warnings = await warnings_of(registration, first, ids)
    missing: list[str] = []
    if how.wait and until is not UNSET:
        missing = await wait_live(registration, ask_host, ids, how.patience)
    return ProfileBatch(first, ids, refused, warnings, missing)


async def change_many(
    registration: NetworkClient,
    host_at: Callable[[str], Awaitable[NetworkClient]],
    first: int,
    ids: Sequence[str],
    texts: Sequence[str],
    how: How,
) -> ProfileBatch:
    """Ask the host brokers of profiles, whichever they are by then, until each has its answer;
    ``host_at`` gives a connection to an address, ``texts`` are empty where they are removed."""
    give_up_at = anyio.current_time() + PATIENCE_SECONDS
    failures = 0
    refused: dict[int, str] = {}
    missing: set[str] = set()
    left: Sequence[int] = range(len(ids))
    while left:
        found = await registration.ask(
            verbs.ProfileFindMany(profiles=[ids[place] for place in left])
        )
        by_host: dict[str, list[int]] = {}
        for place, host in zip(left, found.hosts, strict=True):
            by_host.setdefault(host, []).append(place)
        refused |= dict.fromkeys(by_host.pop("", ()), "there is no such profile")
        moving: list[int] = []
        for name, places in by_host.items():
            some, timeout = [ids[place] for place in places], how.patience.timeout()
            asked: verbs.Asks[ProfilesChanged] = verbs.ProfileRemoveMany(
                profiles=some, wait=how.wait, timeout=timeout
            )
            if texts:
                asked = verbs.ProfileUpdateMany(
                    profiles=some,
                    texts=[texts[place] for place in places],
                    skip_refused=how.skip_refused,
                    wait=how.wait,
                    timeout=timeout,
                )
            broker = await host_at(found.addresses[name])
            result = await broker.ask(asked)
            missing |= set(result.missing)
            await _wait_known(registration, some, result)
            for at, code, why in result.refused:
                if code in MOVED and anyio.current_time() < give_up_at:
                    moving.append(places[at])
                else:
                    refused[places[at]] = why
        left = moving
        if left:
            failures += 1
            await anyio.sleep(ASK_AGAIN.after(failures))
    shown = ["" if place in refused else profile for place, profile in enumerate(ids)]
    why_not = {first + place: why for place, why in refused.items()}
    warnings = await warnings_of(registration, first, shown) if texts else {}
    return ProfileBatch(first, shown, why_not, warnings, sorted(missing))


async def warnings_of(
    registration: NetworkClient, first: int, ids: Sequence[str]
) -> dict[int, list[str]]:
    """By place, what the schemas of the sources say of profiles; "" is passed over."""
    found: dict[int, list[str]] = {}
    places = [place for place, profile in enumerate(ids) if profile]
    while places:
        asked = verbs.ProfileWarnings(profiles=[ids[place] for place in places])
        result = await registration.ask(asked)
        found |= {first + places[at]: warnings for at, warnings in result.warnings}
        places = places[result.looked_at :]
    return found


async def wait_live(
    registration: NetworkClient,
    ask_host: AskHost,
    ids: Iterable[str],
    patience: Patience,
) -> list[str]:
    """Until profiles that were added together are live, or the time is over: the brokers that are
    missing.  What came last to a host is live last."""
    profiles = [profile for profile in ids if profile]
    missing: set[str] = set()
    if profiles:
        found = await registration.ask(verbs.ProfileFindMany(profiles=profiles))
        by_host = dict(zip(found.hosts, profiles, strict=True))
        by_host.pop("", None)  # somebody has removed them
        for last in by_host.values():
            asked = verbs.ProfileLive(profile=last, wait=True, timeout=patience.timeout())
            _, result = await ask_host(last, asked)
            missing |= set(result.missing)
    return sorted(missing)


async def _wait_known(
    registration: NetworkClient, profiles: Sequence[str], result: ProfilesChanged
) -> None:
    """Until the registration service shows to whoever asks what a host broker has changed; it
    hears of the last change last."""
    refused = {at for at, *_ in result.refused}
    changed = [at for at in range(len(profiles)) if at not in refused]
    if changed:
        version = result.versions[changed[-1]] if result.versions else 0
        await registration.ask(verbs.ProfileAwait(profile=profiles[changed[-1]], version=version))


class _Answer:
    """What becomes of one request."""

    def __init__(self) -> None:
        self.found: ProfileBatch | Exception | None = None
        self.is_there = anyio.Event()
