"""How many seeds a campaign has lived through."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tests.simulation import seeds


class CampaignCount:
    """Sums what the processes of a session have lived through; only in a campaign."""

    def __init__(self) -> None:
        self._lived = 0

    def pytest_testnodedown(self, node: Any) -> None:
        self._lived += node.workeroutput["seeds_lived"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        lived = self._lived or len(seeds.lived)
        terminalreporter.write_line(f"simulation: {lived:,} seeds lived through")


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["seeds_lived"] = len(seeds.lived)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    if seeds.TIMES > 1 and not hasattr(config, "workerinput"):
        config.pluginmanager.register(CampaignCount())
