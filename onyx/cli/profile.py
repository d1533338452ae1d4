"""``onyx profile``: say what a user wants, and see what becomes of it."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import trio
from msgspec import to_builtins

from formats.allowed_content import read_allowed_content
from formats.errors import DecodeError, MessageRefused, about
from formats.media_types import media_type_of
from formats.publication import read_publication
from formats.schema import what_is_unread
from onyx.cli.asking import (
    Told,
    add_settings,
    ask,
    ask_all,
    cells,
    columns_of,
    headings,
    settings_said,
    tell,
)
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.profile_bulk import (
    DETAILS,
    RESUME_DETAILS,
    STRICT_HELP,
    add_file_arguments,
    add_many,
    remove_many,
    tell_warned,
    the_file,
    update_many,
)
from onyx.cli.values import (
    LOCATION_HELP,
    add_base_argument,
    add_media_type_argument,
    check_once,
    counted,
    location,
    not_negative,
    positive,
    print_json,
    read_input,
    read_text,
    say_unread,
    table,
)
from onyx.cli.verb import Subparsers, add_noun, add_verb
from onyx.clients import LIVE_SECONDS, User, login_name
from onyx.errors import (
    EXIT_DATA,
    EXIT_OK,
    EXIT_UNAVAILABLE,
    ProfileNotAccepted,
    ProfilesNotAccepted,
    UsageError,
)
from onyx.rule_sets import ImportedRules, import_rules, read_rule_set
from onyx.schema_path import load_schema
from overlay import verbs
from overlay.answers import ProfileInfo
from overlay.delivery_policy import USUAL, WHEN_FULL, DeliveryPolicy
from overlay.settings import ProfileSettings, settings_of
from yfilter import (
    Conjunction,
    LinkTarget,
    Matcher,
    MatchLimitExceeded,
    ProfileRefused,
    parse_profile,
    routing_query,
)
from yfilter.graph.graph_query import is_graph_query, unbound_variables
from yfilter.language.schema_check import SchemaCheck
from yfilter.matcher import check_profile
from yfilter.plan_graph import NODES_MAX
from yfilter.schematron import RuleSet

# -------------------------------------------------------------------------------------------------
# ``onyx profile check``: are these profiles right, and can they match what follows a schema?


CHECK_EXAMPLES = """\
  onyx profile check storms.xq
  onyx profile check profiles/*.xq --schema orders.dtd --strict
  onyx profile check delays.xq --schema siri/xsd#siri.xsd
  echo '/order/item[prise < 20]' | onyx profile check - --schema orders.xsd
"""
SCHEMA_HELP = "warn of a step that no message valid against this DTD, XSD or RELAX NG has"


def add_check(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "check",
        "check profiles without registering them",
        details="Each file is one profile; - is standard input. What is refused is shown with a\n"
        "caret under the place; exit code 65. A profile that can never match under the\n"
        "schema is warned of, the first impossible step with a caret. No network is needed.",
        examples=CHECK_EXAMPLES,
        run=run_check,
    )
    parser.add_argument("files", metavar="FILE|-", nargs="+", help="the text of a profile")
    parser.add_argument("--schema", metavar="PATH", help=SCHEMA_HELP)
    parser.add_argument("--strict", action="store_true", help="exit code 65 for a warning, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each file")


def run_check(arguments: argparse.Namespace) -> int:
    check_once(arguments.files)
    texts = [(name, read_text(name)) for name in arguments.files]
    schema = None if arguments.schema is None else schema_check(arguments.schema)
    refused = warned = 0
    for name, text in texts:
        try:
            check_profile(text)
        except ProfileRefused as refusal:
            refused += 1
            if arguments.json:
                print_json({"file": name, **refusal.fault.facts()})
            print(f"onyx: {name}: {refusal}", file=sys.stderr)
            continue
        warning = schema.warning(text) if schema is not None else None
        unbound = unbound_variables(text)
        warned += warning is not None or bool(unbound)
        for said in unbound:
            print(f"onyx: {name}: warning: {said}", file=sys.stderr)
        if arguments.json:
            print_json({"file": name, "warning": warning_object(warning)})
        elif warning is None:
            print(f"{name}: right")
        else:
            print(f"{name}: right, but it can match no message that follows {arguments.schema}:")
            print(warning)
    return EXIT_DATA if refused or (warned and arguments.strict) else EXIT_OK


def schema_check(name: str) -> SchemaCheck:
    """The check against a schema; SchemaRefused.  What of it is not there is printed."""
    with about(name):
        schema = load_schema(name)
        say_unread(name, what_is_unread(schema))
        return SchemaCheck(read_allowed_content(schema))


def warning_object(warning: ProfileRefused | None) -> dict[str, object] | None:
    return None if warning is None else {**warning.fault.facts(), "hint": warning.hint}


# -------------------------------------------------------------------------------------------------
# ``onyx profile explain``: what becomes of a profile, and on a message, what held.


EXPLAIN_EXAMPLES = """\
  onyx profile explain storms.xq
  onyx profile explain storms.xq --message warning.xml
  onyx profile explain fog.rq --message posts.ttl
  echo '//item[2]' | onyx profile explain - --json
"""


def add_explain(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "explain",
        "show how a profile is matched and routed",
        details="By what the engine finds it, its steps and conditions, what is left to the end,\n"
        "and the routing query. On a message: on which elements each part held, and the first\n"
        "that did not. No network is needed.",
        examples=EXPLAIN_EXAMPLES,
        run=run_explain,
    )
    parser.add_argument("file", metavar="FILE|-", help="the text of a profile")
    parser.add_argument("--message", metavar="FILE", help="a message to try it on")
    add_media_type_argument(parser)
    add_base_argument(parser)
    parser.add_argument("--schema", metavar="PATH", help=SCHEMA_HELP)
    parser.add_argument("--strict", action="store_true", help="exit code 65 for a warning, too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run_explain(arguments: argparse.Namespace) -> int:
    text = read_text(arguments.file)
    data = None if arguments.message is None else read_input(arguments.message)
    warning = None
    try:
        message = None
        if data is not None:
            media_type = arguments.media_type or media_type_of(arguments.message)
            message = read_publication(data, media_type, base=arguments.base)
        explanation = Matcher().explain(text, message)
        if arguments.schema is not None:
            warning = schema_check(arguments.schema).warning(text)
    except ProfileRefused as refused:
        if arguments.json:
            print_json({"file": arguments.file, **refused.fault.facts()})
        with about(arguments.file):
            raise
    except (MessageRefused, DecodeError, MatchLimitExceeded):
        with about(arguments.message):
            raise
    code = EXIT_DATA if warning is not None and arguments.strict else EXIT_OK
    if arguments.json:
        print_json({**asdict(explanation), "warning": warning_object(warning)})
        return code
    print(explanation)
    if warning is not None:
        print(f"\nIt can match no message that follows {arguments.schema}\n{warning}")
    return code


# -------------------------------------------------------------------------------------------------
# ``onyx profile import``: a profile for each assertion of a Schematron rule set.


IMPORT_EXAMPLES = """\
  onyx profile import rules.sch --dry-run
  onyx profile import rules.sch --user audit
  onyx profile import rules.sch --phase codes --skip-bad --prune
"""
_NAME = re.compile(r"[\w.-]+")


def add_import(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "import",
        "register a profile for each assertion of a Schematron rule set",
        details="Whoever takes the results gets what each message fails: the assertion's id, the\n"
        "place, and the text with its values filled in, as SVRL says it. The same file again\n"
        "changes nothing; an assertion that has changed replaces its profile. What cannot be\n"
        "taken is named with its line and the reason, and then nothing is registered; exit\n"
        "code 65 (--skip-bad: leave it out).",
        examples=IMPORT_EXAMPLES,
        run=run_import,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="a Schematron schema (ISO/IEC 19757-3)")
    add("--name", metavar="NAME", help="of the rule set (default: the file's, without .sch)")
    add(
        "--phase", metavar="ID", help="only patterns of this phase; #ALL: of all (default: its own)"
    )
    add(
        "--top",
        metavar="FOLDER",
        type=Path,
        help="where the files are that it may include (default: its own folder, and below)",
    )
    add(
        "--with",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        dest="documents",
        help="a code list that rules read by doc() or document(); several times for several",
    )
    add("--skip-bad", action="store_true", help="leave out what cannot be taken")
    add("--prune", action="store_true", help="remove profiles of assertions that are gone")
    add("--dry-run", action="store_true", help="print the profiles; no network is needed")
    add("--strict", action="store_true", help=STRICT_HELP)
    add("--user", metavar="NAME", help="whose they are (default: your login name)")
    add(
        "--timeout",
        metavar="SECONDS",
        type=not_negative,
        help="wait no longer until they are live, name the brokers that are missing, exit code 69",
    )
    add_client_arguments(parser)


def run_import(arguments: argparse.Namespace) -> int:
    file = Path(arguments.file)
    name = file.stem if arguments.name is None else arguments.name
    if not _NAME.fullmatch(name):
        raise UsageError(f"the name is {name!r}; expected letters, digits, '.', '-' and '_'")
    rules = read_rule_set(file, arguments.phase, arguments.top, arguments.documents)
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
            names = ("line", "role", "context", "test", "text")
            print_json({"assertion": each.key, **{name: getattr(each, name) for name in names}})
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


# -------------------------------------------------------------------------------------------------
# ``onyx profile plan``: what the engine makes of some profiles together.


PLAN_EXAMPLES = """\
  onyx profile plan storms.xq floods.xq
  onyx profile plan profiles/*.xq --dot | dot -Tsvg > plan.svg
  onyx profile plan storms.xq --link north=floods.xq --link south=storms.xq
"""


def add_plan(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "plan",
        "show the shared plan that the engine makes of profiles",
        details="The trie of the index, with what it leads to, and the operators; what\n"
        "profiles have in common is there once. No network is needed.",
        examples=PLAN_EXAMPLES,
        run=run_plan,
    )
    add = parser.add_argument
    add("files", metavar="FILE|-", nargs="+", help="the text of a profile")
    add(
        "--link",
        metavar="NAME=FILE",
        type=_link,
        action="append",
        default=[],
        help="the routing query of a profile, for messages that go over this link",
    )
    add("--json", action="store_true", help="print it as one JSON object")
    add("--dot", action="store_true", help="print a graph in DOT, which Graphviz draws (dot -Tsvg)")
    add(
        "--nodes-max",
        metavar="N",
        type=positive,
        default=NODES_MAX,
        help="show so many nodes, and how many more there are (default: %(default)s)",
    )


def run_plan(arguments: argparse.Namespace) -> None:
    files = dict.fromkeys(arguments.files)
    routes = dict.fromkeys(arguments.link)
    check_once([*files, *(name for _, name in routes)])
    matcher = Matcher()
    for name in files:
        with about(name):
            matcher.add(read_text(name), name)
    wanted: dict[tuple[Conjunction, LinkTarget], None] = {}
    for link, name in routes:
        with about(name):
            for conjunction in routing_query(parse_profile(read_text(name))):
                wanted[conjunction, LinkTarget("any root broker", link)] = None
    for conjunction, target in wanted:
        matcher.add_route(conjunction, target)
    nodes_max = arguments.nodes_max
    plan = matcher.dump_graphviz(nodes_max) if arguments.dot else matcher.dump(nodes_max)
    if arguments.json:
        print_json({"plan": plan})
    else:
        print(plan)


def _link(text: str) -> tuple[str, str]:
    """A name and a file, for argparse."""
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise argparse.ArgumentTypeError(f'"{text}" is not NAME=FILE')
    return name, file


# -------------------------------------------------------------------------------------------------
# ``onyx profile policy``, and the same options of ``onyx profile add``: how what waits is kept.


POLICY_DETAILS = """\
What a user does not take waits for them at the profile's host broker. Of what is too much
the oldest goes; --when-full drop-newest keeps what waits and nothing more, and disconnect
sends whoever takes the profile away first. What went is counted (onyx dead list).

Who takes a profile with --share may reject a delivery (onyx subscribe --exec): it is given
out again after --retry seconds, --attempts times in all; then it is a dead letter, which
onyx dead replay delivers again."""

POLICY_EXAMPLES = """\
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


def add_policy(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "policy",
        "show or change how what waits for a profile is kept",
        details=f"{POLICY_DETAILS}\n\nWhat is not named stays; without options it is shown.",
        examples=POLICY_EXAMPLES,
        run=run,
    )
    parser.add_argument("profile", metavar="ID")
    add_policy_arguments(parser)
    parser.add_argument("--usual", action="store_true", help="as if nothing had been said")
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
        return base.changed(said)
    except ValueError as error:
        raise UsageError(f"no policy: {error}") from None


def run(arguments: argparse.Namespace) -> None:
    async def change() -> DeliveryPolicy:
        async with User(registration_address(arguments)) as client:
            base = await client.policy(arguments.profile)
            wanted = policy_said(arguments, USUAL if arguments.usual else base)
            if wanted != base:
                await client.set_policy(arguments.profile, wanted)
            return wanted

    policy = trio.run(change)
    if arguments.json:
        print_json({"profile": arguments.profile, "policy": to_builtins(policy)})
    else:
        print(sentence(policy))


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


# -------------------------------------------------------------------------------------------------
# ``onyx profile why-not``: why a registered profile does not match a message.


WHY_NOT_EXAMPLES = """\
  onyx profile why-not p1 report.xml
  cat report.xml | onyx profile why-not p1 - --json
"""


def add_why_not(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "why-not",
        "say why a profile does not match a message",
        details="Names the first part that does not hold: without it, and what comes after it,\n"
        "the profile would match.",
        examples=WHY_NOT_EXAMPLES,
        run=run_why_not,
    )
    parser.add_argument("profile", metavar="ID", help="the profile")
    parser.add_argument("message", metavar="MESSAGE|-", help="the file of the message")
    add_media_type_argument(parser)
    add_base_argument(parser)
    add_client_arguments(parser)


def run_why_not(arguments: argparse.Namespace) -> None:
    data = read_input(arguments.message)
    media_type = arguments.media_type or media_type_of(arguments.message)
    text = ask(arguments, verbs.ProfileShow(profile=arguments.profile)).text or ""
    with about(arguments.message):
        explanation = Matcher().explain(
            text, read_publication(data, media_type, base=arguments.base)
        )
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
    subverbs = add_noun(
        subparsers,
        "profile",
        details="A profile is a query in XQuery: a path, or for ... where ... return; or, of\n"
        "graphs, in SPARQL: SELECT, CONSTRUCT or ASK. Every message that it matches is\n"
        "delivered in the form that it asks for (onyx subscribe).\n"
        f"{NETWORK_HELP}",
        examples=ADD_EXAMPLES + OTHER_EXAMPLES,
    )
    _add_add(subverbs)
    show = add_verb(
        subverbs,
        "show",
        "show a profile and its text",
        examples="  onyx profile show p1",
        run=run_show,
    )
    show.add_argument("profile", metavar="ID")
    add_client_arguments(show)
    listing = add_verb(
        subverbs, "list", "list profiles", examples="  onyx profile list --user ada", run=run_list
    )
    listing.add_argument("--user", metavar="NAME", default="", help="only those of this user")
    add_client_arguments(listing)
    export = add_verb(
        subverbs,
        "export",
        "print all profiles with their texts, one JSON object a line",
        details="What onyx plan make reads as .jsonl.",
        examples="  onyx profile export > catalog.jsonl",
        run=run_export,
    )
    add_client_arguments(export)  # --json, which it does anyway
    _add_update(subverbs)
    add_policy(subverbs)
    add_import(subverbs)
    add_check(subverbs)
    add_explain(subverbs)
    add_why_not(subverbs)
    add_plan(subverbs)
    remove = add_verb(
        subverbs,
        "remove",
        "remove profiles",
        details="Results that were not delivered yet are gone with the profile. A FILE named\n"
        ".jsonl, or any with --lines, names many profiles: an object a line with its id as\n"
        "profile, or an id a line.",
        examples="  onyx profile remove p1 p2\n  onyx profile remove ids.txt --lines",
        run=run_remove,
    )
    remove.add_argument("profiles", metavar="ID|FILE", nargs="+")
    add_file_arguments(remove)
    _add_wait(remove, "return only when no broker keeps its interest any more")
    add_client_arguments(remove)


def _add_add(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "add",
        "register profiles and print their ids",
        details=f"Each file is one profile; - is standard input.\n{REFUSED_DETAILS}\n"
        f"{WARNED_DETAILS}\n\n{DETAILS}\n{RESUME_DETAILS}\n\n{POLICY_DETAILS}",
        examples=ADD_EXAMPLES,
        run=run_add,
    )
    add_file_arguments(parser)
    parser.add_argument("--resume", metavar="KEY", help="go on with a file that was cut off")
    parser.add_argument("files", metavar="FILE|-", nargs="+", help="the text of a profile")
    parser.add_argument("--user", metavar="NAME", help="whose it is (default: your login name)")
    parser.add_argument("--location", metavar="LAT,LON", type=location, help=LOCATION_HELP)
    add_settings(parser, ProfileSettings)
    parser.add_argument("--key", metavar="KEY", default="", help=KEY_HELP)
    _add_wait(parser, WAIT_HELP)
    add_policy_arguments(parser)
    parser.add_argument("--strict", action="store_true", help=STRICT_HELP)
    add_client_arguments(parser)


def _add_update(subverbs: Subparsers) -> None:
    parser = add_verb(
        subverbs,
        "update",
        "replace the text of a profile",
        details=f"When the new text is refused the old one stays in force.\n{REFUSED_DETAILS}\n"
        f"{WARNED_DETAILS}\n\nA FILE alone changes many profiles: named .jsonl, with an object a "
        "line, the id\nas profile, and the text; or any with --lines, with an id and a text a "
        "line. To do it\nagain changes nothing.",
        examples="  onyx profile update p1 storms.xq --wait\n  onyx profile update new.jsonl\n"
        "  onyx profile update new.txt --lines",
        run=run_update,
    )
    parser.add_argument("profile", metavar="ID|FILE")
    parser.add_argument("file", metavar="FILE|-", nargs="?", help="the new text")
    add_file_arguments(parser)
    _add_wait(parser, WAIT_HELP)
    parser.add_argument("--strict", action="store_true", help=STRICT_HELP)
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
                        wait=arguments.wait,
                        timeout_seconds=_patience(arguments),
                        key=arguments.key,
                        policy=policy,
                        **settings_said(arguments, ProfileSettings),
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


def run_show(arguments: argparse.Namespace) -> None:
    profile = ask(arguments, verbs.ProfileShow(profile=arguments.profile))
    tell(arguments, profile, Told(_with_text))


def _with_text(profile: ProfileInfo) -> str:
    said = _sentence(profile)
    if profile.policy != USUAL:
        said += f"; {sentence(profile.policy)}"
    head = f"# {said}" if is_graph_query(profile.text or "") else f"(: {said} :)"
    return f"{head}\n{profile.text}"


def run_list(arguments: argparse.Namespace) -> None:
    found = ask_all(arguments, verbs.ProfileList(user=arguments.user))
    if arguments.json:
        for profile in found:
            print_json({key: value for key, value in profile.shown().items() if key != "text"})
    elif not found:
        print("no profiles", file=sys.stderr)
    else:
        columns = columns_of(ProfileSettings)
        heading = ("ID", "USER", "HOST BROKER", "ADDRESS", "VERSION", "LIVE", *headings(columns))
        rows = [
            (
                *(p.id, p.user or "-", p.host, p.address, p.version),
                *("yes" if p.live else "not yet", *cells(p, columns)),
            )
            for p in found
        ]
        print(table(heading, rows))


def run_export(arguments: argparse.Namespace) -> None:
    for info in ask_all(arguments, verbs.ProfileList(texts=True)):
        shown = {"user": info.user, "host": info.host, **settings_of(info, ProfileSettings)}
        print_json({"profile": info.id, **shown, "text": info.text})


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


def _report_profile(name: str, profile: ProfileInfo, as_json: bool) -> None:
    """The id alone on standard output, so that a script can take it."""
    if as_json:
        print_json({"file": name, **profile.shown()})
    else:
        print(profile.id, flush=True)
        print(f"onyx: {_sentence(profile)}", file=sys.stderr)
        for warning in profile.warnings:
            print(f"onyx: {name}: warning: {warning}", file=sys.stderr)


def _report_refusal(name: str, refusal: ProfileNotAccepted, as_json: bool) -> None:
    if as_json:
        said = {"code": refusal.code, "refusal": refusal.refusal, "reason": refusal.reason}
        print_json({"file": name, **refusal.fault.facts(), **said})
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
