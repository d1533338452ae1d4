"""``onyx profile why-not``: why a registered profile does not match a message."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

import trio

from formats.errors import DecodeError, MessageRefused
from formats.media_types import media_type_of
from formats.publication import read_publication
from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import add_base_argument, add_media_type_argument, print_json, read_input
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.errors import EXIT_DATA, EXIT_OK
from onyx.registration_client import RegistrationClient
from yfilter import Matcher, MatchLimitExceeded

EXAMPLES = """\
  onyx profile why-not p1 report.xml
  cat report.xml | onyx profile why-not p1 - --json
"""


def add_why_not(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "why-not",
        "say why a profile does not match a message",
        details="Names the first part that does not hold: without it, and what comes after it,\n"
        "the profile would match.",
        examples=EXAMPLES,
    )
    parser.add_argument("profile", metavar="ID", help="the profile")
    parser.add_argument("message", metavar="MESSAGE|-", help="the file of the message")
    add_media_type_argument(parser)
    add_base_argument(parser)
    set_run(parser, run_why_not)
    add_client_arguments(parser)


def run_why_not(arguments: argparse.Namespace) -> int:
    data = read_input(arguments.message)
    media_type = arguments.media_type or media_type_of(arguments.message)
    text = trio.run(_text, arguments)
    try:
        explanation = Matcher().explain(
            text, read_publication(data, media_type, base=arguments.base)
        )
    except (MessageRefused, DecodeError, MatchLimitExceeded) as refusal:
        print(f"onyx: {arguments.message}: {refusal}", file=sys.stderr)
        return EXIT_DATA
    failure = explanation.failure
    if arguments.json:
        failed = None if failure is None else asdict(failure)
        print_json({"profile": arguments.profile, "matched": not failed, "failure": failed})
    elif failure is None:
        print(f"{arguments.profile} matches it")
    else:
        print(f"{arguments.profile} does not match it: {failure.text} does not hold")
        print(f"  nothing is  {failure.statement}")
        if failure.before and failure.before != failure.statement:
            print(f"  there is    {failure.before}  {', '.join(failure.positions)}".rstrip())
        if failure.hint:
            print(f"  hint        {failure.hint}")
    return EXIT_OK


async def _text(arguments: argparse.Namespace) -> str:
    async with RegistrationClient(registration_address(arguments)) as registration:
        return (await registration.profile(arguments.profile)).text or ""
