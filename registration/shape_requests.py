"""What an operator may ask about the shape of the network: one verb, one function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from msgspec.structs import asdict, replace

from overlay import answers, verbs
from overlay.link.core_context import CoreContext
from overlay.link.part import Part
from overlay.link.request_server import Changed, RequestRefused, Verb, alone
from overlay.live_settings import SETTINGS, setting_values, starts_needed, with_live_settings
from overlay.network_shape import (
    NetworkShape,
    Pair,
    cut_off,
    is_connected_without,
    kept_down,
    next_shape,
    without_broker,
)
from overlay.nodes import BrokerNode, Link
from overlay.topology import Topology, parse_topology, to_toml
from overlay.unfit import did_you_mean
from registration.catalog import Catalog
from registration.drains import Drains
from registration.shape_changes import ShapeChanges


class BrokerRequests(Part):
    """Checks and begins what operators ask about one broker."""

    def __init__(
        self,
        context: CoreContext,
        shapes: ShapeChanges,
        catalog: Catalog,
        drains: Drains,
    ) -> None:
        self._shapes = shapes
        self._catalog = catalog
        self._drains = drains
        self._connected = context.links.connected
        self.verbs = (
            Verb(verbs.BrokerDrain, alone(self._drain)),
            Verb(verbs.BrokerProgress, alone(self._progress)),
            Verb(verbs.BrokerLost, alone(self._lose)),
        )

    def _drain(self, asked: verbs.BrokerDrain) -> answers.BrokerLeaving | Changed:
        broker = asked.broker
        if broker not in self._drains and not asked.stop:
            self._without(broker)
            self._check_room(broker)
        line = "" if asked.dry_run else self._change(broker, asked.stop)
        progress = self._drains.progress(broker)
        return Changed(line, progress) if line else progress

    def _progress(self, asked: verbs.BrokerProgress) -> answers.BrokerLeaving:
        return self._drains.progress(asked.broker)

    def _change(self, broker: str, is_stopped: bool) -> str:
        """The line about it, "" where nothing changes."""
        if is_stopped:
            if not self._drains.stop(broker):
                raise RequestRefused(
                    "too-late", f"{broker} is leaving the network already; nothing is left there"
                )
            return f"{broker} stays"
        if broker in self._drains:
            return ""
        self._drains.begin(broker)
        return broker

    def _lose(self, asked: verbs.BrokerLost) -> answers.BrokerLoss | Changed:
        broker = asked.broker
        shapes = self._shapes
        if shapes.lost_since(broker):
            return answers.BrokerLoss(shapes.lost_since(broker))
        declared = self._without(broker)
        if self._connected(f"broker/{broker}"):
            raise RequestRefused(
                "broker-here", f"{broker} is here, so it is not lost; onyx broker drain lets it go"
            )
        result = answers.BrokerLoss(
            shapes.newest.version + 1,
            len(self._catalog.hosted_by(broker)),
            len(self._catalog.rooted_at(broker)),
        )
        if asked.dry_run:
            return result
        shapes.change(declared, kept_down(shapes.newest, declared), [broker])
        return Changed(f"version {result.version}: without {broker}", result)

    def _without(self, broker: str) -> Topology:
        """The network without a broker; RequestRefused where there is no such one, or the others
        could not do without it."""
        declared = self._shapes.newest.declared
        if broker not in declared.broker_ids:
            hint = did_you_mean(broker, declared.broker_ids)
            raise RequestRefused("bad-argument", f"there is no broker {broker!r}{hint}")
        if len(declared.brokers) == 1:
            raise RequestRefused("network-cut", f"{broker} is the only broker")
        left = without_broker(declared, broker)
        cut = cut_off(left)
        if cut:
            raise RequestRefused(
                "network-cut",
                f"without {broker} no link leads to {', '.join(cut)}: add links that do so "
                "(onyx topology apply), then ask again",
            )
        return left

    def _check_room(self, broker: str) -> None:
        placed = self._catalog.profiles_by_broker
        others = [b for b in self._shapes.topology.brokers if b.id != broker]
        room = sum(max(0, b.capacity - placed.get(b.id, 0)) for b in others)
        if placed[broker] > room:
            raise RequestRefused(
                "network-full",
                f"{broker} hosts {placed[broker]} profiles, and the others have room for {room}",
            )


# -------------------------------------------------------------------------------------------------


NAMED = 10  # profiles and sources that a refusal names


class ShapeRequests(Part):
    """Checks and begins changes of the network's shape."""

    def __init__(
        self,
        shapes: ShapeChanges,
        catalog: Catalog,
        changed: Callable[[], None],
        change_settings: Callable[[Topology, Topology], None],
    ) -> None:
        """``changed`` is called when a change has begun;
        ``change_settings`` is told of what was in force, and is."""
        self._change_settings = change_settings
        self._shapes = shapes
        self._catalog = catalog
        self._changed = changed
        self.verbs = (
            Verb(verbs.TopologyApply, alone(self._apply)),
            Verb(verbs.TopologyProgress, alone(self._progress)),
            Verb(verbs.TopologyShow, alone(self._show)),
            Verb(verbs.TopologyProcesses, alone(self._show_processes)),
        )

    def _progress(self, asked: verbs.TopologyProgress) -> answers.ShapeProgress:
        return self._shapes.progress()

    def _show_processes(self, asked: verbs.TopologyProcesses) -> answers.TopologyText:
        return answers.TopologyText(to_toml(self._shapes.processes))

    def _apply(self, asked: verbs.TopologyApply) -> answers.ShapeChange | Changed:
        lost = asked.lost
        now = self._shapes.newest
        wanted = parse_topology(asked.text, "the new topology")
        declared = _fitted(now.declared, wanted)
        declared, taken, left = _with_settings(now.declared, declared)
        self._check_leaving(now, declared, lost)
        profiles = [p.profile for p in self._catalog.profiles.values() if p.host in lost]
        sources = [s.source for s in self._catalog.sources.values() if s.root in lost]
        described = [*describe_change(now, declared, lost), *taken]
        gone = answers.Lost(profiles, sources)
        result = answers.ShapeChange(now.version, described, [], gone, taken, left)
        if not described:
            return result
        down = kept_down(now, declared)
        new = next_shape(now, declared, down, lost, now.away.intersection(declared.broker_ids))
        trees = sorted(r for r, since in new.tree_versions.items() if since == new.version)
        result = replace(result, version=new.version, trees=trees)
        if asked.dry_run:
            return result
        self._check_ways(declared, down)
        if not self._shapes.is_settled and not lost:
            raise RequestRefused(
                "change-under-way",
                f"version {now.version} of the network is not in place everywhere yet; "
                "onyx topology show --live says who is missing",
            )
        self._shapes.change(declared, down, lost)
        self._change_settings(now.declared, declared)
        self._changed()
        return Changed(f"version {new.version}: {'; '.join(described)}", result)

    def _check_ways(self, declared: Topology, down: Iterable[Pair]) -> None:
        """Nobody would have to wait for a broker that is gone round."""
        away = self._shapes.newest.away & set(declared.broker_ids)
        if not is_connected_without(declared, away, down):
            raise RequestRefused(
                "topology-refused",
                f"{', '.join(sorted(away))} is away, and without it the others would not be "
                "connected any more; change that when it is back",
            )

    def _check_leaving(self, now: NetworkShape, declared: Topology, lost: list[str]) -> None:
        """Who leaves has nothing any more that anybody would miss."""
        for broker in lost:
            if not now.has_broker(broker):
                hint = did_you_mean(broker, now.declared.broker_ids)
                raise RequestRefused("bad-argument", f"there is no broker {broker!r}{hint}")
            if broker in declared.broker_ids:
                raise RequestRefused(
                    "bad-argument", f"{broker} is said to be lost, but the topology still has it"
                )
        staying = {*declared.broker_ids, *lost}
        for broker in [b for b in now.declared.broker_ids if b not in staying]:
            if self._catalog.profiles_by_broker[broker]:
                hosted = [entry.profile for entry in self._catalog.hosted_by(broker)]
                raise RequestRefused(
                    "broker-in-use",
                    f"{broker} cannot leave: it hosts {_listed(hosted)}; onyx broker drain "
                    "moves them away first",
                )

    def _show(self, asked: verbs.TopologyShow) -> answers.Shape:
        shape = self._shapes.newest
        pairs = [tuple(sorted(pair)) for pair in sorted(shape.down, key=sorted)]
        return answers.Shape(
            text=to_toml(shape.declared),
            down=cast("list[tuple[str, str]]", pairs),
            away=sorted(shape.away),
            trees=dict(shape.tree_versions),
            **asdict(self._shapes.progress()),
        )


