"""What the simulator checks fails when that which sees to it is taken out.

Those of takeovers, silences, lying disks, brokers that are gone round, publish keys and versions
stand beside what they check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from onyx.broker.messages.last_numbers import LastNumbers
from onyx.broker.shape.shape_parts import LinkBacklogs
from onyx.broker.shape.tree_versions import TreeVersions
from overlay.link.dead_letters import DeadLetters
from overlay.link.journal import Journal
from registration.catalog import Catalog
from tests.simulation import (
    test_dead_brokers,
    test_dead_letters,
    test_early_leaving,
    test_leaving_brokers,
    test_rebuilt_catalogs,
)

Check = Callable[[int], object]


def _early_deaths(seed: int) -> None:
    scenario = test_early_leaving.run(seed)
    assert not scenario.missing()
    assert not scenario.wrong()


def _poison(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        test_dead_letters.break_brokers(patched)
        test_dead_letters.check(seed)


MENDINGS: dict[str, tuple[type, str, Callable[..., Any], Check, range]] = {
    "more may wait for a broker that is away": (
        *(LinkBacklogs, "may_grow", lambda self, tree: not self._behind),
        *(test_dead_brokers.test_others_go_on_while_a_broker_is_away, range(1, 5)),
    ),
    "but not any number of bytes": (
        *(LinkBacklogs, "may_grow", lambda self, tree: True),
        test_dead_brokers.test_beyond_the_quota_only_the_sources_with_users_behind_a_dead_broker_wait,
        range(1, 2),
    ),
    "what felled a process is passed over": (
        *(DeadLetters, "passes", lambda self, arrival: ""),
        *(_poison, range(3)),
    ),
    "what left early and came is known": (
        *(LastNumbers, "is_new", lambda self, frame: True),
        *(_early_deaths, range(1, 60)),
    ),
    "numbers of profiles go on in a rebuilt catalog": (
        *(Catalog, "reinstate", lambda self, highest: None),
        *(test_rebuilt_catalogs.check, range(1, 20)),
    ),
    "numbers of frames go on behind what brokers have": (
        *(Journal, "go_on_behind", lambda self, received: None),
        *(test_rebuilt_catalogs.check, range(1, 20)),
    ),
    "another root broker begins when all of the one before has come": (
        *(TreeVersions, "is_drained", lambda self: True),
        test_leaving_brokers.test_a_root_broker_that_is_drained_leaves_and_nobody_misses_anything,
        range(1, 9),
    ),
}


@pytest.mark.parametrize("mending", MENDINGS)
def test_it_shows_when_it_is_taken_out(mending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of, name, without, check, seeds = MENDINGS[mending]
    monkeypatch.setattr("tests.simulation.scenario.PATIENCE", 60.0)
    monkeypatch.setattr(of, name, without)
    for seed in seeds:
        try:
            check(seed)
        except Exception:  # whatever it is that goes wrong
            return
    pytest.fail(f"nothing has shown in {len(seeds)} seeds")
