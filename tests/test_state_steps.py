"""Every step of every state table is taken by the part that has it, and leads where the table says.

A *world* is a part with all around it that makes its events happen as they do in a network: frames
that peers send, the end of an event, a broker that is lost.  For each state and each event, a new
world is brought into the state by the shortest way, and then the event happens.  What the table
does not list changes nothing that the part has stored; and the test names the steps that nobody
has taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from itertools import product
from typing import Any, NamedTuple, TypeAlias
from unittest import mock

import pytest
from msgspec import structs

from onyx.broker.moves.profile_moves import StandbyEvent, Standbys
from onyx.broker.moves.releases import ReleaseEvent, Releases
from onyx.broker.moves.watersheds import WatershedEvent, Watersheds
from onyx.broker.processor_accounts import BURST_SECONDS
from onyx.broker.profiles.live_wait import LiveVersion
from onyx.broker.shape.shape_stages import ShapeStage, ShapeStages, StageEvent
from onyx.broker.shape.tree_versions import TreeEvent, TreeVersions
from onyx.broker.users.user_parts import AccountEvent, UserBudgets
from overlay.answers import Drift
from overlay.link.events import DeskAnswered, Put, TimePassed
from overlay.link.frame import Frame
from overlay.link.frames import (
    HOLDS,
    SETTLED,
    BranchReady,
    HandedOver,
    HandoverWanted,
    Message,
    MessageAgain,
    MoveEnded,
    ProfileReleased,
    ProfileTaken,
    ReleaseProfile,
    ShapeAgreed,
    ShapeAnnounced,
    ShapeReached,
    ShapeSettled,
    StandBy,
    StandingBy,
    TreeBegun,
    TreeEnded,
    WatershedReached,
)
from overlay.link.limits import DEFAULT_LINK_LIMITS
from overlay.link.link_layer import LinkLayer
from overlay.link.row_log import RowLog
from overlay.network_shape import NetworkShape, first_shape, next_shape, without_broker
from overlay.nodes import Address, BrokerNode, Link
from overlay.state_table import StateMachine
from overlay.topology import to_toml
from registration.auto_planning import AutoPlanning, PlanningEvent
from registration.catalog import Catalog, ProfileEntry, SourceEntry
from registration.drains import DrainEvent, Drains
from registration.moves import Move, MoveEvent, Moves
from registration.placement_by_plan import PlanPlacement
from registration.plan_census import PlanCensus
from registration.plan_questions import PlanFailed, PlanMade
from registration.rehosting import Rehosting
from registration.released_keys import ReleasedKeys
from registration.shape_changes import ShapeChanges, ShapeEvent
from registration.source_roots import RootEvent, SourceRoots
from tests.onyx.broker.test_broker_core import FIGURE4, SF, Setting, announced
from tests.onyx.broker.test_profile_moves import Moving
from tests.registration.test_auto_planning import DTD, Planning
from tests.test_state_pictures import PICTURES

Machine: TypeAlias = StateMachine[Any, Any, Any]
Rows: TypeAlias = Mapping[tuple[str, str], bytes]


class Taken(NamedTuple):
    """A step of a table, of one thing."""

    thing: object
    state: StrEnum
    event: StrEnum


def name_of(thing: object) -> object:
    """What a thing is called, whatever else there is to know of it."""
    if isinstance(thing, Move):
        return thing.profile
    return "the newest version" if isinstance(thing, int | NetworkShape) else thing


@contextmanager
def watched(kind: type[Machine]) -> Iterator[list[Taken]]:
    """The steps that machines of a kind take meanwhile; each leads where the table says, unless
    another follows at once, which then begins there."""
    taken: list[Taken] = []
    happen = StateMachine.happen

    def watch(machine: Machine, thing: object, event: StrEnum, *told: object) -> bool:
        if not isinstance(machine, kind):
            return happen(machine, thing, event, *told)
        state, count = machine.state(thing), len(taken)
        step = machine.steps.step(state, event)
        if step is not None:
            taken.append(Taken(name_of(thing), state, event))
        is_taken = happen(machine, thing, event, *told)
        assert is_taken is (step is not None)
        if step is not None:
            after = [each.state for each in taken[count + 1 :] if each.thing == name_of(thing)]
            found = after[0] if after else machine.state(thing)
            assert found is step.then, f"{event!s} in {state!s} leads to {found!s}"
        return is_taken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StateMachine, "happen", watch)
        yield taken


class World:
    """``thing`` of ``machine`` is what it is about, stored in ``spaces``, under ``key`` where there
    are others; ``causes`` make events happen.  A state that it is only ``passing`` leads on within
    the same event."""

    machine: Machine
    thing: object
    spaces: tuple[str, ...]
    key = ""
    passing: frozenset[StrEnum] = frozenset()
    causes: Mapping[Any, Callable[[], object]]

    def rows(self) -> Rows:
        raise NotImplementedError

    def stored(self) -> Rows:
        return {
            (space, key): value
            for (space, key), value in self.rows().items()
            if space in self.spaces and self.key in ("", key)
        }

    def way(self, state: StrEnum) -> list[StrEnum] | None:
        """The events that lead to a state; None when this world has none that do."""
        if state in self.passing:
            return None
        table = self.machine.steps
        ways: dict[StrEnum, list[StrEnum]] = {table.outside: []}
        while True:
            found = {
                step.then: [*ways[at], event]
                for (at, event), step in table.steps.items()
                if at in ways and step.then not in ways and event in self.causes
            }
            if state in ways or not found:
                return ways.get(state)
            ways.update(found)


# --- the worlds -------------------------------------------------------------------------------


class BrokerWorld(World):
    """B4 of Figure 4, with a source at B1."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def lead(self, frame: Frame) -> None:
        """The registration service says something."""
        self.setting.registration.send("registration", frame)

    def rows(self) -> Rows:
        self.setting.beside.tell(TimePassed())
        return dict(self.setting.beside.rows)


