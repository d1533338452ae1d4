"""``onyx cert``: who may connect to a network, and who may not any more."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from onyx.cli.network_option import (
    add_data_options,
    add_network_choice,
    data_directory_of,
    registration_address,
)
from onyx.cli.values import check_known, print_json, table, tell_of
from onyx.cli.verb import JSON, Subparsers, add_arguments, add_noun, add_verb
from onyx.data_directory import write_atomically
from onyx.errors import NotAuthenticated, UsageError
from overlay.link.credentials import Credentials, CredentialsError
from overlay.link.principal import Principal
from overlay.link.validity import AUTHORITY, TOLD_DAYS

if TYPE_CHECKING:
    from onyx.identity.authority import Authority, Issued

LISTED = ("good", "ends soon")
DETAILS = """\
The authority of a network is in its data directory, on the machine where onyx up (or
onyx up --registration) made it; these verbs work there, whether the network runs or not.
Only onyx cert renew is for any machine: it asks the network.

The end of a certificate is told from 30 days before it on: here, by onyx status and onyx
doctor, in metrics, and in the log of the process whose certificate it is. Processes of the
network, gateways and providers renew their own certificate before that, wherever they run.
A new file in place of the old one is taken while the process runs.

A PRINCIPAL is user/NAME, source/ID, provider/NAME, operator/NAME, broker/ID or
registration/ID. Whoever has its file says --credentials FILE, or sets ONYX_CREDENTIALS."""

EXAMPLES = """\
  onyx cert issue user/ann --out ann.pem       of ONYX_REGISTRATION, or the context in use
  onyx cert issue user/ann --out ann.pem --data ~/.local/state/onyx/figure4
  onyx cert issue broker/B4 --out B4.pem --topology figure4.toml     for another machine
  onyx cert list --data ~/.local/state/onyx/figure4
  onyx cert revoke 3f2a --data ~/.local/state/onyx/figure4     whose number begins so
  onyx cert revoke user/ann --data ~/.local/state/onyx/figure4
  onyx cert renew ann.pem --registration onyx.example:7200     while it is good
  onyx cert rotate --data ~/.local/state/onyx/figure4
  onyx cert authority prepare --data ~/.local/state/onyx/figure4     then replace, then forget
"""


REVOKE = """\
The registration service reads which (identity/revoked) and tells every broker:
within about three seconds all close their connections. What is in the data directory is
issued anew, for the processes and the operator."""
RENEW = """\
The network signs a new key for the principal of the file, whose certificate is shown, once
half of its life is over; the new one lasts as long. The old one stays good until it is
over, or revoked: to take back what somebody else may have renewed, revoke the principal.
It takes a registration service beside the authority."""
ROTATE = """\
New keys and certificates for the processes and the operator, which they take
while they run, for new connections. The ones of before stay good until they are
over, or revoked. onyx up does it by itself 31 days before the end."""


AUTHORITY_STEPS = """\
An authority lasts ten years. It is replaced while the network runs, in three steps:

  prepare   the next one is made; who gets credentials from now on trusts both
  replace   the next one signs from now on
  forget    the former one is trusted no more