def describe_change(now: NetworkShape, declared: Topology, lost: Iterable[str] = ()) -> list[str]:
    """What is different, a line each: ``+ broker B7``, ``- link B1 - B2``, ``~ link ...``."""
    before = {broker.id: broker for broker in now.declared.brokers}
    after = {broker.id: broker for broker in declared.brokers}
    lines = [f"+ broker {broker}" for broker in after if broker not in before]
    for broker, node in before.items():
        if broker not in after:
            lines.append(f"- broker {broker}" + (" (lost)" if broker in lost else ""))
        else:
            lines += _differences(f"broker {broker}", node, after[broker])
    links_before = {frozenset(link.ends): link for link in now.declared.links}
    links_after = {frozenset(link.ends): link for link in declared.links}
    lines += [f"+ {_link(link)}" for pair, link in links_after.items() if pair not in links_before]
    for pair, link in links_before.items():
        if pair not in links_after:
            lines.append(f"- {_link(link)}")
        else:
            lines += _differences(_link(link), link, replace(links_after[pair], ends=link.ends))
    return lines


def _differences(what: str, before: BrokerNode | Link, after: BrokerNode | Link) -> list[str]:
    names = {*before.__struct_encode_fields__} - {"ends", "id", "bandwidth_mbps"}
    changed = [n for n in sorted(names) if getattr(before, n) != getattr(after, n)]
    return [f"~ {what}: {n} {getattr(before, n)} -> {getattr(after, n)}" for n in changed]


