"""A store with a history: what its rows were after each commit, and its files as a kill leaves
them."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

from overlay.link.errors import StoreError
from overlay.link.events import Delete, Put
from overlay.link.store import Store

Rows = dict[tuple[str, str], bytes]
ENDINGS = ("", "-wal", "-head")
NAME = "store.sqlite"


class History:
    """Commits of a store, long values among them, in four spaces."""

    def __init__(self, directory: Path, seed: int) -> None:
        directory.mkdir()
        self.path = directory / NAME
        self.states: list[Rows] = [{}]
        self._random = Random(seed)
        self.store = Store(self.path)

    def commit(self, count: int = 1) -> None:
        random = self._random
        for _ in range(count):
            rows = dict(self.states[-1])
            changes: list[Put | Delete] = []
            for _ in range(random.choice((1, 2, 5, 40))):
                space = random.choice(("inbox", "outbox", "profile", "zone"))
                name = space, f"{random.randrange(99)}"
                if random.random() < 0.7:
                    size = random.choice((0, 3, 60, 300, 9000))
                    rows[name] = random.randbytes(size)
                    changes.append(Put(*name, rows[name]))
                else:
                    rows.pop(name, None)
                    changes.append(Delete(*name))
            self.store.commit(changes)
            self.states.append(rows)

    def copy(self, directory: Path) -> Path:
        """The files as they are now: those of a process that was killed, unless it was closed."""
        return copy_files(self.path, directory)


def copy_files(path: Path, directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for ending in ENDINGS:
        file = path.with_name(path.name + ending)
        if file.exists():
            shutil.copy(file, directory)
    return directory / path.name


def read_all(path: Path, expected: Rows) -> Rows | str:
    """The rows of a store, read at its start, each by itself, and after one more commit; or what it
    says instead."""
    try:
        with Store(path) as store:
            rows = {(space, key): value for space, key, value in store.rows()}
            assert len(list(store.rows(unread=("outbox", "zone")))) == len(rows)
            for space, key in expected:
                found = dict(store.read(space, key, key))
                assert found.get(key) == rows.get((space, key)), (space, key)
            store.commit([Put("after", "k", b"1")])
            again = {(space, key): value for space, key, value in store.rows()}
            assert again == {**rows, ("after", "k"): b"1"}
    except StoreError as error:
        return str(error)
    return rows
