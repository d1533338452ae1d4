"""``onyx profile add``, ``update`` and ``remove`` of the profiles of a whole file."""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import TypeVar

import trio

from onyx.cli.network_option import registration_address
from onyx.cli.profile_files import (
    Line,
    Progress,
    is_of_many,
    read_changes,
    read_ids,
    read_profiles,
)
from onyx.cli.values import counted, print_json
from onyx.clients import User
from onyx.errors import EXIT_DATA, EXIT_OK, EXIT_UNAVAILABLE, UsageError
from onyx.profile_batches import NewProfile, ProfileBatches

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


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lines", action="store_true", help="FILE has one profile a line")
    parser.add_argument(
        "--skip-bad", action="store_true", help="leave out lines that cannot be used"
    )


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


def add_many(arguments: argparse.Namespace, name: str, user_name: str) -> int:
    """``onyx profile add FILE``."""
    lines = read_profiles(name, arguments.skip_bad)
    profiles = [
        NewProfile(
            line.text, line.user, line.location or arguments.location, line.near or arguments.near
        )
        for line in lines
    ]
    key = arguments.resume or uuid.uuid4().hex
    print(f"onyx: adding {name}; if it is cut off: --resume {key}", file=sys.stderr, flush=True)

    def batches(user: User) -> ProfileBatches[NewProfile]:
        return user.add_profiles(
            profiles,
            key=key,
            skip_refused=True,
            wait=arguments.wait,
            timeout_seconds=arguments.timeout,
        )

    return _run(arguments, name, lines, "added", batches, user_name)


def update_many(arguments: argparse.Namespace, name: str) -> int:
    """``onyx profile update FILE``."""
    lines = read_changes(name, arguments.skip_bad)
    changes = [(line.profile, line.text) for line in lines]

    def batches(user: User) -> ProfileBatches[tuple[str, str]]:
        return user.update_profiles(
            changes,
            skip_refused=True,
            wait=arguments.wait,
            timeout_seconds=arguments.timeout,
        )

    return _run(arguments, name, lines, "changed", batches)


def remove_many(arguments: argparse.Namespace, name: str) -> int:
    """``onyx profile remove FILE``."""
    lines = read_ids(name, arguments.skip_bad)
    ids = [line.profile for line in lines]

    def batches(user: User) -> ProfileBatches[str]:
        return user.remove_profiles(ids, wait=arguments.wait, timeout_seconds=arguments.timeout)

    return _run(arguments, name, lines, "removed", batches)


def _run(
    arguments: argparse.Namespace,
    name: str,
    lines: Sequence[Line],
    done: str,
    batches: Callable[[User], ProfileBatches[_T]],
    user_name: str = "",
) -> int:
    """Tell of each profile: its id on standard output, or why not."""

    async def run() -> int:
        progress = Progress(done, len(lines))
        refused = warned = late = 0
        missing: set[str] = set()
        async with User(registration_address(arguments), user_name) as user:
            async for batch in batches(user):
                told = lines[batch.first : batch.first + len(batch.ids)]
                ids = [profile for profile in batch.ids if profile]
                for place, why in batch.refused.items():
                    number = lines[place].number
                    print(f"onyx: {name}: line {number}: {why}", file=sys.stderr)
                for place, warnings in sorted(batch.warnings.items()):
                    for warning in warnings:
                        where = f"{name}: line {lines[place].number}"
                        print(f"onyx: {where}: warning: {warning}", file=sys.stderr)
                if arguments.json:
                    for place, (line, profile) in enumerate(
                        zip(told, batch.ids, strict=True), batch.first
                    ):
                        warnings = list(batch.warnings.get(place, ()))
                        said = {"warnings": warnings} if warnings else {}
                        print_json({"line": line.number, "id": profile or None, **said})
                elif ids:
                    print("\n".join(ids), flush=True)
                refused += len(batch.refused)
                warned += len(batch.warnings)
                late += len(ids) if batch.missing else 0
                missing.update(batch.missing)
                progress.add(len(ids))
        progress.end()
        tell_warned(warned)
        refused += warned if getattr(arguments, "strict", False) else 0
        if late:
            brokers = ", ".join(sorted(missing))
            why = f"{brokers} not reached by all of {counted(late, 'profile')}"
            print(f"onyx: {why} within {arguments.timeout:g} s", file=sys.stderr)
        return EXIT_DATA if refused else EXIT_UNAVAILABLE if late else EXIT_OK

    return trio.run(run)


def tell_warned(profiles: int) -> None:
    """Of how many profiles schemas say so."""
    if profiles:
        print(f"onyx: {counted(profiles, 'profile')} can match no message", file=sys.stderr)