class Coming(BrokerWorld):
    """A profile that comes to a broker."""

    thing = "p1"
    spaces = ("standby", "kept")

    def __init__(self) -> None:
        setting = self.moving = Moving()
        super().__init__(setting)
        self.machine = setting.core.moves.coming
        come = StandBy(profile="p1", move=5, user="ann", text=SF, version=1)
        released = ProfileReleased("p1", 5, 1, 1, 2, 4, 0, 0, [("s1", 6)])
        self.causes = {
            StandbyEvent.STAND_BY: lambda: self.lead(come),
            StandbyEvent.LIVE: self.live,
            StandbyEvent.RELEASED: lambda: self.lead(released),
            StandbyEvent.HANDED: lambda: self.lead(handed(5, 3)),
            StandbyEvent.ALL_HERE: lambda: self.lead(handed(5, 4)),
            StandbyEvent.ENDED: lambda: self.lead(MoveEnded("p1", 5)),
        }

    def live(self) -> None:
        """As its root says, or else once more."""
        self.moving.live()
        self.moving.core.moves.coming.handle_live(LiveVersion("p1/5", 1))


def handed(move: int, position: int) -> HandedOver:
    return HandedOver("p1", move, position, True, "s1", position, [5], b"<sf/>")


class Going(BrokerWorld):
    """A profile that leaves a broker."""

    thing = "p1"
    spaces = ("release", "watershed")

    def __init__(self) -> None:
        setting = self.moving = Moving()
        super().__init__(setting)
        setting.place(SF)
        setting.live()
        setting.publish(1, 2, 3)
        self.machine = setting.core.moves.leaving

        self.causes = {
            ReleaseEvent.RELEASE: lambda: self.lead(ReleaseProfile("p1", 5, 1)),
            ReleaseEvent.WATERSHED: self.watershed,
            ReleaseEvent.WANTED: lambda: self.lead(HandoverWanted("p1", 5, 1)),
            ReleaseEvent.NEW_LOST: lambda: setting.place(SF),
            ReleaseEvent.ENDED: lambda: self.lead(MoveEnded("p1", 5)),
        }

    def watershed(self) -> None:
        """As the root says, or else once more."""
        self.moving.watershed(3)
        self.moving.core.moves.leaving.handle_watershed("out/p1")


