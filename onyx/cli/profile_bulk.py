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
from onyx.cli.values import print_json
from onyx.clients import User
from onyx.errors import EXIT_DATA, EXIT_OK, UsageError
from onyx.profile_batches import NewProfile, ProfileBatches

_T = TypeVar("_T")

DETAILS = """\
A FILE named .jsonl, or any with --lines, holds many profiles: an object a line, as onyx
profile export writes, or one a line. All lines are checked before anything is done: a
wrong one is told with its line and column, and nothing is done, or it is left out with
--skip-bad."""
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
    if getattr(arguments, "timeout", None) is not None:
        raise UsageError("--timeout is for single profiles")
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
        return user.add_profiles(profiles, key=key, skip_refused=True, wait=arguments.wait)

    return _run(arguments, name, lines, "added", batches, user_name)


def update_many(arguments: argparse.Namespace, name: str) -> int:
    """``onyx profile update FILE``."""
    lines = read_changes(name, arguments.skip_bad)
    changes = [(line.profile, line.text) for line in lines]

    def batches(user: User) -> ProfileBatches[tuple[str, str]]:
        return user.update_profiles(changes, skip_refused=True, wait=arguments.wait)

    return _run(arguments, name, lines, "changed", batches)


def remove_many(arguments: argparse.Namespace, name: str) -> int:
    """``onyx profile remove FILE``."""
    lines = read_ids(name, arguments.skip_bad)
    ids = [line.profile for line in lines]

    def batches(user: User) -> ProfileBatches[str]:
        return user.remove_profiles(ids, wait=arguments.wait)

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
        refused = 0
        async with User(registration_address(arguments), user_name) as user:
            async for batch in batches(user):
                told = lines[batch.first : batch.first + len(batch.ids)]
                ids = [profile for profile in batch.ids if profile]
                for place, why in batch.refused.items():
                    number = lines[place].number
                    print(f"onyx: {name}: line {number}: {why}", file=sys.stderr)
                if arguments.json:
                    for line, profile in zip(told, batch.ids, strict=True):
                        print_json({"line": line.number, "id": profile or None})
                elif ids:
                    print("\n".join(ids), flush=True)
                refused += len(batch.refused)
                progress.add(len(ids))
        progress.end()
        return EXIT_DATA if refused else EXIT_OK

    return trio.run(run)
