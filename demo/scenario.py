"""Scenario: who publishes what, and who wants what.

Either the demo's own sources and profiles, or a folder of XML files: its files are spread over
three sources and its profiles are derived from what is in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.derive import derive_profiles
from demo.messages import SOURCES, DemoMessage, DemoSource, demo_messages
from demo.profile_files import DemoProfile, load_profiles

PROFILES = Path(__file__).parent / "profiles"
DERIVED_PROFILES = 66
FILES_MAX = 10_000
FOLDER_BYTES_MAX = 256 * 1024 * 1024


class ScenarioError(Exception):
    """A folder that cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """``messages`` in the order in which each source publishes its own."""

    title: str
    sources: tuple[DemoSource, ...]
    profiles: list[DemoProfile]
    messages: list[DemoMessage]

    def of_source(self, source: str) -> list[DemoMessage]:
        """A source's messages: the first one has number 1."""
        return [message for message in self.messages if message.source == source]


def built_in_scenario(seed: int, limit: int | None = None) -> Scenario:
    """The demo's own content; ``limit`` is how many messages of each source at most."""
    profiles = load_profiles(PROFILES)
    return Scenario("its own messages", SOURCES, profiles, demo_messages(seed, limit))


def folder_scenario(
    folder: Path, seed: int, cities: Sequence[str], limit: int | None = None
) -> Scenario:
    """Every file in a folder and the folders in it; users live near ``cities`` in turn.

    Raises ScenarioError when there is no such folder, nothing in it, or too much.
    """
    sources = tuple(
        DemoSource(f"files-{letter}", source.city, f"part {letter} of {folder}")
        for letter, source in zip("abc", SOURCES, strict=False)
    )
    messages = []
    for place, path in enumerate(_files(folder, None if limit is None else 3 * limit)):
        source = sources[place % len(sources)]
        messages.append(DemoMessage(source.name, str(path.relative_to(folder)), _read(path)))
    data = [message.data for message in messages]
    profiles = derive_profiles(data, DERIVED_PROFILES, seed, cities)
    if not profiles:
        raise ScenarioError(f"{folder}: none of its {len(messages)} files is well-formed XML")
    return Scenario(f"the files of {folder}", sources, profiles, messages)


def _files(folder: Path, limit: int | None) -> list[Path]:
    if not folder.is_dir():
        raise ScenarioError(f"{folder}: not a folder; expected a folder of XML files")
    try:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise ScenarioError(f"{folder}: {error.strerror}") from None
    files = files[:limit]
    if not files:
        raise ScenarioError(f"{folder}: there are no files in it")
    if len(files) > FILES_MAX:
        raise ScenarioError(f"{folder}: {len(files)} files, at most {FILES_MAX}; use --limit")
    size = sum(path.stat().st_size for path in files)
    if size > FOLDER_BYTES_MAX:
        raise ScenarioError(
            f"{folder}: {size:,} bytes of files, at most {FOLDER_BYTES_MAX:,}; use --limit"
        )
    return files


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
