"""``onyx profile import``: a profile for each assertion of a Schematron rule set."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import trio

from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.profile_bulk import STRICT_HELP, tell_warned
from onyx.cli.values import counted, login_name, not_negative, print_json
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.clients import User
from onyx.errors import (
    EXIT_DATA,
    EXIT_OK,
    EXIT_UNAVAILABLE,
    ProfilesNotAccepted,
    UsageError,
)
from onyx.rule_sets import ImportedRules, import_rules, read_rule_set
from yfilter.schematron import RuleSet, SchematronRefused

EXAMPLES = """\
  onyx profile import rules.sch --dry-run
  onyx profile import rules.sch --user audit
  onyx profile import rules.sch --phase codes --skip-bad --prune
"""
_NAME = re.compile(r"[\w.-]+")


def add_import(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "import",
        "register a profile for each assertion of a Schematron rule set",
        details="Whoever takes the results gets what each message fails: the assertion's id, the\n"
        "place, and the text with its values filled in, as SVRL says it. The same file again\n"
        "changes nothing; an assertion that has changed replaces its profile. What cannot be\n"
        "taken is named with its line and the reason, and then nothing is registered; exit\n"
        "code 65 (--skip-bad: leave it out).",
        examples=EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help="a Schematron schema (ISO/IEC 19757-3)")
    parser.add_argument(
        "--name", metavar="NAME", help="of the rule set (default: the file's, without .sch)"
    )
    parser.add_argument(
        "--phase", metavar="ID", help="only patterns of this phase; #ALL: of all (default: its own)"
    )
    parser.add_argument(
        "--top",
        metavar="FOLDER",
        type=Path,
        help="where the files are that it may include (default: its own folder, and below)",
    )
    parser.add_argument("--skip-bad", action="store_true", help="leave out what cannot be taken")
    parser.add_argument(
        "--prune", action="store_true", help="remove profiles of assertions that are gone"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the profiles; no network is needed"
    )
    parser.add_argument("--strict", action="store_true", help=STRICT_HELP)
    parser.add_argument("--user", metavar="NAME", help="whose they are (default: your login name)")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=not_negative,
        help="wait no longer until they are live, name the brokers that are missing, exit code 69",
    )
    set_run(parser, run_import)
    add_client_arguments(parser)


def run_import(arguments: argparse.Namespace) -> int:
    file = Path(arguments.file)
    name = file.stem if arguments.name is None else arguments.name
    if not _NAME.fullmatch(name):
        raise UsageError(f"the name is {name!r}; expected letters, digits, '.', '-' and '_'")
    try:
        rules = read_rule_set(file, arguments.phase, arguments.top)
    except SchematronRefused as refusal:
        print(f"onyx: {refusal}", file=sys.stderr)
        return EXIT_DATA
    for refused in rules.refused:
        print(f"onyx: {refused}", file=sys.stderr)
    if arguments.dry_run:
        _print_profiles(rules, as_json=arguments.json)
    print(f"onyx: {_summary(rules)}", file=sys.stderr)
    if rules.refused and not arguments.skip_bad:
        if not arguments.dry_run:
            why = "so nothing was registered (--skip-bad: leave them out)"
            print(
                f"onyx: {arguments.file}: some assertions cannot be taken, {why}", file=sys.stderr
            )
        return EXIT_DATA
    if arguments.dry_run:
        return EXIT_OK
    user_name = login_name() if arguments.user is None else arguments.user

    async def run() -> ImportedRules:
        async with User(registration_address(arguments), user_name) as user:
            return await import_rules(
                user, name, rules, prune=arguments.prune, timeout_seconds=arguments.timeout
            )

    try:
        done = trio.run(run)
    except ProfilesNotAccepted as refusal:
        print(f"onyx: {arguments.file}: {refusal}", file=sys.stderr)
        return EXIT_DATA
    _print_done(done, as_json=arguments.json, pruned=arguments.prune)
    if done.warnings and arguments.strict:
        return EXIT_DATA
    return EXIT_UNAVAILABLE if done.missing else EXIT_OK


def _summary(rules: RuleSet) -> str:
    """``312 of 319 assertions can be taken; 7 not: BR-1, BR-2, …``."""
    said = f"{len(rules.profiles)} of {counted(rules.total, 'assertion')} can be taken"
    if rules.refused:
        named = ", ".join(each.key for each in rules.refused[:8])
        more = ", …" if len(rules.refused) > 8 else ""
        said += f"; {len(rules.refused)} not: {named}{more}"
    return said


def _print_profiles(rules: RuleSet, *, as_json: bool) -> None:
    for each in rules.profiles:
        if as_json:
            print_json(
                {
                    "assertion": each.key,
                    "line": each.line,
                    "role": each.role,
                    "context": each.context,
                    "test": each.test,
                    "text": each.text,
                }
            )
        else:
            print(f"(: {each.file}, line {each.line}: {each.key} :)\n{each.text}\n")


def _print_done(done: ImportedRules, *, as_json: bool, pruned: bool) -> None:
    removed = "removed" if pruned else "gone"
    kinds = {"added": done.added, "changed": done.changed, "same": done.same, removed: done.gone}
    for kind, profiles in kinds.items():
        for key, profile in profiles.items():
            warnings = list(done.warnings.get(key, ()))
            for warning in warnings:
                print(f"onyx: {key}: warning: {warning}", file=sys.stderr)
            if as_json:
                said = {"warnings": warnings} if warnings else {}
                print_json({"assertion": key, "id": profile, "was": kind, **said})
            else:
                print(f"{profile} {kind} {key}")
    told = ", ".join(f"{len(profiles)} {kind}" for kind, profiles in kinds.items() if profiles)
    print(f"onyx: {told or 'no assertions'}", file=sys.stderr)
    if done.gone and not pruned:
        print("onyx: profiles of assertions that are gone stay (--prune)", file=sys.stderr)
    tell_warned(len(done.warnings))
    if done.missing:
        print(f"onyx: {', '.join(done.missing)} not reached in time", file=sys.stderr)
