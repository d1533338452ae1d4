"""What names alone say of nested paths, against lxml; with few symbols, and with more than bits."""

from __future__ import annotations

from random import Random

import pytest
from lxml import etree

from yfilter import Matcher


@pytest.mark.parametrize("names", [3, 40, 700])
def test_nested_paths_of_names_hold_as_lxml_says(names: int) -> None:
    rng = Random(names)
    print(f"seed {names}")
    profiles = [f"//n{i}" for i in range(names)]  # so that each name has a symbol
    for _ in range(400):
        top = rng.choice(["/r", "//*", f"//n{rng.randrange(names)}"])
        steps = [_step(rng, names, first=at == 0) for at in range(rng.choice((1, 1, 2, 2, 3)))]
        profiles.append(f"{top}[{''.join(steps)}]")
    matcher = Matcher()
    for number, profile in enumerate(profiles):
        matcher.add(profile, str(number))
    for _ in range(8):
        message = f"<r>{_content(rng, names, 4)}</r>".encode()
        tree = etree.fromstring(message)
        wanted = {i for i, text in enumerate(profiles) if tree.getroottree().xpath(text)}
        assert {int(name) for name in matcher.matched_ids(message)} == wanted


def _step(rng: Random, names: int, *, first: bool) -> str:
    name = "*" if rng.random() < 0.15 else f"n{rng.randrange(names)}"
    descends = rng.random() < 0.3
    return f"{'.//' if descends else ''}{name}" if first else f"{'//' if descends else '/'}{name}"


def _content(rng: Random, names: int, levels: int) -> str:
    children = [rng.randrange(names) for _ in range(rng.randint(0, 4) if levels else 0)]
    return "".join(f"<n{n}>{_content(rng, names, levels - 1)}</n{n}>" for n in children)
