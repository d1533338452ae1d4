"""How many connections a process takes, by what the system allows it."""

from __future__ import annotations

import resource

import pytest

from overlay.limits import Limits
from overlay.link.open_files import (
    ALL_FILES,
    CONNECTIONS_DEFAULT,
    LINK_CONNECTIONS_DEFAULT,
    OTHER_FILES,
    allow_all_files,
    allow_connections,
)
from overlay.topology import TopologyError

OTHERS = OTHER_FILES + LINK_CONNECTIONS_DEFAULT


class System:
    """A soft and a hard limit on open files, as a process has them."""

    def __init__(self, soft: int, hard: int) -> None:
        self.soft, self.hard = soft, hard

    def get(self, what: int) -> tuple[int, int]:
        assert what == resource.RLIMIT_NOFILE
        return self.soft, self.hard

    def set(self, what: int, limits: tuple[int, int]) -> None:
        assert limits[1] == self.hard
        self.soft = limits[0]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    system = System(1024, 20_000)
    monkeypatch.setattr(resource, "getrlimit", system.get)
    monkeypatch.setattr(resource, "setrlimit", system.set)
    return system


def test_the_soft_limit_is_raised_to_what_is_needed(system: System) -> None:
    assert allow_connections(Limits(), 6) == (CONNECTIONS_DEFAULT, LINK_CONNECTIONS_DEFAULT)
    assert system.soft == CONNECTIONS_DEFAULT + OTHERS
    assert allow_connections(Limits(connections_max=15_000), 6).clients == 15_000
    assert system.soft == 15_000 + OTHERS


def test_each_broker_of_a_large_network_has_its_connection(system: System) -> None:
    assert allow_connections(Limits(), 1_000).links == 2_000
    assert allow_connections(Limits(link_connections_max=7), 1_000).links == 7


def test_a_gateway_may_open_what_the_system_allows(system: System) -> None:
    allow_all_files()
    assert system.soft == system.hard
    system.hard = resource.RLIM_INFINITY
    allow_all_files()
    assert system.soft == ALL_FILES
    system.soft = system.hard = 2 * ALL_FILES
    allow_all_files()
    assert system.soft == 2 * ALL_FILES


def test_it_is_not_lowered(system: System) -> None:
    system.soft = 12_000
    assert allow_connections(Limits(connections_max=10), 6).clients == 10
    assert system.soft == 12_000


def test_no_limit_allows_anything(system: System) -> None:
    system.soft = system.hard = resource.RLIM_INFINITY
    assert allow_connections(Limits(connections_max=1_000_000), 6).clients == 1_000_000
    assert system.soft == resource.RLIM_INFINITY


def test_more_than_the_system_allows_is_refused_where_it_was_asked_for(system: System) -> None:
    system.hard = 4_096
    with pytest.raises(TopologyError) as refused:
        allow_connections(Limits(connections_max=5_000), 6, "network.toml")
    assert str(refused.value) == (
        "network.toml: limits.connections_max: 5,000 connections take 5,384 open files; the system "
        "allows a process 4,096 (ulimit -Hn): expected at most 3,712, or a higher limit"
    )
    assert system.soft == 1024


@pytest.mark.parametrize("asked", [{"connections_max": 5_000}, {"link_connections_max": 900_000}])
def test_what_runs_takes_as_many_as_the_system_allows(
    system: System, caplog: pytest.LogCaptureFixture, asked: dict[str, int]
) -> None:
    system.hard = 4_096
    taken = allow_connections(Limits(**asked), 6, gives_way=True)
    assert taken.clients + taken.links + OTHER_FILES == system.soft == 4_096
    assert taken.links == min(asked.get("link_connections_max", LINK_CONNECTIONS_DEFAULT), 1_920)
    assert f"at most {taken.clients:,} connections are taken" in caplog.text


def test_the_default_gives_way_with_a_warning(
    system: System, caplog: pytest.LogCaptureFixture
) -> None:
    system.hard = 4_096
    assert allow_connections(Limits(), 6).clients == 4_096 - OTHERS
    assert system.soft == 4_096
    assert "at most 3,712 connections are taken" in caplog.text
