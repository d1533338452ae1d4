"""``onyx profile policy``, and the same options of ``onyx profile add``: how what waits is kept."""

from __future__ import annotations

import argparse
from typing import Any

import trio

from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import positive, print_json
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.clients import User
from onyx.errors import EXIT_OK, UsageError
from overlay.delivery_policy import USUAL, WHEN_FULL, DeliveryPolicy, policy_of

POLICY_DETAILS = """\
What a user does not take waits for them at the profile's host broker. Of what is too much
the oldest goes; --when-full drop-newest keeps what waits and nothing more, and disconnect
sends whoever takes the profile away first. What went is counted (onyx dead list).

Who takes a profile with --share may reject a delivery (onyx subscribe --exec): it is given
out again after --retry seconds, --attempts times in all; then it is a dead letter, which
onyx dead replay delivers again."""

EXAMPLES = """\
  onyx profile policy p1
  onyx profile policy p1 --ttl 60                      nothing that is older than a minute
  onyx profile policy p1 --max-deliveries 1000 --when-full drop-newest
  onyx profile policy p1 --attempts 3 --retry 30
  onyx profile policy p1 --usual
"""

_OPTIONS = {
    "when_full": "when_full",
    "max_bytes": "bytes_max",
    "max_deliveries": "deliveries_max",
    "ttl": "ttl_s",
    "attempts": "attempts_max",
    "retry": "retry_s",
}


def add_policy(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "policy",
        "show or change how what waits for a profile is kept",
        details=f"{POLICY_DETAILS}\n\nWhat is not named stays; without options it is shown.",
        examples=EXAMPLES,
    )
    parser.add_argument("profile", metavar="ID")
    add_policy_arguments(parser)
    parser.add_argument("--usual", action="store_true", help="as if nothing had been said")
    set_run(parser, run)
    add_client_arguments(parser)


def add_policy_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how what waits is kept")
    group.add_argument("--when-full", choices=WHEN_FULL, help="what happens to what is too much")
    group.add_argument("--max-bytes", metavar="N", type=_number, help="that wait; 0: the network's")
    group.add_argument("--max-deliveries", metavar="N", type=_number, help="that wait; 0: any")
    group.add_argument(
        "--ttl", metavar="SECONDS", type=_number, help="that a delivery waits; 0: as long as it may"
    )
    group.add_argument("--attempts", metavar="N", type=positive, help="of what is rejected (5)")
    group.add_argument("--retry", metavar="SECONDS", type=_number, help="until the next one (10)")


def policy_said(arguments: argparse.Namespace, base: DeliveryPolicy = USUAL) -> DeliveryPolicy:
    """What the options say, the rest as in ``base``; UsageError."""
    said: dict[str, Any] = {
        field: getattr(arguments, option)
        for option, field in _OPTIONS.items()
        if getattr(arguments, option) is not None
    }
    try:
        return policy_of({**base._asdict(), **said})
    except ValueError as error:
        raise UsageError(f"no policy: {error}") from None


def run(arguments: argparse.Namespace) -> int:
    async def change() -> DeliveryPolicy:
        async with User(registration_address(arguments)) as client:
            base = await client.policy(arguments.profile)
            wanted = policy_said(arguments, USUAL if arguments.usual else base)
            if wanted != base:
                await client.set_policy(arguments.profile, wanted)
            return wanted

    policy = trio.run(change)
    if arguments.json:
        print_json({"profile": arguments.profile, "policy": policy._asdict()})
    else:
        print(sentence(policy))
    return EXIT_OK


def sentence(policy: DeliveryPolicy) -> str:
    """For people."""
    bounds = []
    if policy.bytes_max:
        bounds.append(f"at most {policy.bytes_max:,} bytes wait")
    if policy.deliveries_max:
        bounds.append(f"at most {policy.deliveries_max:,} deliveries wait")
    if policy.ttl_s:
        bounds.append(f"none longer than {policy.ttl_s:,} s")
    waiting = ", ".join(bounds) or "as much waits as the network allows"
    times = "once" if policy.attempts_max == 1 else f"{policy.attempts_max} times"
    return (
        f"{waiting}; when that is full: {policy.when_full}; what is rejected is given out {times} "
        f"in all, every {policy.retry_s:,} s"
    )


def _number(text: str) -> int:
    """A whole number of at least 0, for argparse."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f'"{text}" is no whole number of at least 0')
    return int(text)
