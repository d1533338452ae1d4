"""TracePicture: the way of a message as a tree, with a place for every broker and link of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onyx.message_way import Answer
from yfilter.graph.said_paths import said_disjunct

COLUMN, ROW = 250, 76
CARD_WIDTH, CARD_HEIGHT = 132, 46
MARGIN = 12


@dataclass(slots=True)
class TracePicture:
    """From left to right; ``brokers`` with ``id``, ``x``, ``y``, ``profiles`` that match there,
    whether it is ``reached``; ``links`` with a ``path``, a ``note``, whether it is ``taken``,
    and why."""

    brokers: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    width: int = 0
    height: int = 0

    @staticmethod
    def of(answers: Mapping[str, Answer]) -> TracePicture:
        picture = TracePicture()
        root = next(iter(answers))
        picture._place(answers, root, 0)
        picture.width = max(b["x"] for b in picture.brokers) + CARD_WIDTH + MARGIN
        picture.height += MARGIN
        return picture

    def _place(self, answers: Mapping[str, Answer], broker: str, depth: int) -> dict[str, Any]:
        """A broker in the middle of those below it."""
        answer = answers.get(broker)
        links = [] if answer is None else answer["links"]
        placed = [(link, self._place(answers, link["link"], depth + 1)) for link in links]
        if placed:
            y = (placed[0][1]["y"] + placed[-1][1]["y"]) // 2
        else:
            y = self.height + MARGIN
            self.height = y + ROW - MARGIN
        own = {
            "id": broker,
            "x": MARGIN + depth * COLUMN,
            "y": y,
            "reached": answer is not None,
            "matched": 0 if answer is None else answer["profiles_matched"],
            "profiles": [] if answer is None else answer["profiles"][:20],
        }
        self.brokers.append(own)
        self.links += [_link(own, link, child) for link, child in placed]
        return own


def _link(parent: dict[str, Any], link: Mapping[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    x1, y1 = parent["x"] + CARD_WIDTH, parent["y"] + CARD_HEIGHT // 2
    x2, y2 = child["x"], child["y"] + CARD_HEIGHT // 2
    middle = (x1 + x2) // 2
    found = {
        "path": f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}",
        "x": middle,
        "y": (y1 + y2) // 2,
        "ends": f"{parent['id']} → {child['id']}",
        "taken": link["taken"],
        "disjuncts": link["disjuncts"],
    }
    if link["taken"]:
        is_cut = link["bytes"] != link["bytes_whole"]
        note = f"{link['bytes']:,} bytes as {link['format']}"
        cut = f", cut from {link['bytes_whole']:,}" if is_cut else ""
        why = [said_disjunct(held) for held in link["held"][:1]]
        return {**found, "note": f"{note}{cut}", "why": why}
    failed = [
        f"{said_disjunct(each['disjunct'])} fails at {said_disjunct(each['part'])}"
        for each in link["failed"][:3]
    ]
    note = "not taken" if link["disjuncts"] else "nobody asks"
    return {**found, "note": note, "why": failed}