class Asking(BrokerWorld):
    """A watershed between two root brokers, which nobody but this test has asked for."""

    thing = "w"
    spaces = ("watershed",)

    def __init__(self) -> None:
        setting = Moving()
        super().__init__(setting)
        setting.announce("s2", "B2")
        watersheds = self.machine = setting.core.moves.watersheds
        trees = ["B1", "B2"]

        def reached(*roots: str) -> None:
            for root in roots:
                watersheds.handle_reached(WatershedReached(root, "B4", 7, [("s1", 5)]))

        self.causes = {
            WatershedEvent.BEGUN: lambda: watersheds.begin("w", 7, trees),
            WatershedEvent.SENT: lambda: watersheds.flush(trees),
            WatershedEvent.STRAYED: lambda: watersheds.end_tree("B1"),
            WatershedEvent.REACHED: lambda: reached("B1"),
            WatershedEvent.ALL_CAME: lambda: reached("B1", "B2"),
            WatershedEvent.DROPPED: lambda: watersheds.drop("w"),
        }

    def rows(self) -> Rows:
        return dict(self.setting.beside.rows)  # nothing more happens in the core


class LogWorld(World):
    """A part of the registration service, by itself."""

    def __init__(self) -> None:
        self.log = RowLog()
        self.disk: dict[tuple[str, str], bytes] = {}

    def rows(self) -> Rows:
        for change in self.log.drain():
            if isinstance(change, Put):
                self.disk[change.space, change.key] = change.value
            else:
                self.disk.pop((change.space, change.key), None)
        return dict(self.disk)


class Moved(LogWorld):
    """A move, from B4 to B5."""

    thing = Move("p1", 1, "B4", "B5", 1)
    spaces = ("move",)

    def __init__(self) -> None:
        super().__init__()
        catalog = Catalog(self.log)
        entry = ProfileEntry("p1", "ann", "B4", "/a", placed=True)
        catalog.put_profile(entry)
        moves = self.machine = self.moves = Moves(catalog, self.log, lambda broker, frame: None)
        released = ProfileReleased("p1", 1, 1, 0, 0, 0, 0, 0, [])
        self.causes = {
            MoveEvent.BEGUN: self.begin,
            MoveEvent.GIVEN_UP: lambda: moves.give_up("p1"),
            MoveEvent.CHANGED: lambda: moves.changed(structs.replace(entry, version=2)),
            MoveEvent.REMOVED: lambda: moves.removed("p1"),
            MoveEvent.NEW_LOST: lambda: moves.lost("B5"),
            MoveEvent.STANDING_BY: lambda: moves.handle("B5", StandingBy("p1", 1, 1)),
            MoveEvent.RELEASED: lambda: moves.handle("B4", released),
            MoveEvent.WANTED: lambda: moves.handle("B5", HandoverWanted("p1", 1, 0)),
            MoveEvent.HANDED: lambda: moves.handle("B4", handed(1, 1)),
            MoveEvent.TAKEN: lambda: moves.handle("B5", ProfileTaken("p1", 1, 1)),
        }

    def begin(self) -> None:
        """Nobody asks for what is on the move already."""
        if "p1" in self.moves:
            self.moves.happen(self.thing, MoveEvent.BEGUN)
        else:
            self.moves.begin("p1", "B5")


def of_registration() -> LinkLayer:
    return LinkLayer(
        role="registration",
        identity="r1",
        instance="test",
        formats=("text",),
        limits=DEFAULT_LINK_LIMITS,
    )


def roots_of(catalog: Catalog, log: RowLog) -> SourceRoots:
    keys = ReleasedKeys(catalog, of_registration(), log)
    return SourceRoots(catalog, of_registration(), log, set(), keys)


def changes_of(catalog: Catalog, log: RowLog, roots: SourceRoots) -> ShapeChanges:
    moves = Moves(catalog, log, lambda broker, frame: None)
    rehosting = Rehosting(catalog, PlanPlacement(FIGURE4, log), of_registration())
    return ShapeChanges(FIGURE4, catalog, of_registration(), log, moves, rehosting, roots)


