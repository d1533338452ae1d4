"""The network of the demo: started, registered at, published into, observed, and ended.

Every step goes through what any program would use: ``onyx.launch``, ``onyx.DataSource``,
``onyx.User``, and the brokers' requests ``observe`` and ``statistics``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import trio
from msgspec import convert

from demo.acceptance import Refusal
from demo.metadata import play_metadata
from demo.outcome import Decision, Registered, Run
from demo.planning import PLANNING_SECONDS, PlanningFailure, make_demo_plan
from demo.profile_files import DemoProfile
from demo.quiescence import Counters, abnormal, is_over, read_counters
from demo.scenario import Scenario
from demo.traffic import Visit
from demo.verdict import DeliveryKey
from onyx import DataSource, Results, RunningNetwork, User, launch
from onyx.identity.known_networks import credentials_for
from onyx.registration_client import RegistrationClient
from overlay.link.client_connection import ClientConnection, ClientLimits, open_client
from overlay.nodes import Address, Place
from overlay.routing.broadcast_tree import broadcast_trees
from overlay.statistics import BrokerStatistics
from overlay.topology import Topology

# A run that is not over by then has failed, and says so.
SAFETY_SECONDS = 120.0
SAFETY_SECONDS_PER_MESSAGE = 0.25
_POLL_SECONDS = 0.02  # between two rounds of reading counters
_OBSERVER_LIMITS = ClientLimits(observed_max=2_000_000)


class NetworkFailure(Exception):
    """A run that cannot go on; the text says what happened."""


class Watcher(Protocol):
    """Whoever is told how the run goes."""

    def step(self, text: str) -> None: ...
    def visit(self, run: Run, visit: Visit) -> None: ...


class DemoNetwork:
    """One run of a scenario on a topology."""

    def __init__(
        self, scenario: Scenario, topology: Topology, watcher: Watcher, *, planned: bool = True
    ) -> None:
        """``planned``: profiles are placed by a plan, else near their users."""
        any_port = {node: (address.host, 0) for node, address in _addresses(topology).items()}
        self._topology = topology.with_addresses(any_port)
        self._scenario = scenario
        self._watcher = watcher
        self._places = {broker.label: broker.place for broker in topology.brokers}
        self._source_names: dict[str, str] = {}
        self._log: list[str] = []
        self.pids: list[int] = []  # of all processes that were started
        self._planned = trio.Event() if planned else None
        self.run = Run(topology, broadcast_trees(topology))

    @property
    def addresses(self) -> list[Address]:
        """Where its processes listened."""
        return list(_addresses(self.run.topology).values())

    async def play(self, directory: Path) -> Run:
        """The whole run; ``directory`` is where the processes keep what must be durable.

        NetworkFailure when it does not come to its end.
        """
        messages = len(self._scenario.messages)
        seconds = SAFETY_SECONDS + PLANNING_SECONDS + SAFETY_SECONDS_PER_MESSAGE * messages
        with trio.move_on_after(seconds) as safety:
            await self._play(directory)
        if safety.cancelled_caught:
            raise NetworkFailure(f"not over after {seconds:g} s{self._last_log_lines()}")
        return self.run

    async def _play(self, directory: Path) -> None:
        async with AsyncExitStack() as stack:
            if self._planned is not None:
                planner = await stack.enter_async_context(trio.open_nursery())
                planner.start_soon(self._make_plan, self._planned)
            network = await stack.enter_async_context(self._launched(directory))
            observers = [
                await stack.enter_async_context(_client(network, broker))
                for broker in network.topology.broker_ids
            ]
            sources = await self._register_sources(stack, network)
            if self._planned is not None:
                await self._use_plan(network, self._planned)
            users = await self._register_profiles(stack, network)
            async with trio.open_nursery() as nursery:
                for observer in observers:
                    await observer.call("observe", {})
                    nursery.start_soon(self._observe, observer)
                await self._subscribe(nursery, users)
                self._watcher.step(f"publishing {len(self._scenario.messages)} messages")
                start = trio.current_time()
                await self._publish(sources)
                await self._wait_over(network.topology.broker_ids, observers)
                self.run.publish_seconds = trio.current_time() - start
                nursery.cancel_scope.cancel()
            beside = directory.with_name("metadata")
            self.run.abnormal += await play_metadata(
                network.registration, beside, self._watcher.step
            )

    @asynccontextmanager
    async def _launched(self, directory: Path) -> AsyncIterator[RunningNetwork]:
        self._watcher.step(
            f"starting the registration service and {len(self._topology.brokers)} brokers, "
            "each a process of its own"
        )
        async with launch(
            self._topology,
            data_directory=directory,
            report=self._take_process_event,
            write_line=self._log.append,
        ) as network:
            self.run.topology = network.topology
            self.pids = list(network.pids.values())
            yield network

    def _take_process_event(self, event: str, child: Any) -> None:
        if event == "died":
            self.run.abnormal.append(f"the process of {child.node_id} died")

    def _last_log_lines(self) -> str:
        return "".join(f"\n    {line}" for line in self._log[-10:])

    # --- the plan -------------------------------------------------------------------------

    async def _make_plan(self, planned: trio.Event) -> None:
        self._watcher.step("planning where profiles are placed")
        try:
            self.run.plan = await make_demo_plan(self._scenario, self._topology)
        except PlanningFailure as failure:
            raise NetworkFailure(f"the profiles could not be planned: {failure}") from None
        planned.set()

    async def _use_plan(self, network: RunningNetwork, planned: trio.Event) -> None:
        """From here on the registration service places profiles by the plan."""
        await planned.wait()
        assert self.run.plan is not None
        plan = self.run.plan.plan
        self._watcher.step(
            f"the plan: {plan.partitions} partitions by {len(plan.rules)} patterns; a message is "
            f"expected to visit {plan.facts.matched_share:.0%} of them"
        )
        async with RegistrationClient(network.registration) as registration:
            await registration.use_plan(self.run.plan.text)

    # --- registration ---------------------------------------------------------------------

    async def _register_sources(
        self, stack: AsyncExitStack, network: RunningNetwork
    ) -> dict[str, DataSource]:
        self._watcher.step(f"registering {len(self._scenario.sources)} data sources")
        sources = {}
        for entry in self._scenario.sources:
            messages = self._scenario.of_source(entry.name)
            size = sum(len(message.data) for message in messages) // max(len(messages), 1)
            source = await DataSource.register(
                network.registration,
                name=entry.name,
                location=self._location(entry.city),
                rate=10.0,
                size=size,
            )
            sources[entry.name] = await stack.enter_async_context(source)
            self._source_names[source.id] = entry.name
            self.run.sources[entry.name] = Registered(source.id, source.root)
            self.run.traffic.roots[source.id] = source.root
        return sources

    async def _register_profiles(
        self, stack: AsyncExitStack, network: RunningNetwork
    ) -> dict[str, User]:
        """All profiles, until each is live; the users by name."""
        profiles = self._scenario.profiles
        self._watcher.step(f"registering {len(profiles)} profiles, until each is live")
        users: dict[str, User] = {}
        for profile in profiles:
            if profile.user not in users:
                user = User(network.registration, profile.user)
                users[profile.user] = await stack.enter_async_context(user)
        registered: dict[int, Registered] = {}

        async def register(place: int, profile: DemoProfile) -> None:
            info = await users[profile.user].add_profile(
                profile.text, location=self._location(profile.city), wait=True
            )
            registered[place] = Registered(info.id, info.host)

        async with trio.open_nursery() as nursery:
            for place, profile in enumerate(profiles):
                nursery.start_soon(register, place, profile)
        self.run.profiles = [registered[place] for place in range(len(profiles))]
        return users

    def _location(self, city: str) -> Place | None:
        return self._places.get(city)

    # --- messages -------------------------------------------------------------------------

    async def _subscribe(self, nursery: trio.Nursery, users: Mapping[str, User]) -> None:
        """Every user listens for the results of his profiles."""
        for profile, registered in zip(self._scenario.profiles, self.run.profiles, strict=True):
            results = users[profile.user].results(registered.id)
            await results.connect()
            nursery.start_soon(self._take_deliveries, results)

    async def _take_deliveries(self, results: Results) -> None:
        async for delivery in results:
            source = self._source_names[delivery.source]
            key = DeliveryKey(delivery.profile, source, delivery.number)
            self.run.deliveries.append((key, delivery.results))

    async def _publish(self, sources: Mapping[str, DataSource]) -> None:
        """Each source publishes its messages, all sources at the same time."""

        async def publish(name: str, source: DataSource) -> None:
            places = [
                place
                for place, message in enumerate(self._scenario.messages)
                if message.source == name
            ]
            messages = [self._scenario.messages[place] for place in places]
            data = [(message.data, message.media_type) for message in messages]
            decided = iter(places)
            async for outcome in source.publish_all(data):
                refusal = None
                if not outcome.accepted:
                    refusal = Refusal(outcome.code, outcome.reason, outcome.line, outcome.column)
                self.run.decisions[next(decided)] = Decision(outcome.number, refusal)

        async with trio.open_nursery() as nursery:
            for name, source in sources.items():
                nursery.start_soon(publish, name, source)

    async def _observe(self, observer: ClientConnection) -> None:
        async for event in observer.observed():
            visit = self.run.traffic.take(event)
            if visit is not None:
                self._watcher.visit(self.run, visit)

    async def _wait_over(
        self, brokers: Sequence[str], observers: Sequence[ClientConnection]
    ) -> None:
        """Until the network has nothing left to do (see quiescence.py)."""
        published = sum(decision.number > 0 for decision in self.run.decisions.values())
        before: Counters | None = None
        while True:
            statistics = {
                broker: convert(await observer.call("statistics", {}), BrokerStatistics)
                for broker, observer in zip(brokers, observers, strict=True)
            }
            now = read_counters(statistics)
            if is_over(before, now, published, len(self.run.deliveries)):
                break
            if self.run.abnormal:
                raise NetworkFailure("; ".join(self.run.abnormal) + self._last_log_lines())
            before = now
            await trio.sleep(_POLL_SECONDS)
        # Events travel in front of the answers to requests: all of them are here by now.
        for visit in self.run.traffic.finish():
            self._watcher.visit(self.run, visit)
        self.run.crossings_counted = now.crossings
        for of_broker in statistics.values():
            for sent in of_broker.query.transformation.links.values():
                self.run.crossings_cut += sent.cut
                self.run.bytes_saved += sent.bytes_saved
        self.run.abnormal += abnormal(statistics)


def _addresses(topology: Topology) -> dict[str, Address]:
    """Where each node listens, by its id."""
    addresses = {node.id: node.listen for node in topology.registration}
    return addresses | {broker.id: broker.listen for broker in topology.brokers}


def _client(network: RunningNetwork, broker: str) -> Any:
    """A connection to ask a broker and to observe it."""
    host, port = network.topology.address(broker)
    return open_client(
        *(host, port),
        role="client",
        identity=f"demo-{broker}",
        limits=_OBSERVER_LIMITS,
        credentials=credentials_for(host, port),
    )
