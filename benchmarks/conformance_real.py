"""Profiles written for real messages, each by both engines held against Saxon on every message of
its folder.

The profiles are in tests/profiles_for_real_messages, a file for a folder of messages, each behind
a line with its name; one whose name says "matches nothing" has no results, every other one has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.conformance_random import Comparison, ask, deliver_by_both, same_documents
from benchmarks.corpus_queries import messages_of
from demo.saxon import Saxon, SaxonError

PROFILES = Path(__file__).parents[1] / "tests" / "profiles_for_real_messages"
_WITHIN = {"yfilter": "yfilter/messages"}
_HEADING = re.compile(r"^\(: === (.*?) === :\)$", re.MULTILINE)


def profile_files() -> list[Path]:
    """One for each folder of messages, which has its name."""
    return sorted(PROFILES.glob("*.xq"))


def profiles_in(file: Path) -> dict[str, str]:
    """The profiles of a file by their names."""
    _, *parts = _HEADING.split(file.read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


@dataclass
class RealComparison:
    """One folder; ``results``: documents that were equal, ``faults``: what is not as it should."""

    profiles: int = 0
    messages: int = 0
    results: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RealResult:
    """What was compared, by folder."""

    comparisons: Mapping[str, RealComparison]

    @property
    def good(self) -> bool:
        return not any(one.faults for one in self.comparisons.values())

    def to_text(self) -> str:
        lines = ["profiles for real messages, against Saxon"]
        lines.append(f"{'folder':<14}{'profiles':>10}{'messages':>10}{'results':>10}{'faults':>8}")
        for folder, one in self.comparisons.items():
            counts = f"{one.profiles:>10}{one.messages:>10}{one.results:>10}{len(one.faults):>8}"
            lines.append(f"{folder:<14}{counts}")
        for one in self.comparisons.values():
            lines += one.faults
        return "\n".join(lines)

    def to_json(self) -> Mapping[str, object]:
        return {
            folder: {
                "profiles": one.profiles,
                "messages": one.messages,
                "results": one.results,
                "faults": len(one.faults),
            }
            for folder, one in self.comparisons.items()
        }


def compare_real(data: Path) -> RealResult:
    """All folders of ``data`` that profiles were written for."""
    return RealResult(
        {file.stem: compare_folder(file, data) for file in profile_files() if _folder(file, data)}
    )


def compare_folder(file: Path, data: Path) -> RealComparison:
    """The profiles of a file on every message of its folder."""
    profiles = profiles_in(file)
    folder = _folder(file, data)
    messages = list(messages_of(folder)) if folder else []
    found = RealComparison(len(profiles), len(messages))
    delivered = _delivered(profiles, messages, found.faults)
    with Saxon() as saxon:
        saxon.load(messages)
        for title, text in profiles.items():
            if bool(delivered[title]) is ("matches nothing" in title):
                found.faults.append(f"{title}: {len(delivered[title])} messages match")
            for number, wanted in enumerate(ask(saxon, text)):
                ours = delivered[title].get(number, [])
                if isinstance(wanted, SaxonError):
                    found.faults.append(f"{title}: {wanted.reason}")
                elif same_documents(ours, wanted, messages[number]):
                    found.results += len(ours)
                else:
                    found.faults.append(f"{title}: {ours[:3]}, Saxon: {wanted[:3]}")
    return found


def _folder(file: Path, data: Path) -> Path | None:
    folder = data / _WITHIN.get(file.stem, file.stem)
    return folder if folder.is_dir() else None


def _delivered(
    profiles: Mapping[str, str], messages: list[bytes], faults: list[str]
) -> dict[str, dict[int, list[bytes]]]:
    """Results by profile and number of the message; faults where the engines differ."""
    judged = Comparison("reference engine")
    found = deliver_by_both([*profiles.values()], messages, judged)
    faults += judged.disagreements
    return {
        title: {
            number: delivered[place].results or []
            for number, delivered in enumerate(found)
            if place in delivered
        }
        for place, title in enumerate(profiles)
    }
