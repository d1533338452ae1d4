"""``onyx profile add``, ``update`` and ``remove`` of the profiles of a whole file."""

from __future__ import annotations

import argparse
import re
import uuid
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from onyx.cli.asking import settings_said
from onyx.cli.network_option import registration_address
from onyx.cli.source_publish import Progress
from onyx.cli.values import counted, print_json, say
from onyx.clients import User
from onyx.errors import EXIT_DATA, EXIT_OK, EXIT_UNAVAILABLE, UsageError, UserError
from onyx.profile_batches import NewProfile, ProfileBatches
from overlay.settings import ProfileSettings, settings_of
from registration.spark.profile_lines import (
    KEYS_HELP,
    ProfileLine,
    has_objects,
    numbered,
    read_object,
)
from yfilter.errors import ProfileRefused
from yfilter.matcher import check_profile

Line: TypeAlias = tuple[int, ProfileLine]
"""With its number."""
_CHANGE = re.compile(r"\s*(p[0-9]+(?:-[a-z2-7]+)?)\s+(.*\S)\s*")


class BadLines(UserError, code="profiles-refused"):
    """A file has lines that cannot be used."""


def read_lines(name: str, skip_bad: bool, *needed: str) -> list[Line]:
    """The lines of a file that have what is ``needed``: a text that is a profile, the id of a
    ``profile``, or both.  Other lines are told on standard error; BadLines if there are any, unless
    ``skip_bad``."""
    read = read_object if has_objects(name) else _read_plain
    good: list[Line] = []
    bad = 0
    for number, text in numbered(name):
        try:
            line = read(text, *needed)
            if "text" in needed:
                check_profile(line.text)
            good.append((number, line))
            continue
        except ValueError as error:
            wrong = f"line {number}: {error}"
        except ProfileRefused as refusal:
            wrong = f"line {number}: in its text, {refusal}"
            if refusal.line <= 1:
                refusal.fault = replace(refusal.fault, line=number)
                wrong = str(refusal)
        bad += 1
        say(f"{name}: {wrong}")
    if bad and not skip_bad:
        raise BadLines(
            f"{name}: {counted(bad, 'line')} cannot be used, so nothing was done "
            "(--skip-bad: leave them out)"
        )
    return good


def _read_plain(text: str, *needed: str) -> ProfileLine:
    """A text or an id, or an id and a text; see ``read_object``."""
    if len(needed) == 1:
        return ProfileLine(**{needed[0]: text.rstrip()})  # type: ignore[arg-type]
    if (found := _CHANGE.fullmatch(text)) is None:
        raise ValueError(
            f"this is {text.strip()[:40]!r}; expected the id of a profile and, behind a space, its "
            "new text: p7 //item"
        )
    return ProfileLine(profile=found[1], text=found[2])


_T = TypeVar("_T")

MANY_DETAILS = f"""\
{KEYS_HELP}
All lines are checked before anything is done: where one is wrong nothing is done, or it is
left out with --skip-bad."""
STRICT_HELP = "exit code 65 for a warning, too"
RESUME_DETAILS = """\
What is cut off can be done again with --resume and the key that is told at the beginning: what was
added is not added again."""


FILE_OF_MANY = {
    "--lines": "FILE has one profile a line",
    "--skip-bad": "leave out lines that cannot be used",
}


def the_file(arguments: argparse.Namespace, names: Sequence[str]) -> str | None:
    """The file of many profiles that is meant, None if each argument is one; UsageError if it is
    not alone."""
    many = [name for name in names if arguments.lines or has_objects(name)]
    if not many:
        if arguments.skip_bad:
            raise UsageError("--skip-bad is for a file of many profiles (--lines or .jsonl)")
        return None
    if len(names) > 1:
        raise UsageError(f"{many[0]} has many profiles: expected it alone")
    return names[0]


async def add_many(arguments: argparse.Namespace, name: str, user_name: str) -> int:
    """``onyx profile add FILE``."""
    lines = read_lines(name, arguments.skip_bad, "text")
    said = settings_said(arguments, ProfileSettings)
    profiles = [
        NewProfile(
            *(line.text, line.user, line.location or arguments.location),
            **(settings_of(line, ProfileSettings) | said),
        )
        for _, line in lines
    ]
    key = arguments.resume or uuid.uuid4().hex
    say(f"adding {name}; if it is cut off: --resume {key}")

    def batches(user: User) -> ProfileBatches[NewProfile]:
        return user.add_profiles(
            profiles,
            key=key,
            skip_refused=True,
            wait=arguments.wait,
            timeout_seconds=arguments.timeout,
        )

    return await _run(arguments, name, lines, "added", batches, user_name)


async def update_many(arguments: argparse.Namespace, name: str) -> int:
    """``onyx profile update FILE``."""
    lines = read_lines(name, arguments.skip_bad, "profile", "text")
    changes = [(line.profile, line.text) for _, line in lines]

    def batches(user: User) -> ProfileBatches[tuple[str, str]]:
        return user.update_profiles(
            changes, skip_refused=True, wait=arguments.wait, timeout_seconds=arguments.timeout
        )

    return await _run(arguments, name, lines, "changed", batches)


async def remove_many(arguments: argparse.Namespace, name: str) -> int:
    """``onyx profile remove FILE``."""
    lines = read_lines(name, arguments.skip_bad, "profile")
    ids = [line.profile for _, line in lines]

    def batches(user: User) -> ProfileBatches[str]:
        return user.remove_profiles(ids, wait=arguments.wait, timeout_seconds=arguments.timeout)

    return await _run(arguments, name, lines, "removed", batches)


async def _run(
    arguments: argparse.Namespace,
    name: str,
    lines: Sequence[Line],
    done: str,
    batches: Callable[[User], ProfileBatches[_T]],
    user_name: str = "",
) -> int:
    """Tell of each profile: its id on standard output, or why not."""
    refused = warned = late = 0
    missing: set[str] = set()
    with Progress(f"profiles {done}", len(lines), is_shown=True) as progress:
        async with User(registration_address(arguments), user_name) as user:
            async for batch in batches(user):
                ids = [profile for profile in batch.ids if profile]
                for place, why in batch.refused.items():
                    say(f"{name}: line {lines[place][0]}: {why}")
                for place, profile in enumerate(batch.ids, batch.first):
                    number, warnings = lines[place][0], batch.warnings.get(place, ())
                    for warning in warnings:
                        say(f"{name}: line {number}: warning: {warning}")
                    if arguments.json:
                        said = {"warnings": list(warnings)} if warnings else {}
                        print_json({"line": number, "id": profile or None, **said})
                if ids and not arguments.json:
                    print("\n".join(ids), flush=True)
                refused += len(batch.refused)
                warned += len(batch.warnings)
                late += len(ids) if batch.missing else 0
                missing.update(batch.missing)
                progress.note(count=len(ids))
    tell_warned(warned)
    refused += warned if getattr(arguments, "strict", False) else 0
    if late:
        brokers = ", ".join(sorted(missing))
        why = f"{brokers} not reached by all of {counted(late, 'profile')}"
        say(f"{why} within {arguments.timeout:g} s")
    return EXIT_DATA if refused else EXIT_UNAVAILABLE if late else EXIT_OK


def tell_warned(profiles: int) -> None:
    """Of how many profiles schemas say so."""
    if profiles:
        say(f"{counted(profiles, 'profile')} can match no message")
