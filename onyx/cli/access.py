"""``onyx access list | grant | revoke``: who may do what."""

from __future__ import annotations

import argparse

import trio

from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import print_json, table
from onyx.cli.verb import Subparsers, add_subverbs, add_verb, set_run
from onyx.errors import EXIT_OK
from onyx.registration_client import RegistrationClient, Result
from overlay import verbs
from overlay.access import ANYTHING, ROLES

DETAILS = f"""\
A rule says that a principal has a role, about something. PRINCIPAL is user/NAME,
source/NAME, operator/NAME, all of a kind (user/*) or anybody (*). ROLE is

  publish       be a source, whose id is SCOPE
  subscribe     see the messages of the source SCOPE
  read-archive  read what is kept of the messages of the source SCOPE (onyx archive)
  own           change, remove and take the profile SCOPE
  operate       all of these, of everybody, and what concerns the network itself
  admin         all of these, and to say who may do what

SCOPE is * (anything) unless said. own, publish and read-archive take "own" as well: what
belongs to the principal, that is, what they added or registered. What the topology file
says under [access] is in force beside what is granted here; without it every user sees
all sources and has profiles, and sources publish as what they registered.
{NETWORK_HELP}"""

EXAMPLES = """\
  onyx access list
  onyx access grant user/ann subscribe s1-w7d4bz3h
  onyx access grant user/bob operate
  onyx access revoke user/bob operate
"""


def add_parser(subparsers: Subparsers) -> None:
    verb = add_verb(subparsers, "access", "say who may do what", details=DETAILS, examples=EXAMPLES)
    verbs = add_subverbs(verb)
    listing = add_verb(verbs, "list", "list the rules", details=DETAILS, examples=EXAMPLES)
    set_run(listing, run_list)
    add_client_arguments(listing)
    for name, summary in (("grant", "add a rule"), ("revoke", "take back a rule")):
        parser = add_verb(verbs, name, summary, details=DETAILS, examples=EXAMPLES)
        parser.add_argument("principal", metavar="PRINCIPAL")
        parser.add_argument("role", metavar="ROLE", choices=tuple(ROLES))
        parser.add_argument("scope", metavar="SCOPE", nargs="?", default=ANYTHING)
        set_run(parser, run_change)
        parser.set_defaults(change=name)
        add_client_arguments(parser)


def run_list(arguments: argparse.Namespace) -> int:
    rules = trio.run(ask, arguments, verbs.AccessList())["rules"]
    if arguments.json:
        for principal, role, scope, is_fixed in rules:
            known = {"principal": principal, "role": role, "scope": scope}
            print_json({**known, "from_topology": is_fixed})
    else:
        rows = [(*rule, "the topology" if is_fixed else "a grant") for *rule, is_fixed in rules]
        print(table(("PRINCIPAL", "ROLE", "SCOPE", "BY"), rows))
    return EXIT_OK


def run_change(arguments: argparse.Namespace) -> int:
    rule = {name: getattr(arguments, name) for name in ("principal", "role", "scope")}
    kind = verbs.AccessGrant if arguments.change == "grant" else verbs.AccessRevoke
    answer = trio.run(ask, arguments, kind(**rule))
    if arguments.json:
        print_json({**rule, **answer})
    else:
        done = "granted" if arguments.change == "grant" else "revoked"
        what = " ".join(rule.values())
        print(f"{what}: {done}" if answer["changed"] else f"{what}: nothing to do")
    return EXIT_OK


async def ask(arguments: argparse.Namespace, asked: verbs.Asked) -> Result:
    """The answer of the registration service."""
    async with RegistrationClient(registration_address(arguments)) as registration:
        return await registration.ask(asked)