class Changing(LogWorld):
    """A change of the shape, at the registration service."""

    spaces = ("shape", "shape-stage")

    def __init__(self) -> None:
        super().__init__()
        catalog = Catalog(self.log)
        changes = self.machine = self.changes = changes_of(
            *(catalog, self.log, roots_of(catalog, self.log))
        )
        self.thing = changes.newest
        self.causes = {
            ShapeEvent.CHANGED: lambda: changes.change(joined(changes.newest).declared),
            ShapeEvent.ALL_HOLD: lambda: self.reach(HOLDS),
            ShapeEvent.ALL_SETTLED: lambda: self.reach(SETTLED),
        }

    def reach(self, stage: int) -> None:
        for broker in self.changes.newest.topology.broker_ids:
            frame = ShapeReached(self.changes.newest.version, stage)
            self.changes.handle_reached(broker, frame)


def joined(before: NetworkShape) -> NetworkShape:
    """The version after another: a broker more at B1, and so another tree of every root broker."""
    topology, number = before.declared, len(before.declared.brokers) + 1
    another = BrokerNode(f"B{number}", Address("127.0.0.1", 7900 + number))
    brokers = (*topology.brokers, another)
    links = (*topology.links, Link(("B1", another.id)))
    return next_shape(before, structs.replace(topology, brokers=brokers, links=links))


class Rooting(LogWorld):
    """A source, whose root broker leaves."""

    thing = "s1"
    spaces = ("source-root",)

    def __init__(self) -> None:
        super().__init__()
        self.catalog = Catalog(self.log)
        self.catalog.put_source(SourceEntry("s1", "news", "B4", ready=True))
        self.machine = self.roots = roots_of(self.catalog, self.log)
        self.roots.use_topology(FIGURE4)
        self.causes = {
            RootEvent.LEAVES: lambda: self.roots.leave(self.root),
            RootEvent.RELEASED: self.release,
            RootEvent.SETTLED: self.roots.settle,
            RootEvent.READY: lambda: self.roots.ready("s1"),
        }

    @property
    def root(self) -> str:
        return self.catalog.sources["s1"].root

    def release(self) -> None:
        self.roots.released(self.catalog.sources["s1"], 41)


class Draining(LogWorld):
    """A broker that hosts nothing, and is to leave."""

    thing = "B6"
    spaces = ("drain",)

    def __init__(self) -> None:
        super().__init__()
        catalog = Catalog(self.log)
        roots = roots_of(catalog, self.log)
        self.changes = changes_of(catalog, self.log, roots)
        placement = PlanPlacement(FIGURE4, self.log)
        moves = Moves(catalog, self.log, lambda broker, frame: None)
        parts = self.changes, catalog, placement, moves, self.log
        drains = self.machine = Drains(*parts, lambda peer: True, roots)
        self.causes = {
            DrainEvent.ASKED: lambda: drains.begin("B6"),
            DrainEvent.STOPPED: lambda: drains.stop("B6"),
            DrainEvent.EMPTY: lambda: drains.tick(0.0),
            DrainEvent.GONE: self.be_gone,
        }
        self.drains = drains

    def be_gone(self) -> None:
        """Lost, or as all agree."""
        newest = self.changes.newest
        if newest.has_broker("B6"):
            self.changes.change(without_broker(newest.declared, "B6"), lost=["B6"])
        for stage in (HOLDS, SETTLED):
            for broker in FIGURE4.broker_ids:
                self.changes.handle_reached(broker, ShapeReached(newest.version, stage))
        self.drains.tick(0.0)


class ShapeWorld(BrokerWorld):
    """Where the registration service takes the broker to other versions of the shape."""

    def __init__(self, *roots: str) -> None:
        """There is a source at each of the ``roots``."""
        super().__init__(Setting())
        self.newest = first_shape(FIGURE4)
        for root in roots:
            self.setting.announce(f"s{root}", root)
            self.setting.children_ready(f"s{root}", root)

    def announce(self) -> None:
        self.newest = shape = joined(self.newest)
        announced = ShapeAnnounced(
            version=shape.version,
            trees=list(shape.tree_versions.items()),
            down=[],
            lost=[],
            payload=to_toml(shape.declared).encode(),
        )
        self.lead(announced)

    def agree(self) -> None:
        self.lead(ShapeAgreed(self.newest.version))

    def settle(self) -> None:
        self.lead(ShapeSettled(self.newest.version))

    def ready(self, tree: str, *children: str) -> None:
        """These children have set a tree up."""
        for child in children:
            branch = self.setting.core.control.shapes.branch(tree, child)
            assert branch is not None
            self.setting.brokers[child].send(branch.name, BranchReady(branch.name, tree))