Each step issues anew what is in the data directory, which processes there take at once. Before
the next step issue anew (onyx cert issue) and put in place what is elsewhere: files of
processes on other machines, of users, and those of tokens, which name the authority, too."""


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "cert", details=DETAILS, examples=EXAMPLES)
    issue = {
        "principal PRINCIPAL": "as user/ann",
        "--out FILE!": "to be written",
        "--days N = 90": "how long it lasts (default: 90)",
    }
    revoke = {"which NUMBER|PRINCIPAL...": "the beginning of a serial number, or a principal"}
    said = "issue credentials, one file: key, certificate and the authority's"
    details = "The file is for its owner alone: whoever has it is the principal."
    listed, only = {"--all": "also those that are over or revoked"}, "only these"
    for verb in (
        add_verb(subverbs, "issue", said, run_issue, issue, details=details),
        add_verb(
            subverbs,
            "list",
            "list the certificates that were issued, and their days left",
            run_list,
            listed,
        ),
        add_verb(subverbs, "revoke", "take certificates back", run_revoke, revoke, details=REVOKE),
        add_verb(
            *(subverbs, "authority", "replace the authority while all runs", run_authority),
            {"step STEP": "prepare, replace or forget"},
            details=AUTHORITY_STEPS,
        ),
        add_verb(
            *(subverbs, "rotate", "issue what is in the data directory anew", run_rotate),
            {"principal PRINCIPAL*": only},
            details=ROTATE,
        ),
    ):
        add_arguments(verb, JSON)
        add_data_options(verb)
    renew = add_verb(
        *(subverbs, "renew", "get a new certificate before one's own is over", run_renew),
        {"file FILE": "credentials, which are replaced"},
        details=RENEW,
    )
    add_arguments(renew, JSON)
    add_network_choice(renew)


def run_issue(arguments: argparse.Namespace) -> None:
    authority = _authority(arguments)
    principal = _principal(arguments.principal)
    write_atomically(arguments.out, authority.issue(principal, arguments.days), mode=0o600)
    said = {"file": str(arguments.out), "principal": str(principal), "days": arguments.days}
    text = f"{arguments.out}: {principal.uri(authority.network)}, for {arguments.days} days"
    tell_of(arguments, said, text)


async def run_renew(arguments: argparse.Namespace) -> None:
    # It takes long to load.
    from onyx.renewal import renew  # noqa: PLC0415

    try:
        credentials = Credentials(arguments.file)
        new = await renew(credentials, registration_address(arguments))
    except CredentialsError as error:
        raise NotAuthenticated(str(error)) from None
    until = datetime.fromtimestamp(new.until, UTC)
    said = {"file": str(arguments.file), "principal": str(credentials.principal)}
    text = f"{arguments.file}: {new.uri}, until {until:%Y-%m-%d}"
    tell_of(arguments, said | {"until": until.isoformat()}, text)


def run_list(arguments: argparse.Namespace) -> None:
    authority = _authority(arguments)
    found = [one for one in authority.issued() if arguments.all or _state(one) in LISTED]
    for one in found if arguments.json else ():
        print_json(
            {
                "serial": f"{one.serial:x}",
                "principal": str(one.principal),
                "until": one.until.isoformat(),
                "days": math.floor(one.days_left()),
                "state": _state(one),
            }
        )
    if not arguments.json:
        rows = [
            (
                f"{o.serial:x}",
                o.principal,
                f"{o.until:%Y-%m-%d}",
                math.floor(o.days_left()),
                _state(o),
            )
            for o in found
        ]
        print(table(("NUMBER", "PRINCIPAL", "UNTIL", "DAYS LEFT", "STATE"), rows))
        print(f"\n{AUTHORITY} ends on {authority.until:%Y-%m-%d}")


def run_revoke(arguments: argparse.Namespace) -> None:
    authority = _authority(arguments)
    issued = authority.issued()
    found: set[int] = set()
    for which in arguments.which:
        if "/" in which:
            principal = _principal(which)
            some = {one.serial for one in issued if one.principal == principal}
        else:
            some = {one.serial for one in issued if f"{one.serial:x}".startswith(which.lower())}
            if len(some) > 1:
                raise UsageError(f"{len(some)} numbers begin with {which}; give more of it")
        if not some:
            raise UsageError(f"no certificate {which} was issued; onyx cert list --all has them")
        found |= some
    authority.revoke(found)
    revoked = [f"{serial:x}" for serial in sorted(found)]
    tell_of(arguments, {"revoked": revoked}, f"revoked: {len(found)}")
    for principal in authority.kept():
        authority.keep(principal)  # who goes on needs another one


def run_authority(arguments: argparse.Namespace) -> None:
    authority = _authority(arguments)
    steps = {
        "prepare": authority.prepare,
        "replace": authority.replace,
        "forget": authority.forget,
    }
    steps[check_known(arguments.step, steps, what="step")]()
    _issue_anew(arguments, authority, authority.kept())


def run_rotate(arguments: argparse.Namespace) -> None:
    authority = _authority(arguments)
    kept = authority.kept()
    chosen = [_principal(text) for text in arguments.principal] or kept
    for principal in chosen:
        if principal not in kept:
            raise UsageError(f"{principal} has no credentials in {authority.directory}")
    _issue_anew(arguments, authority, chosen)


def _issue_anew(
    arguments: argparse.Namespace, authority: Authority, chosen: Sequence[Principal]
) -> None:
    for principal in chosen:
        kept_in = authority.keep(principal, anew=True)
        said = {"file": str(kept_in), "principal": str(principal)}
        tell_of(arguments, said, f"{kept_in}: {principal}")


def _authority(arguments: argparse.Namespace) -> Authority:
    # It takes long to load, and every verb loads this module.
    from onyx.identity.authority import Authority  # noqa: PLC0415

    return Authority(data_directory_of(arguments).identity)


def _principal(text: str) -> Principal:
    try:
        return Principal.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _state(one: Issued) -> str:
    if one.revoked:
        return "revoked"
    if one.days_left() <= 0:
        return "over"
    return "ends soon" if one.days_left() < TOLD_DAYS else "good"