def _fitted(now: Topology, wanted: Topology) -> Topology:
    """The new network with what a running one cannot change taken from it; RequestRefused where
    the file says otherwise."""
    wanted = wanted.with_trial_store(now.stores.url)
    for what, is_value, shall_be in (
        ("name", now.name, wanted.name),
        ("registration", [n.id for n in now.registration], [n.id for n in wanted.registration]),
    ):
        if is_value != shall_be:
            raise RequestRefused(
                "topology-refused",
                f"{what} is {shall_be} in the new topology and {is_value} in the running network; "
                "it is changed by stopping and starting the network",
            )
    running = {broker.id: broker for broker in now.brokers}
    brokers = []
    for broker in wanted.brokers:
        known = running.get(broker.id)
        if known is None and not all(a.port for a in (*broker.clients_at, *broker.links_at)):
            raise RequestRefused(
                "topology-refused",
                f"{broker.id} is new and listens at port 0: give a port, so that the other brokers "
                "can be told where it is",
            )
        brokers.append(broker if known is None else _at_its_address(broker, known))
    return replace(
        wanted,
        brokers=tuple(brokers),
        registration=now.registration,
        data_directory=now.data_directory,
    )


def _with_settings(now: Topology, wanted: Topology) -> tuple[Topology, list[str], dict[str, str]]:
    """The new network with the settings that the running one can take; what these are, a line
    each; and by key what takes a new start, of whom."""
    running, taken, left = with_live_settings(now, wanted)
    before, after = setting_values(now), setting_values(wanted)
    lines = [f"~ {key}: {before[key]} -> {after[key]}" for key in taken]
    starts = {key: starts_needed(key) for key in left}
    if wanted.gateway is not None:
        starts["gateway"] = "the gateway, which knows alone whether its table is another"
    if wanted.metadata:
        starts["metadata"] = "the whole network, which knows alone whether its tables are others"
    kept = {name: getattr(running, name) for name in SETTINGS}
    return replace(wanted, gateway=None, metadata=(), **kept), lines, starts


def _at_its_address(broker: BrokerNode, known: BrokerNode) -> BrokerNode:
    if (known.has_standby, known.store) != (broker.has_standby, broker.store):
        raise RequestRefused(
            "topology-refused",
            f"{broker.id} has another store or standby in the new topology; that can be changed "
            "only by stopping and starting the network",
        )
    here, there = (*known.clients_at, *known.links_at), (*broker.clients_at, *broker.links_at)
    for now, wanted in zip(here, there, strict=True):
        if wanted not in (now, (now.host, 0)):
            raise RequestRefused(
                "topology-refused",
                f"{broker.id} listens at {now}, the new topology says {wanted}; an address can be "
                "changed only by stopping and starting the network",
            )
    return replace(
        broker,
        listen=known.listen,
        links=known.links,
        standby=known.standby,
        standby_links=known.standby_links,
    )


def _link(link: Link) -> str:
    return f"link {link.ends[0]} - {link.ends[1]}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
