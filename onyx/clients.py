"""User, and DataSource (data_source.py): the two ends of the network, for asynchronous Python.

::

    source = await DataSource.register("127.0.0.1:7000", name="weather")
    async with source:
        outcome = await source.publish(b"<report><city>Oslo</city></report>")

    async with User("127.0.0.1:7000", "ada") as user:
        profile = await user.add_profile("//report[city = 'Oslo']")
        async for delivery in user.results(profile.id):
            print(delivery.results)

Both stay connected for the length of their block: a lost connection is dialled again, with
growing pauses, and what was under way is sent again.  Every message arrives exactly once; every
result is delivered until it is acknowledged, and not again in the same run.

They run on Trio and on asyncio (``onyx.aio``); ``onyx.blocking`` has the same without ``async``.
"""

from __future__ import annotations

import getpass
import re
import uuid
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
)
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from typing import Any, Self, TypeVar, cast

import anyio
from anyio.abc import TaskGroup, TaskStatus
from msgspec.structs import replace

from formats.media_types import XML
from onyx.background import background_tasks
from onyx.client_values import Delivery, Page
from onyx.errors import NetworkUnreachable, NotAuthenticated, RequestFailed, UsageError
from onyx.identity.known_networks import credentials_for
from onyx.positions import PositionOf, Positions
from onyx.profile_batches import (
    How,
    NewProfile,
    Patience,
    ProfileBatch,
    ProfileBatches,
    add_many,
    change_many,
    cut,
)
from onyx.registration_client import (
    ASK_AGAIN,
    PATIENCE_SECONDS,
    NetworkClient,
    RegistrationClient,
    Where,
    addresses_of,
    open_connection,
)
from onyx.renewal import keep_shown_renewed
from onyx.results import MOVED, Results
from overlay import verbs
from overlay.answers import Location, Position, ProfileInfo, Waiting
from overlay.delivery_policy import USUAL, DeliveryPolicy
from overlay.link.client_connection import ClientConnection
from overlay.link.frames import EPHEMERAL, HELD, SHARED, contents
from overlay.settings import ProfileSettings, settings_of

_T = TypeVar("_T")

OUTSIDE = (
    "this User has no connection outside of its block; write async with User(...) as client: and "
    "use it inside"
)
IS_ID = re.compile(r"p\d+(-[a-z0-9]+)?")  # of a profile; anything else is its key
LIVE_SECONDS = 60.0
"""For which a change of one profile is waited for; a broker that is away keeps nobody longer."""


