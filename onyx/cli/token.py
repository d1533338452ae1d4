"""``onyx token issue | oidc | list | revoke``: for clients without a certificate of their own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from secrets import token_urlsafe

from onyx.cli.asking import Told, add_commands, ask, moment
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import print_json
from onyx.cli.verb import Subparsers, add_noun, add_verb
from onyx.data_directory import write_atomically
from onyx.errors import UsageError
from onyx.identity.known_networks import credentials_for
from onyx.registration_client import addresses_of
from overlay import verbs
from overlay.access import ANYTHING, ROLES, Token
from overlay.answers import TokenRevoked
from overlay.link.credentials import Credentials
from overlay.link.principal import Principal

SECRET_BYTES = 32
DAYS = 30.0
DAY_SECONDS = 86_400

DETAILS = f"""\
A token is a secret in a file, by which a client is a user or a source without a
certificate: --credentials FILE, or ONYX_CREDENTIALS. It ends after --days, it can be bound
to some roles (--only), and it can be revoked; then connections that have it are closed.
The network keeps a digest of the secret alone: what is in FILE nobody can print again.

Where the topology has [oidc], users may show a token of its issuer: onyx token oidc writes
a file that says where that token is. It is read again when it changes, and is nobody's
secret of this network.
{NETWORK_HELP}"""

EXAMPLES = """\
  onyx token issue user/ann --out ann.token
  onyx token issue source/wire --days 7 --only publish:s1-w7d4bz3h --out wire.token
  onyx token oidc user/ann --jwt ann.jwt --out ann.token
  onyx token list
  onyx token revoke t-3f0a5c1e9b7d
"""

ONLY_HELP = f"bind it to a role, one of {', '.join(ROLES)}; about SCOPE alone, or anything"


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "token", details=DETAILS, examples=EXAMPLES)
    issue = add_verb(
        subverbs, "issue", "write a new one", details=DETAILS, examples=EXAMPLES, run=run_issue
    )
    issue.add_argument("principal", metavar="PRINCIPAL", type=_principal, help="as user/ann")
    issue.add_argument("--out", metavar="FILE", type=Path, required=True, help="where it goes")
    issue.add_argument("--days", metavar="N", type=float, default=DAYS, help="(default 30)")
    issue.add_argument(
        "--only", metavar="ROLE[:SCOPE]", type=_role_and_scope, action="append", default=[],
        help=ONLY_HELP,
    )  # fmt: skip
    oidc = add_verb(
        subverbs,
        "oidc",
        "write a file that shows an OpenID Connect token",
        details=DETAILS,
        run=run_oidc,
    )
    oidc.add_argument("principal", metavar="PRINCIPAL", type=_principal, help="as user/ann")
    oidc.add_argument(
        "--jwt", metavar="FILE", type=Path, required=True, help="where the token is, then and later"
    )
    oidc.add_argument("--out", metavar="FILE", type=Path, required=True, help="where it goes")
    for parser in (issue, oidc):
        add_client_arguments(parser)
    add_commands(subverbs, "token", details=DETAILS, told={verbs.TokenRevoke: Told(_revoked)})


def _revoked(answer: TokenRevoked) -> str:
    return f"{answer.token} is revoked"


def run_issue(arguments: argparse.Namespace) -> None:
    credentials = _own(arguments)
    secret = token_urlsafe(SECRET_BYTES)
    asked = verbs.TokenIssue(
        principal=str(arguments.principal),
        digest=Token.digest_of(secret),
        seconds=arguments.days * DAY_SECONDS,
        only=arguments.only,
    )
    answer = ask(arguments, asked)
    _write(arguments, credentials, f"token {secret}")
    if arguments.json:
        print_json(
            {**answer.shown(), "principal": str(arguments.principal), "file": str(arguments.out)}
        )
    else:
        print(answer.token)
        ends = moment(answer.expires)
        print(f"onyx: {arguments.out} is {arguments.principal} until {ends}", file=sys.stderr)


def run_oidc(arguments: argparse.Namespace) -> None:
    _write(arguments, _own(arguments), f"token-file {arguments.jwt.absolute()}")
    if arguments.json:
        print_json({"principal": str(arguments.principal), "file": str(arguments.out)})
    else:
        print(f"{arguments.out}: {arguments.principal}, as long as {arguments.jwt} says so")


def _own(arguments: argparse.Namespace) -> Credentials:
    """Those of whoever says so, by which others know the network."""
    credentials = credentials_for(*addresses_of(registration_address(arguments))[0])
    if credentials is None:
        raise UsageError("this network runs --insecure: it asks nobody who they are")
    return credentials


def _write(arguments: argparse.Namespace, credentials: Credentials, shown: str) -> None:
    uri = arguments.principal.uri(credentials.network)
    text = f"{uri}\n{shown}\n{credentials.authorities}"
    write_atomically(arguments.out, text.encode(), mode=0o600)


def _principal(text: str) -> Principal:
    try:
        return Principal.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _role_and_scope(text: str) -> tuple[str, str]:
    role, _, scope = text.partition(":")
    if role not in ROLES:
        raise argparse.ArgumentTypeError(f"{role!r} is no role; expected one of {', '.join(ROLES)}")
    return role, scope or ANYTHING
