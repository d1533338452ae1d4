"""``onyx plan apply | auto | pause | resume | abort``: profiles move to where a plan has them."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict

import trio

from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.plan_files import load_plan, read_plan_text
from onyx.cli.values import not_negative, positive, print_json, table
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.client_values import AutoPlan, PlanProgress
from onyx.errors import EXIT_BUSY, EXIT_DATA, EXIT_OK, RequestFailed, UserError
from onyx.registration_client import RegistrationClient
from registration.planning.drift import Drift

LOOK_SECONDS = 0.5

APPLY_DETAILS = f"""\
Puts PLAN in force (without PLAN: takes the one that is) and moves the profiles that are
elsewhere to the brokers that it names, while messages flow: nobody misses a result or
gets one twice, and subscribers follow by themselves. Profiles that insist on a broker
near their user stay.

The registration service does it, --rate moves a second and --at-once at a time. This
command only watches: when it is interrupted, or the service or a broker is restarted,
the moves go on where they were. Asked again it watches again; a new --rate or --at-once
is in force at once. At the end it says what has come of it; the exit code is 75 when
profiles had to stay where they are.
{NETWORK_HELP}"""

AUTO_DETAILS = f"""\
By itself it does so wherever Spark is installed and a network has several brokers and
enough profiles ([planning] of its file), unless somebody has put a plan in force, or out
of force, with onyx plan use: then it leaves that alone until it is asked by this command.
onyx plan status says what it does, and why.
{NETWORK_HELP}"""

APPLY_EXAMPLES = """\
  onyx plan apply plan --dry-run --topology network.toml
  onyx plan apply plan --rate 20 --topology network.toml
  onyx plan apply --detach --topology network.toml
