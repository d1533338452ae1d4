"""Machine: what a process runs on, whose disk fails, whose power goes and whose clock is set."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.overlay.link import faulty_disk
from tests.overlay.link.faulty_disk import preloaded

STORE = "store.sqlite"
SYNCED = ".synced"


@dataclass(frozen=True)
class Machine:
    """Of one process; ``environment`` is for it."""

    directory: Path
    libraries: Sequence[Path]

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "LD_PRELOAD": ":".join(map(str, self.libraries)),
            "FAULT": str(self.directory / "fault"),
            "CLOCK": str(self.directory / "clock"),
        }

    def fail(self, word: str) -> None:
        """Of the log: "full", "unwritten" or "unsynced"; "": no more."""
        _write(self.directory / "fault", f"{word} {STORE}-wal" if word else "")

    def set_clock(self, seconds: int) -> None:
        """The wall clock, ahead by so many."""
        with (self.directory / "clock").open("r+b") as clock:  # processes have it mapped
            clock.write(seconds.to_bytes(8, sys.byteorder, signed=True))


def machines(directory: Path, nodes: Iterable[str]) -> dict[str, Machine]:
    """One for each process; none where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    sources = Path(faulty_disk.__file__).with_suffix(".c"), Path(__file__).with_suffix(".c")
    libraries = [preloaded(directory, source, compiler) for source in sources]
    found = {node: Machine(directory / f"machine-{node}", libraries) for node in nodes}
    for machine in found.values():
        machine.directory.mkdir()
        machine.fail("")
        (machine.directory / "clock").write_bytes(bytes(8))
    return found


def cut_power(files: Path, chance: Random | None) -> None:
    """Behind SIGKILL of the process whose store is there: leave of each file what was synced, or,
    by ``chance``, what was written."""
    for file in files.glob(f"{STORE}*"):
        if file.name.endswith((SYNCED, ".new")):
            continue
        synced = file.with_name(file.name + SYNCED)
        if file.name.endswith("-shm"):
            file.unlink()
        elif chance is not None and chance.random() < 0.3:
            shutil.copy(file, synced)
        elif synced.exists():
            shutil.copy(synced, file)
        elif not file.name.endswith("-head"):  # that one is synced before it has its name
            file.unlink()


def _write(file: Path, text: str) -> None:
    """All or nothing is read."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)