class Staged(ShapeWorld):
    """The stages of a broker that is the root broker of a source; one of its neighbours does not
    acknowledge what comes down the tree, until nothing of before is to be left."""

    thing = 1
    spaces = ("shape-reached",)

    def __init__(self) -> None:
        super().__init__("B4")
        self.machine = self.stages
        self.causes = {
            StageEvent.ANNOUNCED: self.announce,
            StageEvent.AGREED: self.agree,
            StageEvent.ALL_SWITCHED: self.switch,
            StageEvent.NOTHING_LEFT: self.drain,
            StageEvent.SETTLED: self.settle,
        }

    @property
    def stages(self) -> ShapeStages:
        found = [part for part in self.setting.core._agenda.parts if isinstance(part, ShapeStages)]
        return found[0]

    def switch(self) -> None:
        self.setting.brokers["B5"].withhold = True
        if self.setting.core.control.shapes.knows("B4@1"):
            self.ready("B4@1", "B1", "B5", "B6")

    def drain(self) -> None:
        self.switch()
        self.setting.brokers["B5"].release()


class StagedAtOnce(Staged):
    """Where there are no sources, nothing of before is left as soon as all hold a version."""

    passing = frozenset({ShapeStage.AGREED})

    def __init__(self) -> None:
        ShapeWorld.__init__(self)
        self.machine = self.stages
        self.causes = {StageEvent.ANNOUNCED: self.announce, StageEvent.AGREED: self.agree}


class BelowRoot(ShapeWorld):
    """A tree that comes down from B1; before it ends, a message is given back."""

    thing = key = "B1"
    spaces = ("tree", "tree-setting-up", "tree-ending", "tree-ended")

    def __init__(self) -> None:
        super().__init__()
        self.setting.place(SF)
        self.setting.registration.send("registration", announced())
        self.machine = trees = self.setting.core.trees
        parent = self.setting.brokers["B1"]
        unreadable = Message(
            root="B1", source="s1", number=1, format="holographic", hops=1, payload=b"?"
        )
        again = unreadable.carried_by(MessageAgain)

        def end() -> None:
            if not trees.ending:
                parent.send("B1", unreadable)
            parent.send("B1", TreeEnded("B1"))

        self.causes = {
            TreeEvent.BEGUN: lambda: parent.send("B1", TreeBegun("B1")),
            TreeEvent.CHILD_READY: lambda: self.ready("B1", "B5"),
            TreeEvent.ALL_READY: lambda: self.ready("B1", "B5", "B6"),
            TreeEvent.LAST_CAME: end,
            TreeEvent.ALL_CAME: lambda: parent.send("B1", again),
            TreeEvent.SETTLED: self.change,
        }

    def change(self) -> None:
        self.announce()
        self.agree()
        self.settle()


class OfRoot(ShapeWorld):
    """A tree of this broker's own, for which there is another soon."""

    thing = key = "B4@1"
    spaces = BelowRoot.spaces

    def __init__(self) -> None:
        super().__init__("B4")
        self.machine = self.setting.core.trees
        self.announce()
        self.causes = {
            TreeEvent.BEGUN: self.agree,
            TreeEvent.ALL_READY: lambda: self.ready("B4@1", "B1", "B5", "B6"),
            TreeEvent.REPLACED: self.replace,
        }

    def replace(self) -> None:
        """By the tree of the version after it."""
        self.announce()
        self.agree()
        self.ready("B4@2", "B1", "B5", "B6")