"""


def add_apply_verbs(verbs: Subparsers) -> None:
    apply = add_verb(
        verbs,
        "apply",
        "move profiles to where a plan has them, live",
        details=APPLY_DETAILS,
        examples=APPLY_EXAMPLES,
    )
    apply.add_argument(
        "plan",
        metavar="PLAN",
        nargs="?",
        help="as onyx plan make has written it; default: in force",
    )
    apply.add_argument("--dry-run", action="store_true", help="only say what would move")
    apply.add_argument(
        "--rate", metavar="N", type=not_negative, help="moves that begin in a second (default: 50)"
    )
    apply.add_argument(
        "--at-once", metavar="N", type=positive, help="moves that are under way (default: 16)"
    )
    apply.add_argument("--detach", action="store_true", help="do not wait until all have moved")
    add_client_arguments(apply)
    set_run(apply, run_apply)
    auto = add_verb(
        verbs,
        "auto",
        "have the registration service plan by itself, or not",
        details=AUTO_DETAILS,
        examples="  onyx plan auto --topology network.toml\n  onyx plan auto --off",
    )
    auto.add_argument("--off", action="store_true", help="make no plans until it is asked again")
    add_client_arguments(auto)
    set_run(auto, run_auto)
    for name, summary, run in (
        ("pause", "begin no more moves for now", run_pause),
        ("resume", "go on with a plan that was paused", run_resume),
        ("abort", "begin no more moves, and leave profiles where they are", run_abort),
    ):
        verb = add_verb(verbs, name, summary, examples=f"  onyx plan {name}")
        add_client_arguments(verb)
        set_run(verb, run)


def said(progress: PlanProgress) -> str:
    """How far it is, in a line."""
    parts = [f"{progress.moved:,} moved", f"{progress.under_way:,} under way"]
    if progress.state == "running":
        parts.append(f"{progress.looked_at:,} of {progress.profiles:,} profiles looked at")
    parts += [f"{count:,} wait: {reason}" for reason, count in sorted(progress.put_off.items())]
    return f"{progress.state}, {', '.join(parts)}"


# --- apply ------------------------------------------------------------------------------------


def run_apply(arguments: argparse.Namespace) -> int:
    text = b""
    if arguments.plan is not None:
        text = read_plan_text(arguments.plan)
        load_plan(arguments.plan)  # what is wrong with it is better said here
    try:
        if arguments.dry_run:
            return _print_drift(trio.run(_count, arguments, text), as_json=arguments.json)
        return _print_outcome(trio.run(_apply, arguments, text), arguments)
    except* RequestFailed as group:
        raise UserError(str(group.exceptions[0]), EXIT_DATA) from None


async def _count(arguments: argparse.Namespace, text: bytes) -> Drift:
    async with RegistrationClient(registration_address(arguments)) as registration:
        return await registration.census(text)


async def _apply(arguments: argparse.Namespace, text: bytes) -> PlanProgress:
    """Begin, and watch until it is over, or until the watcher has had enough."""
    async with RegistrationClient(registration_address(arguments)) as registration:
        if text:
            await registration.use_plan(text)
        progress = await registration.apply_plan(rate=arguments.rate, at_once=arguments.at_once)
        if arguments.detach:
            return progress
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            before = ""
            while not progress.is_over:
                if said(progress) != before:
                    before = said(progress)
                    print(f"plan: {before}", file=sys.stderr)
                with trio.move_on_after(LOOK_SECONDS):
                    await anext(signals)
                    return await registration.plan_progress()
                progress = await registration.plan_progress()
        return progress


def run_auto(arguments: argparse.Namespace) -> int:
    async def turn() -> AutoPlan:
        async with RegistrationClient(registration_address(arguments)) as registration:
            return await registration.auto_plan(on=not arguments.off)

    auto = trio.run(turn)
    if arguments.json:
        print_json(asdict(auto))
    else:
        print("\n".join(auto.says))
    return EXIT_OK


def _print_drift(drift: Drift, *, as_json: bool) -> int:
    moves = sorted(drift.moves.items())
    if as_json:
        pairs = [{"from": old, "to": new, "profiles": count} for (old, new), count in moves]
        print_json({"profiles": drift.profiles, "would_move": drift.misplaced, "moves": pairs})
        return EXIT_OK
    print(f"{drift.misplaced:,} of {drift.profiles:,} profiles would move")
    if moves:
        print(table(("FROM", "TO", "PROFILES"), [(*pair, count) for pair, count in moves]))
    return EXIT_OK


def _print_outcome(progress: PlanProgress, arguments: argparse.Namespace) -> int:
    stay = sum(progress.put_off.values())
    if arguments.json:
        print_json(asdict(progress))
    elif not progress.is_over:
        print(f"plan {progress.plan}: {said(progress)}")
        print("the registration service goes on with it; see onyx plan status")
    else:
        print(f"plan {progress.plan} is {_ENDS[progress.state]}: {progress.moved:,} profiles moved")
        brokers = sorted(progress.came.keys() | progress.left.keys())
        if brokers:
            rows = [(b, progress.came.get(b, 0), progress.left.get(b, 0)) for b in brokers]
            print(table(("BROKER", "CAME", "LEFT"), rows))
        for reason, count in sorted(progress.put_off.items()):
            print(f"{count:,} stay where they are: {reason}")
    is_good = progress.state == "done" and not stay
    return EXIT_OK if is_good or not progress.is_over else EXIT_BUSY


_ENDS = {"done": "applied", "aborted": "aborted", "never": "not applied"}


# --- pause, resume, abort ---------------------------------------------------------------------


def run_pause(arguments: argparse.Namespace) -> int:
    return _steer(arguments, RegistrationClient.pause_plan)


def run_resume(arguments: argparse.Namespace) -> int:
    return _steer(arguments, RegistrationClient.resume_plan)


def run_abort(arguments: argparse.Namespace) -> int:
    return _steer(arguments, RegistrationClient.abort_plan)


def _steer(
    arguments: argparse.Namespace, ask: Callable[[RegistrationClient], Awaitable[PlanProgress]]
) -> int:
    async def asked() -> PlanProgress:
        async with RegistrationClient(registration_address(arguments)) as registration:
            return await ask(registration)

    progress = trio.run(asked)
    if arguments.json:
        print_json(asdict(progress))
    else:
        print(said(progress))
    return EXIT_OK
