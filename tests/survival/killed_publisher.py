"""A publisher to be killed: ``python -m tests.survival.killed_publisher REGISTRATION SOURCE HOW
FIRST COUNT DIRECTORY`` publishes COUNT messages, from FIRST on, each once over all its runs, beside
others of the same source.

It says a line for each hundred that it has sent in this run, and "done".  HOW says what it knows of
runs before: ``nothing`` but that messages have keys, the ``numbers`` of the network, its
``journal``, or, as a publisher without any of that, the ``outcomes`` that it has heard.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import trio

from onyx import DataSource
from onyx.client_values import Publication
from tests.survival.ledger import message

SAY_EACH = 100


async def publish(
    registration: str, source_id: str, how: str, first_of_all: int, count: int, directory: Path
) -> None:
    heard_file = directory / f"{how}.heard"
    heard = int(heard_file.read_text()) if heard_file.exists() else 0
    journal = directory / "publisher.journal" if how == "journal" else None
    name = "numbers" if how == "numbers" else None

    def messages(first: int) -> Iterator[Publication]:
        for index in range(first, count):
            data = message(first_of_all + index, padding=20)
            yield (data, "application/xml", f"m{index}") if how == "nothing" else data
            if index % SAY_EACH == 0:
                print(index, flush=True)

    async with DataSource(registration, source_id, journal=journal, publisher=name) as source:
        first = {
            "nothing": lambda: max(0, heard - 1_000),  # whatever it has heard: they are known
            "numbers": lambda: source.accepted_through,
            "journal": lambda: source.journalled,
            "outcomes": lambda: heard,
        }[how]()
        heard = first
        async for outcome in source.publish_all(messages(first)):
            assert outcome.accepted, outcome
            heard += 1
            beside = heard_file.with_suffix(".new")
            beside.write_text(str(heard))
            beside.replace(heard_file)
    print("done", flush=True)


if __name__ == "__main__":
    registration, source_id, how, first, count, directory = sys.argv[1:]
    trio.run(publish, registration, source_id, how, int(first), int(count), Path(directory))
