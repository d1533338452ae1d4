"""``onyx profile``: say what a user wants, and see what becomes of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TypeVar

import trio

from onyx.cli.network_option import (
    NETWORK_HELP,
    add_client_arguments,
    registration_address,
)
from onyx.cli.profile_bulk import (
    DETAILS,
    RESUME_DETAILS,
    STRICT_HELP,
    add_file_arguments,
    add_many,
    remove_many,
    the_file,
    update_many,
)
from onyx.cli.profile_check import add_check
from onyx.cli.profile_explain import add_explain
from onyx.cli.profile_import import add_import
from onyx.cli.profile_plan import add_plan
from onyx.cli.profile_policy import (
    POLICY_DETAILS,
    add_policy,
    add_policy_arguments,
    policy_said,
    sentence,
)
from onyx.cli.profile_why_not import add_why_not
from onyx.cli.values import (
    LOCATION_HELP,
    check_once,
    location,
    login_name,
    not_negative,
    print_json,
    read_text,
    table,
)
from onyx.cli.verb import Subparsers, add_subverbs, add_verb, set_run
from onyx.client_values import ProfileInfo
from onyx.clients import LIVE_SECONDS, User
from onyx.errors import EXIT_DATA, EXIT_OK, EXIT_UNAVAILABLE, ProfileNotAccepted, UsageError
from onyx.registration_client import RegistrationClient
from overlay.delivery_policy import USUAL
from yfilter.graph.graph_query import is_graph_query

_T = TypeVar("_T")

ADD_EXAMPLES = """\
  onyx profile add storms.xq --wait
  onyx profile add storms.xq --key storms
  echo '//item[price < 100]' | onyx profile add - --user ada
  onyx profile add profiles/*.xq --user ada --location 47.61,-122.33
  onyx profile add fog.rq --wait                  of graphs: SPARQL
  onyx profile add population.jsonl
  onyx profile add queries.txt --lines --skip-bad > ids.txt
"""

OTHER_EXAMPLES = """\
  onyx profile show p1
  onyx profile list --user ada
  onyx profile update p1 storms.xq --wait
  onyx profile remove p1 p2
  onyx profile remove ids.txt --lines
"""

WAIT_HELP = "return only when it is live: no message published afterwards is missed"
WARNED_DETAILS = "Where the schemas of all sources say that it can never match there is a warning."
KEY_HELP = "a name of yours for it: while it is there, to add it again is to find it"
REFUSED_DETAILS = "A profile that is refused is shown with a caret under the place; exit code 65."


def add_parser(subparsers: Subparsers) -> None:
    verb = add_verb(
        subparsers,
        "profile",
        "add, import, show, check, explain, draw, change or remove profiles",
        details="A profile is a query in XQuery: a path, or for ... where ... return; or, of\n"
        "graphs, in SPARQL: SELECT, CONSTRUCT or ASK. Every message that it matches is\n"
        "delivered in the form that it asks for (onyx subscribe).\n"
        f"{NETWORK_HELP}",
        examples=ADD_EXAMPLES + OTHER_EXAMPLES,
    )
    verbs = add_subverbs(verb)
    _add_add(verbs)
    show = add_verb(verbs, "show", "show a profile and its text", examples="  onyx profile show p1")
    show.add_argument("profile", metavar="ID")
    set_run(show, run_show)
    add_client_arguments(show)
    listing = add_verb(verbs, "list", "list profiles", examples="  onyx profile list --user ada")
    listing.add_argument("--user", metavar="NAME", default="", help="only those of this user")
    set_run(listing, run_list)
    add_client_arguments(listing)
    export = add_verb(
        verbs,
        "export",
        "print all profiles with their texts, one JSON object a line",
        details="What onyx plan make reads as .jsonl.",
        examples="  onyx profile export > catalog.jsonl",
    )
    set_run(export, run_export)
    add_client_arguments(export)  # --json, which it does anyway
    _add_update(verbs)
    add_policy(verbs)
    add_import(verbs)
    add_check(verbs)
    add_explain(verbs)
    add_why_not(verbs)
    add_plan(verbs)
    remove = add_verb(
        verbs,
        "remove",
        "remove profiles",
        details="Results that were not delivered yet are gone with the profile. A FILE named\n"
        ".jsonl, or any with --lines, names many profiles: an object a line with its id as\n"
        "profile, or an id a line.",
        examples="  onyx profile remove p1 p2\n  onyx profile remove ids.txt --lines",
    )
    remove.add_argument("profiles", metavar="ID|FILE", nargs="+")
    add_file_arguments(remove)
    _add_wait(remove, "return only when no broker keeps its interest any more")
    set_run(remove, run_remove)
    add_client_arguments(remove)


def _add_add(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "add",
        "register profiles and print their ids",
        details=f"Each file is one profile; - is standard input.\n{REFUSED_DETAILS}\n"
        f"{WARNED_DETAILS}\n\n{DETAILS}\n{RESUME_DETAILS}\n\n{POLICY_DETAILS}",
        examples=ADD_EXAMPLES,
    )
    add_file_arguments(parser)
    parser.add_argument("--resume", metavar="KEY", help="go on with a file that was cut off")
    parser.add_argument("files", metavar="FILE|-", nargs="+", help="the text of a profile")
    parser.add_argument("--user", metavar="NAME", help="whose it is (default: your login name)")
    parser.add_argument("--location", metavar="LAT,LON", type=location, help=LOCATION_HELP)
    parser.add_argument(
        "--near",
        action="store_true",
        help="host it near --location, even where a plan (onyx plan) would have it elsewhere",
    )
    parser.add_argument("--key", metavar="KEY", default="", help=KEY_HELP)
    _add_wait(parser, WAIT_HELP)
    add_policy_arguments(parser)
    parser.add_argument("--strict", action="store_true", help=STRICT_HELP)
    set_run(parser, run_add)
    add_client_arguments(parser)


def _add_update(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "update",
        "replace the text of a profile",
        details=f"When the new text is refused the old one stays in force.\n{REFUSED_DETAILS}\n"
        f"{WARNED_DETAILS}\n\nA FILE alone changes many profiles: named .jsonl, with an object a "
        "line, the id\nas profile, and the text; or any with --lines, with an id and a text a "
        "line. To do it\nagain changes nothing.",
        examples="  onyx profile update p1 storms.xq --wait\n  onyx profile update new.jsonl\n"
        "  onyx profile update new.txt --lines",
    )
    parser.add_argument("profile", metavar="ID|FILE")
    parser.add_argument("file", metavar="FILE|-", nargs="?", help="the new text")
    add_file_arguments(parser)
    _add_wait(parser, WAIT_HELP)
    parser.add_argument("--strict", action="store_true", help=STRICT_HELP)
    set_run(parser, run_update)
    add_client_arguments(parser)


def _add_wait(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("--wait", action="store_true", help=help_text)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=not_negative,
        help="with --wait: wait no longer (60; of a file of many however long it takes), name the "
        "brokers that are missing, exit code 69",
    )


def _patience(arguments: argparse.Namespace) -> float:
    """With a change of one profile."""
    return LIVE_SECONDS if arguments.timeout is None else float(arguments.timeout)


def run_add(arguments: argparse.Namespace) -> int:
    many = the_file(arguments, arguments.files)
    policy = policy_said(arguments)
    if many is not None:
        if policy != USUAL:
            raise UsageError("how profiles are kept is said of each file, not of one of many")
        if arguments.key:
            raise UsageError("--key is for one profile; of a file of many --resume is the key")
        whose = login_name() if arguments.user is None else arguments.user
        return add_many(arguments, many, whose)
    if arguments.resume:
        raise UsageError("--resume is for a file of many profiles (--lines or .jsonl)")
    if arguments.key and len(arguments.files) > 1:
        raise UsageError("--key is for one profile")
    check_once(arguments.files)
    texts = [(name, read_text(name)) for name in arguments.files]
    user = login_name() if arguments.user is None else arguments.user

    async def add() -> int:
        refused = warned = late = 0
        async with User(registration_address(arguments), user) as client:
            for name, text in texts:
                try:
                    profile = await client.add_profile(
                        text,
                        location=arguments.location,
                        near=arguments.near,
                        wait=arguments.wait,
                        timeout_seconds=_patience(arguments),
                        key=arguments.key,
                        policy=policy,
                    )
                except ProfileNotAccepted as refusal:
                    refused += 1
                    _report_refusal(name, refusal, arguments.json)
                else:
                    late += bool(profile.missing)
                    warned += bool(profile.warnings)
                    _report_profile(name, profile, arguments.json)
        refused += warned if arguments.strict else 0
        return EXIT_DATA if refused else EXIT_UNAVAILABLE if late else EXIT_OK

    return trio.run(add)


def run_update(arguments: argparse.Namespace) -> int:
    if arguments.file is None:
        many = the_file(arguments, [arguments.profile])
        if many is None:
            raise UsageError(
                "expected the id of a profile and a FILE, or one FILE of many: named .jsonl, or "
                "with --lines, an id and a text a line"
            )
        return update_many(arguments, many)
    if arguments.lines or arguments.skip_bad:
        raise UsageError("--lines and --skip-bad are for one FILE of many profiles, without an id")
    text = read_text(arguments.file)

    async def update() -> int:
        async with User(registration_address(arguments)) as client:
            try:
                profile = await client.update_profile(
                    arguments.profile,
                    text,
                    wait=arguments.wait,
                    timeout_seconds=_patience(arguments),
                )
            except ProfileNotAccepted as refusal:
                _report_refusal(arguments.file, refusal, arguments.json)
                return EXIT_DATA
        _report_profile(arguments.file, profile, arguments.json)
        if profile.warnings and arguments.strict:
            return EXIT_DATA
        return EXIT_UNAVAILABLE if profile.missing else EXIT_OK

    return trio.run(update)


def run_show(arguments: argparse.Namespace) -> int:
    async def show(registration: RegistrationClient) -> ProfileInfo:
        return await registration.profile(arguments.profile)

    profile = _ask(arguments, show)
    if arguments.json:
        print_json(_values(profile))
        return EXIT_OK
    said = _sentence(profile)
    if profile.policy != USUAL:
        said += f"; {sentence(profile.policy)}"
    print(f"# {said}" if is_graph_query(profile.text or "") else f"(: {said} :)")
    print(profile.text)
    return EXIT_OK


def run_list(arguments: argparse.Namespace) -> int:
    async def profiles(registration: RegistrationClient) -> list[ProfileInfo]:
        return await registration.profiles(arguments.user)

    found = _ask(arguments, profiles)
    if arguments.json:
        for profile in found:
            print_json({key: value for key, value in _values(profile).items() if key != "text"})
    elif not found:
        print("no profiles", file=sys.stderr)
    else:
        heading = ("ID", "USER", "HOST BROKER", "ADDRESS", "VERSION", "LIVE")
        rows = [
            (p.id, p.user or "-", p.host, p.address, p.version, "yes" if p.live else "not yet")
            for p in found
        ]
        print(table(heading, rows))
    return EXIT_OK


def run_export(arguments: argparse.Namespace) -> int:
    async def profiles(registration: RegistrationClient) -> list[ProfileInfo]:
        return await registration.profiles(texts=True)

    for info in _ask(arguments, profiles):
        print_json(
            {
                "profile": info.id,
                "user": info.user,
                "host": info.host,
                "near": info.near,
                "text": info.text,
            }
        )
    return EXIT_OK


def run_remove(arguments: argparse.Namespace) -> int:
    many = the_file(arguments, arguments.profiles)
    if many is not None:
        return remove_many(arguments, many)

    async def remove() -> int:
        late = 0
        async with User(registration_address(arguments)) as client:
            for profile in arguments.profiles:
                missing = await client.remove_profile(
                    profile, wait=arguments.wait, timeout_seconds=_patience(arguments)
                )
                late += bool(missing)
                if arguments.json:
                    print_json({"id": profile, "removed": True, "missing": missing})
                else:
                    print(f"{profile} removed")
                    if missing:
                        print(f"onyx: {', '.join(missing)} may still ask for it", file=sys.stderr)
        return EXIT_UNAVAILABLE if late else EXIT_OK

    return trio.run(remove)


def _ask(
    arguments: argparse.Namespace, question: Callable[[RegistrationClient], Awaitable[_T]]
) -> _T:
    async def ask() -> _T:
        async with RegistrationClient(registration_address(arguments)) as registration:
            return await question(registration)

    return trio.run(ask)


def _report_profile(name: str, profile: ProfileInfo, as_json: bool) -> None:
    """The id alone on standard output, so that a script can take it."""
    if as_json:
        print_json({"file": name, **_values(profile)})
    else:
        print(profile.id, flush=True)
        print(f"onyx: {_sentence(profile)}", file=sys.stderr)
        for warning in profile.warnings:
            print(f"onyx: {name}: warning: {warning}", file=sys.stderr)


def _values(profile: ProfileInfo) -> dict[str, object]:
    return {**asdict(profile), "policy": profile.policy._asdict()}


def _report_refusal(name: str, refusal: ProfileNotAccepted, as_json: bool) -> None:
    if as_json:
        place = {"line": refusal.line, "column": refusal.column, "expected": refusal.expected}
        facts = {"file": name, "code": refusal.code, "refusal": refusal.refusal, **place}
        print_json({**facts, "reason": refusal.reason})
    print(f"onyx: {name}: {refusal}", file=sys.stderr)


def _sentence(profile: ProfileInfo) -> str:
    whose = f" of {profile.user}" if profile.user else ""
    state = "live" if profile.live else "not live yet"
    if profile.missing:
        state += f": {', '.join(profile.missing)} not reached"
    return (
        f"profile {profile.id}{whose}, version {profile.version}, "
        f"hosted by {profile.host} at {profile.address}, {state}"
    )