class Spending(BrokerWorld):
    """A user whose profiles take processor time."""

    thing = "ann"
    spaces = ("suspended",)

    def __init__(self) -> None:
        super().__init__(Setting())
        self.setting.announce()
        for number in range(3):
            self.setting.place(SF, profile=f"p{number}")
        self.machine = self.setting.core.budgets
        self.profiles = iter(["p0", "p1", "p2"])
        self.causes = {
            AccountEvent.HALF: lambda: self.spend(0.6),
            AccountEvent.SPENT: lambda: self.spend(1.0),
            AccountEvent.FILLED: self.wait,
        }

    def spend(self, part: float) -> None:
        seconds = part * BURST_SECONDS * 0.1
        self.setting.core.budgets.spent("s1", 1, [next(self.profiles)], seconds)

    def wait(self) -> None:
        self.setting.beside.now += 2 * BURST_SECONDS
        self.setting.beside.tell(TimePassed())


class PlanningByItself(World):
    """A network with a plan that the registration service has made."""

    thing = None
    spaces = ("application",)

    def __init__(self) -> None:
        self.network = network = Planning()
        network.with_plan()
        network.wait(1_000)
        machine = self.machine = network.core._planning
        machine._census = mock.create_autospec(PlanCensus, instance=True)  # takes its time
        self.good = Drift("", profiles=8, misplaced=0, near=0, coverage=1.0, imbalance=1.0)
        self.causes = {
            PlanningEvent.DUE: self.be_due,
            PlanningEvent.DRIFTED: self.drift,
            PlanningEvent.GOOD: lambda: machine._counted(self.good),
            PlanningEvent.PAYS: lambda: machine._counted(structs.replace(self.good, coverage=0.0)),
            PlanningEvent.MADE: lambda: self.answer(PlanMade(machine._placement.plan_text, 1.0)),
            PlanningEvent.FAILED: lambda: self.answer(PlanFailed("no Java")),
            PlanningEvent.STOPPED: lambda: network.ask("plan.use", plan=b""),
        }

    def rows(self) -> Rows:
        return dict(self.network.beside.rows)

    def be_due(self) -> None:
        self.network.client.ask("source.register", schema_name="news.dtd", schema=DTD)
        self.network.settle()

    def drift(self) -> None:
        for profile in ("p1", "p2", "p3"):
            self.network.change(profile)
        self.network.settle()

    def answer(self, answer: PlanMade | PlanFailed) -> None:
        self.network.beside.tell(DeskAnswered(str(self.machine._asked), answer))


WORLDS: Mapping[type[Machine], tuple[Callable[[], World], ...]] = {
    Moves: (Moved,),
    Standbys: (Coming,),
    Releases: (Going,),
    Watersheds: (Asking,),
    ShapeChanges: (Changing,),
    SourceRoots: (Rooting,),
    Drains: (Draining,),
    AutoPlanning: (PlanningByItself,),
    ShapeStages: (Staged, StagedAtOnce),
    TreeVersions: (BelowRoot, OfRoot),
    UserBudgets: (Spending,),
}


# --- the tests --------------------------------------------------------------------------------


def test_every_table_has_its_worlds_and_its_picture() -> None:
    names = {f"{kind.__module__}:{kind.__name__}" for kind in StateMachine.__subclasses__()}
    assert names == {f"{kind.__module__}:{kind.__name__}" for kind in WORLDS} == set(PICTURES)


@pytest.mark.parametrize("kind", WORLDS, ids=lambda kind: kind.__name__)
def test_every_step_is_taken_and_what_is_not_listed_changes_nothing(kind: type[Machine]) -> None:
    taken = set()
    for new, state in product(WORLDS[kind], sorted({state for state, _ in kind.steps.steps})):
        way = new().way(state)
        for event in new().causes if way is not None else ():
            with watched(kind) as steps:
                world = new()
                for before in way or ():
                    world.causes[before]()
                assert world.machine.state(world.thing) is state, f"{way} do not lead to {state!s}"
                count, stored = len(steps), world.stored()
                world.causes[event]()
                caused = [step for step in steps[count:] if step.thing == name_of(world.thing)]
                assert caused or world.stored() == stored, f"{event!s} changes what is {state!s}"
            taken |= {(step.state, step.event) for step in steps}
    missing = [f"{event!s} in {state!s}" for state, event in kind.steps.steps.keys() - taken]
    assert not missing, f"nobody takes {sorted(missing)}"