async def hold(
    manager: AbstractAsyncContextManager[_T],
    use: Callable[[_T], Awaitable[object]],
    task_status: TaskStatus[_T] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """A task that is in the block of a context manager as long as ``use`` of it takes."""
    async with manager as entered:
        task_status.started(entered)
        await use(entered)


async def forever(entered: object) -> None:
    await anyio.sleep_forever()


class User:
    """A user: their profiles and results; a context manager.

    Where the profiles are hosted need not concern them: when one moves to another broker, its
    results go on from there, and changes go there.
    """

    def __init__(self, registration: Where, name: str = "") -> None:
        """``name`` goes with the profiles that are added here."""
        self.name = name
        self._where = registration
        self._registration = RegistrationClient(registration, called="User")
        self._stack = AsyncExitStack()
        self._hosts: dict[str, NetworkClient] = {}
        self._pages_from: dict[str, ProfileInfo] = {}  # profiles whose host broker gave a page last
        self._subscribers: dict[str, ClientConnection] = {}
        self._opening: anyio.Lock
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._opening = anyio.Lock()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._registration)
            self._tasks = await stack.enter_async_context(
                background_tasks(anyio.create_task_group())
            )
            self._tasks.start_soon(keep_shown_renewed, self._where)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        self._tasks = None
        self._hosts.clear()
        self._subscribers.clear()
        return await self._stack.__aexit__(*raised)

    async def add_profile(
        self,
        /,
        text: str,
        *,
        location: Location | None = None,
        wait: bool = True,
        timeout_seconds: float | None = LIVE_SECONDS,
        key: str = "",
        policy: DeliveryPolicy = USUAL,
        **settings: Any,
    ) -> ProfileInfo:
        """Register a profile; with ``wait`` it is live on return, with ``near``, one of the
        ``settings`` (ProfileSettings), it is hosted near ``location`` even where a plan would have
        it elsewhere.

        ProfileNotAccepted, with line, column and what was expected, when the text is refused.
        After ``timeout_seconds`` (None: however long it takes) it returns all the same: ``live`` is
        false then, and ``missing`` names the brokers that do not have the profile yet.

        ``key`` names the profile, in any process: as long as it is there, to add it again under
        the same key gives the same one, as it is by now.  RequestFailed "other-content" where it
        was added with another text.  So a program that does not know whether it was answered, or
        that is started again, can ask again.

        ``policy``: how what waits for it is kept, and what is rejected comes again.
        """
        info = await self._registration.add_profile(
            *(text,),
            user=self.name,
            location=location,
            wait=wait,
            timeout_seconds=timeout_seconds,
            key=key,
            policy=policy,
            **settings,
        )
        if not wait or info.live:
            return info
        _, result = await self._ask_host(
            info.id, verbs.ProfileLive(profile=info.id, wait=wait, timeout=0.0)
        )
        return replace(info, live=result.live, missing=result.missing)

    def add_profiles(
        self,
        profiles: Iterable[str | NewProfile],
        *,
        key: str = "",
        skip_refused: bool = False,
        wait: bool = True,
        timeout_seconds: float | None = None,
    ) -> ProfileBatches[NewProfile]:
        """Register many profiles, thousands a second; an asynchronous iterator over what becomes
        of them, batch by batch, in order.

        ``key`` names this call, in any process: the same profiles under the same key are added
        once, however often that is asked, so that what was cut off can be done again.  Without
        ``skip_refused`` a batch in which one is refused is not added (ProfilesNotAccepted).  With
        ``wait`` those of a batch are live when it comes, or ``timeout_seconds`` of the whole are
        over; then it names the brokers that are missing.
        """
        patience = Patience(timeout_seconds)
        key = key or uuid.uuid4().hex
        asked = (NewProfile(p) if isinstance(p, str) else p for p in profiles)

        add_some = partial(add_many, self._registration, self._ask_host, self.name)

        async def add(number: int, first: int, some: list[NewProfile]) -> ProfileBatch:
            how = How(skip_refused, wait, patience)
            return await add_some(first, f"{key}/{number}", some, how)

        def kind(profile: NewProfile) -> object:
            return profile.location, settings_of(profile, ProfileSettings)

        batches = cut(asked, lambda profile: len(profile.text), kind)
        return ProfileBatches(self._start_soon, add, batches, skip_refused)

    def update_profiles(
        self,
        changes: Iterable[tuple[str, str]],
        *,
        skip_refused: bool = False,
        wait: bool = True,
        timeout_seconds: float | None = None,
    ) -> ProfileBatches[tuple[str, str]]:
        """Replace the texts of many profiles (id, text); as ``add_profiles``.  To do it again
        changes nothing."""

        changes_of = partial(change_many, self._registration, self._host)
        patience = Patience(timeout_seconds)

        async def update(number: int, first: int, some: list[tuple[str, str]]) -> ProfileBatch:
            ids = [profile for profile, _ in some]
            texts = [text for _, text in some]
            return await changes_of(first, ids, texts, How(skip_refused, wait, patience))

        batches = cut(changes, lambda change: len(change[1]))
        return ProfileBatches(self._start_soon, update, batches, skip_refused)

    def remove_profiles(
        self,
        profile_ids: Iterable[str],
        *,
        wait: bool = False,
        timeout_seconds: float | None = None,
    ) -> ProfileBatches[str]:
        """Remove many profiles, as ``remove_profile`` does; those that are not there are told as
        refused.  With ``wait`` no broker keeps their interest any more when a batch comes, or
        ``timeout_seconds`` of the whole are over; then it names those that may."""

        changes_of = partial(change_many, self._registration, self._host)
        patience = Patience(timeout_seconds)

        async def remove(number: int, first: int, some: list[str]) -> ProfileBatch:
            return await changes_of(first, some, [], How(True, wait, patience))

        return ProfileBatches(self._start_soon, remove, cut(profile_ids, len), True)

    async def update_profile(
        self,
        profile_id: str,
        text: str,
        *,
        wait: bool = True,
        timeout_seconds: float | None = LIVE_SECONDS,
    ) -> ProfileInfo:
        """Replace the text; when it is refused (ProfileNotAccepted) the old one stays.

        ``wait`` and ``timeout_seconds`` as with ``add_profile``.
        """
        asked = verbs.ProfileUpdate(
            profile=profile_id, text=text, wait=wait, timeout=verbs.given(timeout_seconds)
        )
        info, result = await self._ask_host(profile_id, asked)
        # From here on the registration service shows the new text to whoever asks.
        known = verbs.ProfileAwait(profile=info.id, version=result.version)
        shown = await self._registration.ask(known)
        now = replace(info, version=result.version, live=result.live, missing=result.missing)
        return replace(now, text=text, warnings=shown.warnings)

    async def set_policy(self, profile_id: str, policy: DeliveryPolicy) -> None:
        """How what waits for a profile is kept from now on; RequestFailed "unknown-profile"."""
        asked = verbs.ProfilePolicy(profile=profile_id, policy=policy)
        await self._ask_host(profile_id, asked)

    async def policy(self, profile_id: str) -> DeliveryPolicy:
        """How it is kept now, as its host broker says; RequestFailed "unknown-profile"."""
        _, result = await self._ask_host(profile_id, verbs.ProfilePolicy(profile=profile_id))
        return result.policy

    async def remove_profile(
        self, profile_id: str, *, wait: bool = False, timeout_seconds: float | None = LIVE_SECONDS
    ) -> tuple[str, ...]:
        """Remove a profile with all that was not delivered; RequestFailed "unknown-profile".

        With ``wait`` it returns when no broker keeps its interest any more, or after
        ``timeout_seconds`` with the brokers that do.
        """
        profile_id = (await self._registration.profile(profile_id)).id  # which there must be
        missing: tuple[str, ...] = ()
        try:
            until = verbs.given(timeout_seconds)
            asked = verbs.ProfileRemove(profile=profile_id, wait=wait, timeout=until)
            missing = (await self._ask_host(profile_id, asked))[1].missing
        except RequestFailed as failure:
            # Gone already: an answer that got lost, or somebody else was faster.
            if failure.code != "unknown-profile":
                raise
        await self._registration.ask(verbs.ProfileAwait(profile=profile_id))
        return missing

    async def profiles(self, *, texts: bool = False) -> list[ProfileInfo]:
        """The profiles of this user, ``texts`` with them; of all users when it has no name."""
        return await self._registration.profiles(self.name, texts)

    async def profile(self, profile_id: str) -> ProfileInfo:
        """One profile with its text, by its id, by its key if that is one's own, or by USER/KEY, as
        all that takes one profile; RequestFailed "unknown-profile" when there is none."""
        return await self._registration.profile(profile_id)

    def results(
        self,
        *profile_ids: str,
        share: bool = False,
        ephemeral: bool = False,
        held: bool = False,
        once: bool = False,
        positions: Positions | PositionOf | None = None,
    ) -> Results:
        """The results of profiles, from the first that was not acknowledged yet, without end; with
        ``once`` those that wait at the host brokers when it connects; it ends when these brokers
        have the acknowledgements on disk.

        Where none is named, those of all that the user has when it connects.  What one broker hosts
        comes over one connection.

        With ``share`` each delivery goes to one of all that share the profile, the one with fewest
        not acknowledged; what one had who has gone, to the others.  Order is kept for each of them,
        not among them, and what comes again comes late.  Who takes a profile without ``share`` ends
        those who do (RequestFailed "replaced"), and the other way round.

        With ``ephemeral`` nothing is kept while nobody takes the profile: what is not acknowledged
        when the last connection for it goes is lost, and so is what comes before the next, by a
        connection that broke and a broker that restarts as well.  That counts for the profile until
        somebody takes it without ``ephemeral``.

        With ``positions`` what was done with deliveries is known over restarts of this process, and
        none is given again that was (positions.py): the position of a delivery is saved when the
        next is asked for; or its user stores ``Delivery.position`` in the same transaction as what
        they do with it, and ``positions`` is a function that tells of a profile what is stored, 0
        for nothing.  UsageError with ``share``, as each then has only some of the deliveries.

        With ``held`` deliveries stay at the broker when the next is asked for, until their user
        says by ``User.positions``, from any process, which are done; until then they come again, as
        they were, to whoever asks behind a position before.
        """
        if share and positions is not None:
            raise UsageError("positions are of profiles that are not shared: leave out one of both")
        if held and (share or ephemeral):
            raise UsageError("what is held is neither shared nor ephemeral: leave out one of both")
        if once and share:
            raise UsageError("what waits once is not shared: leave out one of both")
        find: Callable[[], Awaitable[Iterable[ProfileInfo]]] | None = None
        if not profile_ids:
            find = partial(self._registration.profiles, self.name)
        elif not all(map(IS_ID.fullmatch, profile_ids)):
            find, profile_ids = partial(self._named, profile_ids), ()
        return Results(
            *(self._registration, profile_ids, self._subscriber, self._start_soon, find),
            mode=SHARED * share | EPHEMERAL * ephemeral | HELD * held,
            positions=positions,
            ends=self.positions if once else None,
        )

    async def _named(self, names: Iterable[str]) -> list[ProfileInfo]:
        return [await self._registration.profile(name) for name in names]

    async def positions(
        self, *profile_ids: str, released: Mapping[str, int] | None = None
    ) -> dict[str, Position]:
        """How far the deliveries of profiles go, as their host brokers have them on disk; those of
        ``released``, through a number of each, are done and go.

        RequestFailed: "unknown-profile", or "store-lost" of a number that its broker does not know.
        """
        give_up_at = anyio.current_time() + PATIENCE_SECONDS
        failures, said = 0, dict[str, Position]()
        left = list(profile_ids or released or ())
        while left:
            hosts, left = await self.hosts(*left), []
            for address, some in hosts.items():
                numbers = [] if released is None else [released[name] for name in some]
                broker = await self._host(address)
                asked = verbs.ProfilePositions(profiles=some, released=numbers)
                answer = await broker.ask(asked)
                said |= {position.profile: position for position in answer.positions}
                for place, code, why in answer.refused:
                    if code not in MOVED or anyio.current_time() > give_up_at:
                        raise RequestFailed(code, why)
                    left.append(some[place])
            failures += 1
            await anyio.sleep(ASK_AGAIN.after(failures) if left else 0)
        return said

    async def waiting(
        self, profile_id: str, after: int, through: int, timeout_seconds: float = PATIENCE_SECONDS
    ) -> Page:
        """Deliveries of a profile that wait behind the position ``after``, as many as come at once,
        at most through the position ``through``, which was given out.  They stay until they are
        released (``positions``), and come as they were to whoever asks again.

        RequestFailed: "unknown-profile", "store-lost" of an ``after`` that its broker does not
        know, "shared"; NetworkUnreachable where none comes for so long.
        """
        asked = verbs.ProfileWaiting(profile=profile_id, after=after, through=through)
        with anyio.move_on_after(timeout_seconds):
            failures = 0
            while True:
                known = self._pages_from.pop(profile_id, None)
                with suppress(NetworkUnreachable):
                    info, page = await self._ask_host(profile_id, asked, known)
                    self._pages_from[profile_id] = info
                    gone = min(page.gone, through)
                    last = page.deliveries[-1].position if page.deliveries else gone
                    if last > after:
                        given = [one for one in page.deliveries if one.lengths]
                        made = [_delivery(profile_id, one) for one in given]
                        return Page(made, last, max(0, gone - after))
                failures += 1
                await anyio.sleep(ASK_AGAIN.after(failures))
        what = f"no delivery of {profile_id} has come in {timeout_seconds:g} s"
        raise NetworkUnreachable(f"{what} from the broker that hosts it")

    async def hosts(self, *profile_ids: str) -> dict[str, list[str]]:
        """Profiles by the address of their host broker; RequestFailed "unknown-profile"."""
        by_address: dict[str, list[str]] = {}
        if profile_ids:
            asked = verbs.ProfileFindMany(profiles=list(profile_ids))
            found = await self._registration.ask(asked)
            for profile, host in zip(profile_ids, found.hosts, strict=True):
                if not host:
                    raise RequestFailed("unknown-profile", f"there is no profile {profile}")
                by_address.setdefault(found.addresses[host], []).append(profile)
        return by_address

    async def _subscriber(self, address: str) -> ClientConnection:
        """The connection for results from the broker at an address, kept for the length of the
        block."""
        async with self._opening:
            known = self._subscribers.get(address)
            if known is None:
                manager = open_connection(addresses_of(address), "subscriber", uuid.uuid4().hex)
                known = self._subscribers[address] = await self._in_background(manager)
            return known

    def _start_soon(
        self, function: Callable[..., Coroutine[Any, Any, object]], *arguments: object
    ) -> None:
        if self._tasks is None:
            raise RuntimeError(OUTSIDE)
        self._tasks.start_soon(function, *arguments)

    async def _host(self, address: str) -> NetworkClient:
        """A connection to a host broker, kept for the length of the block."""
        if address not in self._hosts:
            client = NetworkClient(address)
            await self._in_background(client)
            self._hosts[address] = client
        return self._hosts[address]

    async def _ask_host(
        self, profile_id: str, asked: verbs.Asks[_T], known: ProfileInfo | None = None
    ) -> tuple[ProfileInfo, _T]:
        """Ask the host broker of a profile, whichever it is by then; first the one that it was when
        it was ``known``."""
        give_up_at = anyio.current_time() + PATIENCE_SECONDS
        failures = 0
        while True:
            info, known = known or await self._registration.profile(profile_id), None
            host = await self._host(info.address)
            try:
                return info, await host.ask(replace(cast("Any", asked), profile=info.id))
            except RequestFailed as failure:
                if failure.code not in MOVED or anyio.current_time() > give_up_at:
                    raise
                if failure.code == "unknown-profile":
                    now = await self._registration.profile(profile_id)
                    if now.host == info.host:
                        raise
            failures += 1
            await anyio.sleep(ASK_AGAIN.after(failures))

    async def _in_background(self, manager: AbstractAsyncContextManager[_T]) -> _T:
        """Enter a context manager in a task that leaves it at the end of the block."""
        if self._tasks is None:
            raise RuntimeError(OUTSIDE)
        entered: _T = await self._tasks.start(hold, manager, forever)
        return entered


def _delivery(profile: str, waiting: Waiting) -> Delivery:
    results, limit, media_type = contents(waiting.lengths, waiting.payload)
    what = waiting.source, waiting.number, results, limit, media_type or XML
    return Delivery(profile, *what, position=waiting.position)


def user_name(registration: Where) -> str:
    """Of the user whose credentials are shown to a network, else of the account of this process."""
    with suppress(NotAuthenticated):  # whose reason the connection tells
        credentials = credentials_for(*addresses_of(registration)[0])
        if credentials is not None and credentials.principal.role == "user":
            return credentials.principal.name
    return login_name()


def login_name() -> str:
    """The name under which this process runs; "" where the system knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
