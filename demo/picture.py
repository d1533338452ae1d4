"""Broadcast trees as pictures for a terminal: at every link how many messages crossed it.

::

    broadcast tree of B1 Chicago: 312 messages of news, markets
    B1 Chicago
    ├── B2 New York        ██████░░░░░░░░░░   121  39 %
    └── B4 San Francisco   ████████░░░░░░░░   160  51 %
        └── B5 Seattle     ███░░░░░░░░░░░░░    52  17 %
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from demo.traffic import Crossing
from overlay.routing.broadcast_tree import BroadcastTree

BAR_WIDTH = 20


def draw_crossings(
    tree: BroadcastTree,
    label: Callable[[str], str],
    crossings: Mapping[Crossing, int],
    accepted: int,
) -> list[str]:
    """The lines of one tree; ``accepted`` messages entered at its root."""
    branches = [
        (prefix + label(broker), tree.parent[broker], broker)
        for prefix, broker in _branches(tree, tree.root, "")
    ]
    width = max(len(text) for text, _, _ in branches)
    lines = []
    for text, parent, broker in branches:
        if parent is None:
            lines.append(text)
            continue
        count = crossings.get(Crossing(tree.root, parent, broker), 0)
        share = count / accepted if accepted else 0.0
        lines.append(f"{text:{width}}  {_bar(share)} {count:5}  {share:4.0%}")
    return lines


def _branches(tree: BroadcastTree, broker: str, indent: str) -> Iterator[tuple[str, str]]:
    """(branch, broker) in the order of a drawing, the root first and without a branch."""
    if broker == tree.root:
        yield "", broker
    children = tree.children[broker]
    for place, child in enumerate(children):
        last = place == len(children) - 1
        yield indent + ("└── " if last else "├── "), child
        yield from _branches(tree, child, indent + ("    " if last else "│   "))


def _bar(share: float) -> str:
    """Never empty when something crossed, never full when something did not."""
    filled = round(share * BAR_WIDTH)
    if 0 < share < 1:
        filled = min(max(filled, 1), BAR_WIDTH - 1)
    return "█" * filled + "░" * (BAR_WIDTH - filled)
