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
from typing import Generic, NamedTuple, Self, TypeVar

import trio

from onyx.client_values import Location
from onyx.errors import ProfilesNotAccepted
from onyx.registration_client import PATIENCE_SECONDS, NetworkClient, Result
from onyx.results import MOVED, PAUSE_SECONDS, PAUSE_SECONDS_MAX

BATCH_PROFILES = 1_000
BATCH_CHARACTERS = 256 * 1024
UNDER_WAY = 4  # requests; the next ones are on their way while one is carried out

_T = TypeVar("_T")


class NewProfile(NamedTuple):
    """A profile to be added; ``user`` None: whoever adds it."""

    text: str
    user: str | None = None
    location: Location | None = None
    near: bool = False


@dataclass(frozen=True, slots=True)
class ProfileBatch:
    """What became of the profiles from place ``first`` on, places counted from 0.

    ``ids``: of each, "" for one that is refused; ``refused`` says why, by place.
    """

    first: int
    ids: Sequence[str]
    refused: Mapping[int, str] = field(default_factory=dict)


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
                await trio.lowlevel.checkpoint()
        if not self._open:
            raise StopAsyncIteration
        batch = await self._open.popleft().wait()
        if batch.refused and not self._skip_refused:
            raise ProfilesNotAccepted(batch.refused)
        return batch

    async def _fill(self, answer: _Answer, number: int, first: int, items: list[_T]) -> None:
        try:
            answer.batch = await self._ask(number, first, items)
        except Exception as error:  # raised where the answer is waited for
            answer.error = error
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


async def change_many(
    registration: NetworkClient,
    host_at: Callable[[str], Awaitable[NetworkClient]],
    first: int,
    verb: str,
    ids: Sequence[str],
    texts: Sequence[str],
    arguments: Mapping[str, object],
) -> ProfileBatch:
    """Ask the host brokers of profiles, whichever they are by then, until each has its answer;
    ``host_at`` gives a connection to an address, ``texts`` are empty where they are removed."""
    give_up_at = trio.current_time() + PATIENCE_SECONDS
    pause = PAUSE_SECONDS
    refused: dict[int, str] = {}
    left: Sequence[int] = range(len(ids))
    while left:
        asked = {"profiles": [ids[place] for place in left]}
        found = await registration.call("profile.find_many", asked)
        by_host: dict[str, list[int]] = {}
        for place, host in zip(left, found["hosts"], strict=True):
            by_host.setdefault(host, []).append(place)
        refused |= dict.fromkeys(by_host.pop("", ()), "there is no such profile")
        moving: list[int] = []
        for name, places in by_host.items():
            asked = {"profiles": [ids[place] for place in places]}
            if texts:
                asked["texts"] = [texts[place] for place in places]
            broker = await host_at(found["addresses"][name])
            result = await broker.call(verb, {**asked, **arguments})
            await _wait_known(registration, asked["profiles"], result)
            for at, code, why in result["refused"]:
                if code in MOVED and trio.current_time() < give_up_at:
                    moving.append(places[at])
                else:
                    refused[places[at]] = why
        left = moving
        if left:
            await trio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
    shown = ["" if place in refused else profile for place, profile in enumerate(ids)]
    return ProfileBatch(first, shown, {first + place: why for place, why in refused.items()})


async def _wait_known(registration: NetworkClient, profiles: Sequence[str], result: Result) -> None:
    """Until the registration service shows to whoever asks what a host broker has changed; it
    hears of the last change last."""
    refused = {at for at, *_ in result["refused"]}
    changed = [at for at in range(len(profiles)) if at not in refused]
    if changed:
        known: dict[str, object] = {"profile": profiles[changed[-1]]}
        if "versions" in result:
            known["version"] = result["versions"][changed[-1]]
        await registration.call("profile.await", known)


class _Answer:
    """What becomes of one request."""

    def __init__(self) -> None:
        self.batch: ProfileBatch | None = None
        self.error: Exception | None = None
        self.is_there = trio.Event()

    async def wait(self) -> ProfileBatch:
        await self.is_there.wait()
        if self.error is not None:
            raise self.error
        assert self.batch is not None
        return self.batch
