"""``onyx profile add``, ``update`` and ``remove`` of the profiles of a whole file."""

from __future__ import annotations

import argparse
import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from onyx.cli.asking import settings_said
from onyx.cli.network_option import registration_address
from onyx.cli.source_publish import Progress
from onyx.cli.values import counted, print_json, read_text, say
from onyx.clients import User
from onyx.errors import EXIT_DATA, EXIT_OK, EXIT_UNAVAILABLE, UsageError, UserError
from onyx.profile_batches import NewProfile, ProfileBatches
from overlay.settings import Degrees, ProfileSettings, settings_of
from overlay.unfit import in_words
from yfilter.errors import ProfileRefused
from yfilter.matcher import check_profile

# -------------------------------------------------------------------------------------------------
# Files of many profiles: one a line, or a JSON object a line.
#
# ``.jsonl``  an object a line, as ``onyx profile export`` writes: ``text`` and, where they are
#             there, ``user``, ``location`` and ``near``; ``profile`` is the id where profiles are
#             changed
# ``--lines`` the text of a profile a line, or an id a line, or, where profiles are changed, an id
#             and the text behind it; empty lines are passed over


_ID = re.compile("p[0-9]+(-[a-z2-7]+)?")


class Line(ProfileSettings, Struct, frozen=True):
    """What a line of a file says, the ``number``-th."""

    number: int
    profile: str = ""
    text: str = ""
    user: str | None = None
    location: Degrees | None = None


class BadLines(UserError, code="profiles-refused"):
    """A file has lines that cannot be used."""


def is_of_many(name: str, lines: bool) -> bool:
    """Whether a file holds a profile a line."""
    return lines or name.endswith(".jsonl")


def read_profiles(name: str, skip_bad: bool) -> list[Line]:
    """The profiles that a file asks for, each with a text that is one; see ``_usable``."""
    is_json = name.endswith(".jsonl")
    return _usable(name, partial(_objects if is_json else _lines, name, "text"), _check, skip_bad)


def read_changes(name: str, skip_bad: bool) -> list[Line]:
    """The same with ids, of profiles that are to have these texts."""
    is_json = name.endswith(".jsonl")
    read = partial(_objects, name, "profile", "text") if is_json else partial(_changes, name)
    return _usable(name, read, _check, skip_bad)


def read_ids(name: str, skip_bad: bool) -> list[Line]:
    """The profiles that a file names."""
    is_json = name.endswith(".jsonl")
    read = partial(_objects if is_json else _lines, name, "profile")
    return _usable(name, read, lambda line: None, skip_bad)


def _usable(
    name: str,
    read: Callable[[], Iterable[Line | str]],
    check: Callable[[Line], str | None],
    skip_bad: bool,
) -> list[Line]:
    """The lines in which nothing is wrong, after the others were told on standard error; BadLines
    if there are others, unless ``skip_bad``."""
    good: list[Line] = []
    bad = 0
    for line in read():
        wrong = line if isinstance(line, str) else check(line)
        if wrong is not None:
            bad += 1
            say(f"{name}: {wrong}")
        elif isinstance(line, Line):
            good.append(line)
    if bad and not skip_bad:
        raise BadLines(
            f"{name}: {counted(bad, 'line')} cannot be used, so nothing was done "
            "(--skip-bad: leave them out)"
        )
    return good


def _check(line: Line) -> str | None:
    try:
        check_profile(line.text)
    except ProfileRefused as refusal:
        if refusal.line > 1:
            return f"line {line.number}: in its text, {refusal}"
        refusal.fault = replace(refusal.fault, line=line.number)
        return str(refusal)
    return None


def _lines(name: str, field: str) -> Iterator[Line]:
    for number, text in _numbered(name):
        yield Line(number, **{field: text.rstrip()})  # type: ignore[arg-type]


def _changes(name: str) -> Iterator[Line | str]:
    for number, line in _numbered(name):
        words = line.split(None, 1)
        if _ID.fullmatch(words[0]) and len(words) > 1:
            yield Line(number, words[0], words[1].rstrip())
        else:
            yield (
                f"line {number}: this is {line.strip()[:40]!r}; expected the id of a profile and, "
                "behind a space, its new text: p7 //item"
            )


def _objects(name: str, *needed: str) -> Iterator[Line | str]:
    for number, text in _numbered(name):
        try:
            found = json.loads(text)
        except ValueError as error:
            yield f"line {number}: this is no JSON: {error}"
            continue
        yield _line_of(number, found, needed)


def _line_of(number: int, found: object, needed: Sequence[str]) -> Line | str:
    if not isinstance(found, dict):
        return f"line {number}: expected an object, as onyx profile export writes"
    said = {name: value for name, value in found.items() if value is not None}
    for field in needed:
        said.setdefault(field, None)
    try:
        return convert({**said, "number": number}, Line)
    except ValidationError as error:
        fault = in_words(Line, error, said)
        hint = "; expected [latitude, longitude]" if fault.where.startswith("location") else ""
        return f"line {number}: {fault.reason}{hint}"


def _numbered(name: str) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, with their numbers."""
    for number, line in enumerate(read_text(name).split("\n"), 1):
        if line.strip():
            yield number, line


_T = TypeVar("_T")

DETAILS = """\
A FILE named .jsonl, or any with --lines, holds many profiles: an object a line, as onyx
profile export writes, or one a line. All lines are checked before anything is done: a
wrong one is told with its line and column, and nothing is done, or it is left out with
--skip-bad."""
STRICT_HELP = "exit code 65 for a warning, too; what is warned of is in force all the same"
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
    many = [name for name in names if is_of_many(name, arguments.lines)]
    if not many:
        if arguments.skip_bad:
            raise UsageError("--skip-bad is for a file of many profiles (--lines or .jsonl)")
        return None
    if len(names) > 1:
        raise UsageError(f"{many[0]} has many profiles: expected it alone")
    return names[0]


async def add_many(arguments: argparse.Namespace, name: str, user_name: str) -> int:
    """``onyx profile add FILE``."""
    lines = read_profiles(name, arguments.skip_bad)
    said = settings_said(arguments, ProfileSettings)
    profiles = [
        NewProfile(
            *(line.text, line.user, line.location or arguments.location),
            **(settings_of(line, ProfileSettings) | said),
        )
        for line in lines
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
    lines = read_changes(name, arguments.skip_bad)
    changes = [(line.profile, line.text) for line in lines]

    def batches(user: User) -> ProfileBatches[tuple[str, str]]:
        return user.update_profiles(
            changes, skip_refused=True, wait=arguments.wait, timeout_seconds=arguments.timeout
        )

    return await _run(arguments, name, lines, "changed", batches)


async def remove_many(arguments: argparse.Namespace, name: str) -> int:
    """``onyx profile remove FILE``."""
    lines = read_ids(name, arguments.skip_bad)
    ids = [line.profile for line in lines]

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
                    say(f"{name}: line {lines[place].number}: {why}")
                for place, profile in enumerate(batch.ids, batch.first):
                    number, warnings = lines[place].number, batch.warnings.get(place, ())
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
