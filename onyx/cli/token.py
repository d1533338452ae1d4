"""``onyx token issue | oidc | list | revoke``: for clients without a certificate of their own."""

from __future__ import annotations

import argparse
from secrets import token_urlsafe

from onyx.cli.asking import Told, add_commands, ask, moment
from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import say, tell_of
from onyx.cli.verb import Subparsers, add_noun, add_verb
from onyx.data_directory import write_atomically
from onyx.errors import UsageError
from onyx.identity.known_networks import ASKS_NOBODY, credentials_for
from onyx.registration_client import addresses_of
from overlay import verbs
from overlay.access import ANYTHING, ROLES, Token
from overlay.link.credentials import Credentials
from overlay.link.principal import Principal

SECRET_BYTES = 32
DAYS = 30.0
DAY_SECONDS = 86_400

DETAILS = """\
A token is a secret in a file, by which a client is a user or a source without a
certificate: --credentials FILE, or ONYX_CREDENTIALS. It ends after --days, it can be bound
to some roles (--only), and it can be revoked; then connections that have it are closed.
The network keeps a digest of the secret alone: what is in FILE nobody can print again.

Where the topology has [oidc], users may show a token of its issuer: onyx token oidc writes
a file that says where that token is. It is read again when it changes, and is nobody's
secret of this network."""

EXAMPLES = """\
  onyx token issue user/ann --out ann.token
  onyx token issue source/wire --days 7 --only publish:s1-w7d4bz3h --out wire.token
  onyx token oidc user/ann --jwt ann.jwt --out ann.token
  onyx token list
  onyx token revoke t-3f0a5c1e9b7d
"""

ONLY_HELP = "bind it to a role (onyx access --help), about SCOPE alone or anything"


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "token", details=DETAILS, examples=EXAMPLES)
    principal = {"principal PRINCIPAL": "as user/ann"}
    out = {"--out FILE!": "where it goes"}
    jwt = {"--jwt FILE!": "where the token is, then and later"}
    only = {f"--days N = {DAYS:g}": "(default 30)", "--only ROLE[:SCOPE]...": ONLY_HELP}
    issue = add_verb(
        *(subverbs, "issue", "write a new one", run_issue, principal | out | only),
        details=DETAILS,
        examples=EXAMPLES,
        kinds={"principal": _principal, "days": float, "only": _role_and_scope},
    )
    summary = "write a file that shows an OpenID Connect token"
    oidc = add_verb(
        *(subverbs, "oidc", summary, run_oidc, principal | jwt | out),
        details=DETAILS,
        kinds={"principal": _principal},
    )
    for parser in (issue, oidc):
        add_client_arguments(parser)
    revoked = Told(lambda answer: f"{answer.token} is revoked")
    add_commands(subverbs, "token", details=DETAILS, told={verbs.TokenRevoke: revoked})


async def run_issue(arguments: argparse.Namespace) -> None:
    credentials = _own(arguments)
    secret = token_urlsafe(SECRET_BYTES)
    asked = verbs.TokenIssue(
        principal=str(arguments.principal),
        digest=Token.digest_of(secret),
        seconds=arguments.days * DAY_SECONDS,
        only=arguments.only,
    )
    answer = await ask(arguments, asked)
    _write(arguments, credentials, f"token {secret}")
    whose = {"principal": str(arguments.principal), "file": str(arguments.out)}
    tell_of(arguments, {**answer.shown(), **whose}, answer.token)
    if not arguments.json:
        say(f"{arguments.out} is {arguments.principal} until {moment(answer.expires)}")


def run_oidc(arguments: argparse.Namespace) -> None:
    _write(arguments, _own(arguments), f"token-file {arguments.jwt.absolute()}")
    facts = {"principal": str(arguments.principal), "file": str(arguments.out)}
    text = f"{arguments.out}: {arguments.principal}, as long as {arguments.jwt} says so"
    tell_of(arguments, facts, text)


def _own(arguments: argparse.Namespace) -> Credentials:
    """Those of whoever says so, by which others know the network."""
    credentials = credentials_for(*addresses_of(registration_address(arguments))[0])
    if credentials is None:
        raise UsageError(ASKS_NOBODY)
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
