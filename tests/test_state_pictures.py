"""The pictures of protocols in the documents are those that their tables draw.

``python -m tests.test_state_pictures`` draws them anew.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from overlay.state_table import StateTable

ROOT = Path(__file__).parents[1]
PICTURES = {
    "registration.moves:Moves": "docs/planning.md",
    "onyx.broker.moves.profile_moves:Standbys": "docs/planning.md",
    "onyx.broker.moves.releases:Releases": "docs/planning.md",
    "registration.shape_changes:ShapeChanges": "docs/protocol.md",
    "registration.source_roots:SourceRoots": "docs/protocol.md",
    "registration.drains:Drains": "docs/topologies.md",
    "registration.auto_planning:AutoPlanning": "docs/planning.md",
    "onyx.broker.moves.watersheds:Watersheds": "docs/planning.md",
    "onyx.broker.shape.shape_stages:ShapeStages": "docs/protocol.md",
    "onyx.broker.shape.tree_versions:TreeVersions": "docs/protocol.md",
    "onyx.broker.users.user_parts:UserBudgets": "docs/topologies.md",
}


def table(name: str) -> StateTable[Any, Any]:
    module, _, machine = name.partition(":")
    found = getattr(import_module(module), machine).steps
    assert isinstance(found, StateTable)
    return found


def with_picture(name: str, document: str) -> str:
    """A document with the picture of a table as it is now."""
    mark = f"<!-- drawn from {name} -->\n"
    assert mark in document, f"{PICTURES[name]} has no place for {name}: {mark}"
    drawn = f"{mark}```mermaid\n{table(name).picture()}\n```\n"
    after = rf"{re.escape(mark)}(```mermaid\n.*?\n```\n)?"
    return re.sub(after, lambda found: drawn, document, count=1, flags=re.DOTALL)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_one_that_the_table_draws(name: str) -> None:
    document = (ROOT / PICTURES[name]).read_text()
    assert with_picture(name, document) == document, (
        f"the picture of {name} in {PICTURES[name]} is another; "
        "expected what python -m tests.test_state_pictures draws"
    )


@pytest.mark.parametrize("name", PICTURES)
def test_every_state_is_reached_and_left_again(name: str) -> None:
    steps = table(name)
    arrows = {(state, step.then) for (state, _), step in steps.steps.items()}
    states = {state for arrow in arrows for state in arrow}
    for ways in (arrows, {(there, here) for here, there in arrows}):
        found = {steps.outside}
        while more := {there for here, there in ways if here in found} - found:
            found |= more
        assert found == states


def test_what_a_table_does_not_list_is_nothing() -> None:
    moves = table("registration.moves:Moves")
    states = {state for state, _ in moves.steps}
    events = {event for _, event in moves.steps}
    for state in states:
        for event in events:
            assert (moves.step(state, event) is None) == ((state, event) not in moves.steps)


if __name__ == "__main__":
    for name, file in PICTURES.items():
        path = ROOT / file
        path.write_text(with_picture(name, path.read_text()))
