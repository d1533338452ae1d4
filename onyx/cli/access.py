"""``onyx access list | grant | revoke``: who may do what."""

from __future__ import annotations

from functools import partial

from onyx.cli.asking import Told, add_commands
from onyx.cli.verb import Subparsers, add_noun
from overlay import verbs
from overlay.answers import RuleChanged

DETAILS = """\
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
all sources and has profiles, and sources publish as what they registered."""

EXAMPLES = """\
  onyx access list
  onyx access grant user/ann subscribe s1-w7d4bz3h
  onyx access grant user/bob operate
  onyx access revoke user/bob operate
"""


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "access", details=DETAILS, examples=EXAMPLES)
    add_commands(
        subverbs,
        "access",
        details=DETAILS,
        examples=EXAMPLES,
        told={
            verbs.AccessGrant: Told(partial(_done, "granted")),
            verbs.AccessRevoke: Told(partial(_done, "revoked")),
        },
    )


def _done(done: str, rule: RuleChanged) -> str:
    said = done if rule.changed else "nothing to do"
    return f"{rule.principal} {rule.role} {rule.scope}: {said}"
