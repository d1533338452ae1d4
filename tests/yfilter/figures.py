"""What a part of the engine says of itself."""

from __future__ import annotations

from typing import Protocol

from yfilter.engine.work import EngineStatistics


class Reporting(Protocol):
    def report(self, said: EngineStatistics) -> None: ...


def figures(part: Reporting) -> EngineStatistics:
    part.report(said := EngineStatistics())
    return said
